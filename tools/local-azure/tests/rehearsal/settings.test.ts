import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { parse } from "yaml";

import * as manifests from "../../../../components/add-ons/manifests/manifests";
import { testFolder } from "../../../../tests/support/test-folder";
import { Progress } from "../../../shared/progress";
import { writeHostSettings } from "../../machines/qemu/host";
import {
  assumedSettings,
  passphraseOf,
  somePublicKey,
  stackSettings,
  writeConfig,
} from "../../rehearsal/settings";

const sources = jest.spyOn(manifests, "obtainable");
const available = (all: boolean) => sources.mockResolvedValue({ all, message: "" });

let state: string;
let said: string;
beforeEach(() => {
  state = testFolder();
  said = "";
  writeFileSync(join(state, "Pulumi.yaml"), "name: zoned\nruntime: nodejs\n");
  available(true);
});

describe("assumed settings", () => {
  const deciding = (settings: Record<string, unknown>) =>
    assumedSettings({
      state,
      stack: "dev",
      program: state,
      settings,
      progress: new Progress({ write: (text) => (said += text) }),
    });
  const complete = { apiAccessCidrs: ["198.51.100.0/24"], sshPublicKey: "ssh-ed25519 AAAA" };

  it("assumes nothing about a stack that says it all", async () => {
    expect(await deciding(complete)).toEqual({});
  });

  it("supplies an access range and a key where there are none, and says so", async () => {
    expect(await deciding({})).toEqual({
      apiAccessCidrs: ["203.0.113.0/24"],
      sshPublicKey: expect.stringMatching(/^ssh-rsa AAAA/),
    });
    expect(said).toMatch(/apiAccessCidrs.*reserved for documentation/);
    expect(said).toMatch(/sshPublicKey/);
  });

  it("does without Canal and the disk driver where their files cannot be had, and says so plainly", async () => {
    available(false);

    expect(await deciding(complete)).toEqual({ cni: "flannel", diskDriver: false });
    expect(said).toContain("with flannel in place of Canal");
    expect(said).toContain("without the disk driver");
  });

  it("takes a setting that pulumi config set has written as text for what it says", async () => {
    available(false);

    expect(await deciding({ ...complete, cni: "none", diskDriver: "true" })).toEqual({
      diskDriver: false,
    });
  });

  it("does without metrics-server where pods answer nothing, also when it is wanted later", async () => {
    expect(await deciding({ ...complete, metricsServer: false })).toEqual({});

    expect(await deciding({ ...complete, metricsServer: true })).toEqual({ metricsServer: false });
    expect(said).toContain("rehearsed without metrics-server");
    writeHostSettings(state, {} as Parameters<typeof writeHostSettings>[1]);
    expect(await deciding({ ...complete, metricsServer: true })).toEqual({});
  });

  it("does without a company's proxy to the API, unless it is asked for one", async () => {
    const apiProxy = "http://proxy.example:3128";
    const text = `config:\n  zoned:apiProxy: ${apiProxy}\n`;
    writeFileSync(join(state, "Pulumi.dev.yaml"), text);

    expect(await deciding(complete)).toEqual({ apiProxy: "" });
    expect(said).toContain("rehearsed without apiProxy");
    expect(await deciding({ ...complete, apiProxy })).toEqual({});
  });

  it("keeps to what it assumed, since another answer would change the cluster", async () => {
    const first = await deciding({});
    available(false);

    expect(await deciding({})).toEqual(first);
  });
});

describe("the configuration", () => {
  let file: string;
  beforeEach(() => (file = join(state, "copy.yaml")));
  const write = (text: string, settings: Record<string, unknown> = {}) => {
    writeFileSync(join(state, "Pulumi.dev.yaml"), text);
    return writeConfig({ program: state, stack: "dev", file, settings });
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
    expect(readFileSync(join(state, "Pulumi.dev.yaml"), "utf8")).toBe(text);
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
    writeConfig({ program: state, stack: "new", file, settings: { location: "westeurope" } });

    expect(copy()).toEqual({ config: { "zoned:location": "westeurope" } });
    expect(stackSettings(state, "new")).toEqual({});
  });

  it("says which file cannot be read", () => {
    expect(() => write("config: [")).toThrow(`${join(state, "Pulumi.dev.yaml")} cannot be read`);
  });

  it("makes a key that OpenSSH takes for one", () => {
    writeFileSync(join(state, "key.pub"), somePublicKey());
    const fingerprint = execFileSync("ssh-keygen", ["-lf", join(state, "key.pub")], {
      encoding: "utf8",
    });

    expect(fingerprint).toMatch(/^2048 SHA256:.* rehearsal \(RSA\)/);
  });
});

describe("the passphrase", () => {
  it("makes one, keeps it for its owner alone, and uses it again", () => {
    const first = passphraseOf(state, {});

    expect(first.length).toBeGreaterThan(20);
    expect(passphraseOf(state, {})).toBe(first);
    expect(statSync(join(state, "passphrase")).mode & 0o777).toBe(0o600);
  });

  it("takes the user's own, also an empty one, and from a file", () => {
    expect(passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "" })).toBe("");
    const file = join(state, "mine");
    writeFileSync(file, "hunter2\n");
    rmSync(join(state, "passphrase.check"));
    expect(passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE_FILE: file })).toBe("hunter2");
  });

  it("says of a file that cannot be read where it was named", () => {
    expect(() => passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE_FILE: "/nowhere/it" })).toThrow(
      /^PULUMI_CONFIG_PASSPHRASE_FILE names \/nowhere\/it, which cannot be read \(ENOENT/,
    );
  });

  it("refuses another than the first, and says how to go on", () => {
    passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "right" });

    expect(passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "right" })).toBe("right");
    expect(() => passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "wrong" })).toThrow(
      /^wrong passphrase: PULUMI_CONFIG_PASSPHRASE is another one.*set PULUMI_CONFIG_PASSPHRASE to the one.*--discard/,
    );
    expect(() => passphraseOf(state, {})).toThrow(/PULUMI_CONFIG_PASSPHRASE is not set/);
  });

  it("refuses the user's own where the rehearsal began with one of its own", () => {
    passphraseOf(state, {});

    expect(() => passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "mine" })).toThrow(
      /unset PULUMI_CONFIG_PASSPHRASE/,
    );
  });

  it("keeps no passphrase of the user's", () => {
    passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "hunter2" });

    expect(() => statSync(join(state, "passphrase"))).toThrow();
  });
});
