import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { checkout } from "../../shared/checkout";
import { testFolder } from "../../../tests/support/test-folder";

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
