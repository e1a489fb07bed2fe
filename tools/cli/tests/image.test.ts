import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { checkout } from "../../shared/checkout";
import { testFolder } from "../../../tests/support/test-folder";
import { installed } from "../../../tests/support/tools";
import { until } from "../../../tests/support/until";

const folder = testFolder();

const run = (words: readonly string[], path = "") =>
  spawnSync(process.execPath, ["tools/cli/zoned.cjs", ...words], {
    cwd: checkout,
    encoding: "utf8",
    env: { ...process.env, PATH: `${path}${dirname(process.execPath)}:/usr/bin:/bin` },
  });

/** Without pulumi on the PATH. */
const image = (stack: string) => run(["image", "--stack", stack]);

it("names a stack that is not there before a pulumi that is missing", () => {
  expect(image("nowhere")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("there is no stack nowhere: expected its settings in "),
  });
  expect(image("prod")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("pulumi is not on the PATH"),
  });
});

it("finds the settings of a stack that is named with its organization, and others by name", () => {
  expect(image("org/prod")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("pulumi is not on the PATH"),
  });
  expect(run(["image", "--stack", "prod", "--config-file", "/nowhere.yaml"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("expected its settings in /nowhere.yaml"),
  });
});

it.each([
  ["doctor", true],
  ["image", false],
  ["recover", false],
])("names the way without pulumi where the command has one: %s", (command, hasOne) => {
  const { stderr } = run([command, "--stack", "prod"]);

  expect(stderr).toContain("https://www.pulumi.com/docs/install/");
  expect(stderr.includes("leave --stack out")).toBe(hasOne);
});

it("takes up what an update of the image's stack has lost before it goes on", () => {
  const resource = { urn: "urn:pulumi:prod-image::zoned::pulumi:pulumi:Stack::zoned-prod-image" };
  const state = { version: 3, deployment: { resources: [resource] } };
  const script = [
    "#!/bin/sh",
    `echo "$ZONED_PROGRAM: $@" >> ${folder}/asked`,
    'case "$1 $2" in',
    `"stack export") echo '${JSON.stringify(state)}';;`,
    `"stack history") echo '[{"kind":"update","result":"failed"}]';;`,
    `"preview --json") echo '{"steps":[]}';;`,
    '"up "*) exit 255;;',
    "esac",
  ];
  writeFileSync(join(folder, "pulumi"), script.join("\n"), { mode: 0o755 });

  run(["image", "--stack", "prod"], `${folder}:`);

  const asked = readFileSync(join(folder, "asked"), "utf8").trim().split("\n");
  const config = `--stack prod-image --config-file ${join(checkout, "Pulumi.prod.yaml")}`;
  expect(asked.map((line) => line.split(" ").slice(0, 3).join(" "))).toEqual([
    "image: stack init",
    "image: stack export",
    "image: stack history",
    "image: preview --json",
    "image: up --yes",
  ]);
  expect(asked[3]).toContain(config);
});

it("is where npm run recover sends to with the stack of an image", () => {
  expect(run(["recover", "--stack", "prod-image"])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("npm run image -- --stack prod\n"),
  });
});

describe("a recovery whose import goes on", () => {
  const copies = join(folder, "copies");
  const isThere = (file: string) => async () => existsSync(join(folder, file));

  /** Runs it in a terminal of its own, with a pulumi that does this when it is interrupted. */
  async function importing(whenInterrupted: string): Promise<ChildProcess> {
    const id = "/subscriptions/s/resourceGroups/g";
    const group = { type: "azure-native:resources:ResourceGroup", custom: true, id, outputs: {} };
    const resources = [{ ...group, urn: `urn:pulumi:prod::zoned::${group.type}::cluster` }];
    const script = [
      "#!/bin/sh",
      `cd ${folder}`,
      'case "$1 $2" in',
      `"stack export") echo '${JSON.stringify({ version: 3, deployment: { resources } })}';;`,
      `"preview --json") echo '{"steps":[]}';;`,
      `"stack import") trap '${whenInterrupted}' INT; touch importing; while sleep 0.1; do :; done;;`,
      "esac",
    ];
    for (const file of ["importing", "ended"]) rmSync(join(folder, file), { force: true });
    rmSync(copies, { recursive: true, force: true });
    writeFileSync(join(folder, "pulumi"), script.join("\n"), { mode: 0o755 });
    const command = `exec "${process.execPath}" tools/cli/zoned.cjs recover --stack prod --copies ${copies}`;
    const env = { ...process.env, PATH: `${folder}:${process.env["PATH"]}` };
    const terminal = spawn(installed("script", "bsdutils"), ["-qec", command, "/dev/null"], {
      cwd: checkout,
      env,
    });
    await until("the import", isThere("importing"));
    return terminal;
  }

  it("ends orderly when its terminal is closed", async () => {
    const terminal = await importing("touch ended; exit 1");

    terminal.kill("SIGKILL");

    await until("the end of the import", isThere("ended"));
    await until("the end of its file", async () => readdirSync(copies).length === 1);
  });

  it("ends by a second Ctrl-C when pulumi does not by the first", async () => {
    const terminal = await importing("[ ! -e ended ] || exit 1; touch ended");
    const done = once(terminal, "close");
    const interrupt = () => terminal.stdin!.write("\x03");

    interrupt();
    await until("pulumi to be interrupted", isThere("ended"));
    // What comes at once is the same Ctrl-C, passed on by npm.
    await wait(1000);
    interrupt();

    expect(await done).toEqual([130, null]);
  });
});
