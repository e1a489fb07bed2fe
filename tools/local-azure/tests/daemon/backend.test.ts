import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

import { pulumi } from "../../../pulumi/pulumi";

const binaries = process.env["ZONED_BINARIES"] ?? "";
let state: string;
beforeEach(() => (state = mkdtempSync(join(tmpdir(), "zoned-backend-"))));
afterEach(() => rmSync(state, { recursive: true }));

it("writes no file beside a checkpoint that a killed engine could leave half written", async () => {
  writeFileSync(join(state, "Pulumi.yaml"), "name: some\nruntime: nodejs\n");
  const options = { binaries, state, program: state, passphrase: "some" };

  const { code, stderr } = await pulumi(["stack", "init", "--stack", "dev"], options);

  expect({ code, stderr }).toMatchObject({ code: 0 });
  const files = readdirSync(join(state, "backend"), { recursive: true, encoding: "utf8" });
  expect(files.map((file) => basename(file))).toContain("dev.json");
  expect(files.filter((file) => file.endsWith(".attrs"))).toEqual([]);
});
