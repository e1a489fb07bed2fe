import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { settlePending } from "./recovery";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "zoned-recovery-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const virtualMachine = {
  urn: "urn:pulumi:dev::zoned::azure-native:compute:VirtualMachine::m-vm",
  type: "azure-native:compute:VirtualMachine",
  custom: true,
  inputs: { resourceGroupName: "zoned-dev", vmName: "m" },
};
const secret = {
  urn: "urn:pulumi:dev::zoned::kubernetes:core/v1:Secret::token",
  type: "kubernetes:core/v1:Secret",
  custom: true,
  inputs: { metadata: { name: "token", namespace: "kube-system" } },
};
const key = {
  urn: "urn:pulumi:dev::zoned::tls:index/privateKey:PrivateKey::key",
  type: "tls:index/privateKey:PrivateKey",
  custom: true,
  inputs: {},
};

/**
 * Settles a stack with this state by an engine that writes down what it is told; returns what it
 * was told.
 */
async function settle(latest: { resources?: object[]; pending_operations?: object[] }) {
  const checkpoint = join(folder, "dev.json");
  writeFileSync(checkpoint, JSON.stringify({ checkpoint: { latest } }));
  const calls = join(folder, "calls");
  const exported = join(folder, "exported.json");
  writeFileSync(exported, JSON.stringify({ version: 3, deployment: latest }));
  const engine = [
    "#!/bin/sh",
    `echo "$@" >> ${calls}`,
    `case "$2" in export) cat ${exported} ;; import) cp "$6" ${folder}/imported.json ;; esac`,
    "for last; do :; done",
  ];
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin", "pulumi"), engine.join("\n"));
  chmodSync(join(folder, "bin", "pulumi"), 0o755);
  await settlePending(
    { binaries: join(folder, "bin"), state: folder, program: folder, passphrase: "" },
    { stack: "dev", project: "zoned", checkpoint, config: "Pulumi.dev.yaml" },
  );
  const imported = join(folder, "imported.json");
  return {
    calls: existsSync(calls) ? readFileSync(calls, "utf8").trim().split("\n") : [],
    state: existsSync(imported)
      ? (JSON.parse(readFileSync(imported, "utf8")) as { deployment: Record<string, unknown[]> })
      : undefined,
  };
}

const creating = (resource: object) => ({ type: "creating", resource });

it("leaves a stack alone whose last run saw the end of everything", async () => {
  const { calls } = await settle({ resources: [{ ...key, id: "k", outputs: {} }] });

  expect(calls).toEqual([]);
});

it("takes what a killed run may have created for the stack's own, and reads what became of it", async () => {
  const before = { ...key, id: "k", outputs: {} };
  const { calls, state } = await settle({
    resources: [before],
    pending_operations: [creating(virtualMachine), creating(secret)],
  });

  expect(state?.deployment["pending_operations"]).toEqual([]);
  expect(state?.deployment["resources"]).toEqual([
    before,
    {
      ...virtualMachine,
      id: expect.stringMatching(
        /^\/subscriptions\/[^/]+\/resourceGroups\/zoned-dev\/providers\/Microsoft.Compute\/virtualMachines\/m$/,
      ),
    },
    { ...secret, id: "kube-system/token" },
  ]);
  expect(calls.at(-1)).toMatch(
    /^refresh --yes --skip-preview --stack dev .*--target .*::m-vm --target .*::token /,
  );
});

it("forgets what leaves nothing behind outside of the state, and reads nothing for it", async () => {
  const { calls, state } = await settle({ pending_operations: [creating(key)] });

  expect(state?.deployment["resources"]).toEqual([]);
  expect(calls.filter((call) => call.startsWith("refresh"))).toEqual([]);
});

it("reads what was taken over before this run too was killed", async () => {
  const { calls } = await settle({ resources: [{ ...virtualMachine, id: "/subscriptions/x" }] });

  expect(calls.at(-1)).toMatch(/^refresh .*--target .*::m-vm /);
});
