import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import * as manifests from "../../../../components/add-ons/manifests/manifests";
import { writeHostSettings } from "../../machines/local-machines";
import { assumedSettings } from "../../rehearsal/assumed-settings";
import { Progress } from "../../../shared/progress";

const sources = jest.spyOn(manifests, "obtainable");
const available = (all: boolean) => sources.mockResolvedValue({ all, message: "" });

let state: string;
let said: string;
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), "zoned-assumed-"));
  said = "";
  writeFileSync(join(state, "Pulumi.yaml"), "name: zoned\nruntime: nodejs\n");
  available(true);
});
afterEach(() => rmSync(state, { recursive: true }));

const deciding = (settings: Record<string, unknown>) =>
  assumedSettings({
    state,
    stack: "dev",
    program: state,
    settings,
    progress: new Progress({ write: (text) => (said += text) }),
  });
const complete = { apiAccessCidrs: ["198.51.100.0/24"], sshPublicKey: "ssh-ed25519 AAAA" };

it("assumedSettingss nothing about a stack that says it all", async () => {
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

it("asks only for files that the stack would use", async () => {
  available(false);

  expect(await deciding({ ...complete, cni: "none", diskDriver: false })).toEqual({});
});

it("does without metrics-server where pods answer nothing, also when it is wanted later", async () => {
  expect(await deciding({ ...complete, metricsServer: false })).toEqual({});

  expect(await deciding({ ...complete, metricsServer: true })).toEqual({ metricsServer: false });
  expect(said).toContain("rehearsed without metrics-server");
  writeHostSettings(state, {} as Parameters<typeof writeHostSettings>[1]);
  expect(await deciding({ ...complete, metricsServer: true })).toEqual({});
});

it("keeps to what it assumedSettingsd, since another answer would change the cluster", async () => {
  const first = await deciding({});
  available(false);

  expect(await deciding({})).toEqual(first);
});
