import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { parse } from "yaml";

import { somePublicKey, stackSettings, writeConfig } from "../../rehearsal/stack-config";

let program: string;
let file: string;
beforeEach(() => {
  program = mkdtempSync(join(tmpdir(), "zoned-config-"));
  file = join(program, "copy.yaml");
  writeFileSync(join(program, "Pulumi.yaml"), "name: zoned\nruntime: nodejs\n");
});
afterEach(() => rmSync(program, { recursive: true }));

const write = (text: string, settings: Record<string, unknown> = {}) => {
  writeFileSync(join(program, "Pulumi.dev.yaml"), text);
  return writeConfig({ program, stack: "dev", file, settings });
};
const copy = () => parse(readFileSync(file, "utf8")) as Record<string, unknown>;

it("puts the rehearsal's settings above the stack's, and leaves the stack's file alone", () => {
  const text =
    "config:\n  zoned:location: westeurope\n  zoned:cni: canal\n  azure-native:location: x\n";

  write(text, { cni: "flannel", mirror: undefined, count: 3 });

  expect(copy()).toEqual({
    config: {
      "zoned:location": "westeurope",
      "zoned:cni": "flannel",
      "zoned:count": 3,
      "azure-native:location": "x",
    },
  });
  expect(readFileSync(join(program, "Pulumi.dev.yaml"), "utf8")).toBe(text);
});

it("writes a text of several lines as it stands, since the engine reads a folded one otherwise", () => {
  const text = `    zoned:patch: |\n      spec:\n        # ${"so long ".repeat(20)}\n        replicas: 3\n`;

  write(`config:\n${text}`);

  expect(readFileSync(file, "utf8").replace(/^ +/gm, "")).toContain(text.replace(/^ +/gm, ""));
});

it("takes a setting away where it is given as undefined", () => {
  write("config:\n  zoned:cni: canal\n", { cni: undefined });

  expect(copy()).toEqual({ config: {} });
});

it("keeps the salt that the engine has written into the copy, or its secrets could not be read", () => {
  writeFileSync(file, "encryptionsalt: v1:ours\n");

  write("encryptionsalt: v1:theirs\nconfig:\n  zoned:cni: canal\n");

  expect(copy()["encryptionsalt"]).toBe("v1:ours");
});

it("names what only its owner can decrypt, and leaves it out", () => {
  const text = "encryptionsalt: v1:theirs\nconfig:\n  zoned:secret:\n    secure: abc\n";

  expect(write(text)).toEqual({ unreadable: ["zoned:secret"] });
  expect(copy()).toEqual({ config: {} });
});

it("rehearses a stack that has no file yet", () => {
  writeConfig({ program, stack: "new", file, settings: { location: "westeurope" } });

  expect(copy()).toEqual({ config: { "zoned:location": "westeurope" } });
  expect(stackSettings(program, "new")).toEqual({});
});

it("says which file cannot be read", () => {
  expect(() => write("config: [")).toThrow(`${join(program, "Pulumi.dev.yaml")} cannot be read`);
});

it("makes a key that OpenSSH takes for one", () => {
  writeFileSync(join(program, "key.pub"), somePublicKey());
  const fingerprint = execFileSync("ssh-keygen", ["-lf", join(program, "key.pub")], {
    encoding: "utf8",
  });

  expect(fingerprint).toMatch(/^2048 SHA256:.* rehearsal \(RSA\)/);
});
