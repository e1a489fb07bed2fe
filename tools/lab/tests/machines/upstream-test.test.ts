import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { parse, stringify } from "yaml";

import { byName, expectPassed } from "../../machines/upstream-test";
import { testFolder } from "../../../../tests/support/test-folder";

const spec = (LeafNodeType: string, State: string, Message?: string) => ({
  ...{ LeafNodeType, State },
  ...(Message !== undefined && { Failure: { Message } }),
});
const others = [spec("SynchronizedBeforeSuite", "passed"), spec("It", "skipped")];

test("one test that ran and passed has passed", () => {
  expect(() => expectPassed([...others, spec("It", "passed")])).not.toThrow();
});

test("a test that failed, or did not begin, says why", () => {
  expect(() => expectPassed([...others, spec("It", "failed", "no answer")])).toThrow(
    "it failed: no answer",
  );
  const before = spec("SynchronizedBeforeSuite", "failed", "no API");
  expect(() => expectPassed([before, spec("It", "skipped")])).toThrow("it failed: no API");
});

test("a test that did not run has not passed, nor has another beside it", () => {
  expect(() => expectPassed(others)).toThrow("got 0 tests that passed, expected one");
  expect(() => expectPassed([spec("It", "passed"), spec("It", "passed")])).toThrow("got 2 tests");
});

test("upstream's tests meet the API under its own name, and that name leads to this host", () => {
  const folder = testFolder();
  const cluster = { server: "https://api.example:6443", "certificate-authority-data": "Y2E=" };
  const kubeconfig = stringify({ clusters: [{ name: "one", cluster }] });
  const made = byName({ kubeconfig, address: { host: "127.0.0.1", port: 4242 }, folder });

  expect(parse(readFileSync(made.kubeconfig, "utf8")).clusters[0].cluster).toEqual({
    ...cluster,
    server: "https://api.example:4242",
  });
  const [command = "", ...args] = made.within;
  const asUser = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];
  const { stdout } = spawnSync(command, [...asUser, ...args, "getent", "hosts", "api.example"], {
    encoding: "utf8",
  });
  expect(stdout).toMatch(/^127\.0\.0\.1\s.*\bapi\.example\b/);
});
