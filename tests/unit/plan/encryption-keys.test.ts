import { only, RotationState } from "../../../components/kubeadm/rotation";
import type { MachineState } from "../../../components/azure/state";
import type { PreviousOutputs } from "../../../components/plan/machine-changes";
import { KeysArgs, planEncryptionKeys } from "../../../components/plan/encryption-keys";
import { machine, validSettings } from "../../support/sample";

const id = "1-then";

/** A VM that is there, with the keys that its step was given. */
const vm = (encryptionKeys?: string, change: Partial<MachineState> = {}): MachineState => ({
  size: machine.size,
  initialization: id,
  bootstrap: { state: "Failed", encryptionKeys },
  ...change,
});

const keysWith = (
  encryptionKeyGeneration: number,
  change: Partial<Omit<KeysArgs, "azure">> & {
    readonly machines?: Readonly<Record<string, MachineState>>;
    readonly remembered?: RotationState;
    /** The initialization that the memory is of. */
    readonly of?: string;
  } = {},
) =>
  planEncryptionKeys({
    settings: { ...validSettings, clusterName: "zoned-test", encryptionKeyGeneration },
    id,
    controlPlanes: [machine],
    azure: { machines: new Map(Object.entries(change.machines ?? {})) },
    previous:
      change.remembered &&
      ({ initialization: change.of ?? id, encryptionKeys: change.remembered } as PreviousOutputs),
    ...change,
  });

it("makes a cluster with the key that is wanted, and says nothing of it", () => {
  expect(keysWith(1)).toEqual({ encryptionKeys: only(1) });
  expect(keysWith(7)).toEqual({ encryptionKeys: only(7) });
});

it("changes nothing on a cluster that has the key", () => {
  expect(keysWith(1, { remembered: only(1), machines: { [machine.name]: vm("1") } })).toEqual({
    encryptionKeys: only(1),
  });
});

it("keeps what a cluster began with until an update has ended well, also where its step failed", () => {
  expect(keysWith(2, { machines: { [machine.name]: vm("1") } })).toEqual({
    encryptionKeys: only(1),
    message: expect.stringMatching(
      /^encryptionKeyGeneration is 2, and no update .* has ended well yet/,
    ),
  });
});

it("asks no machine of an earlier initialization", () => {
  const machines = { [machine.name]: vm("1", { initialization: "0-before" }) };

  expect(keysWith(2, { machines })).toEqual({ encryptionKeys: only(2) });
});

it("does no stage in an update that removes a control plane, which encrypts with the old key until then", () => {
  const remembered = { keys: [1, 2], rewritten: false, past: [] };
  const machines = { [machine.name]: vm("1 2"), "zoned-test-cp-2": vm("1 2") };

  expect(keysWith(2, { remembered, machines })).toEqual({
    encryptionKeys: remembered,
    message: expect.stringMatching(/this update removes zoned-test-cp-2, .* goes on to key 2$/),
  });
  expect(
    keysWith(2, { remembered, machines: { ...machines, "zoned-test-workers-9": vm() } }).message,
  ).not.toMatch(/workers/);
});

it("reads every snapshot while it restores one, and says so where Secrets have to be encrypted anew", () => {
  const restoring = { id: `${id}-later`, of: id };

  expect(keysWith(2, { ...restoring, remembered: only(1) })).toEqual({ encryptionKeys: only(1) });
  expect(keysWith(2, { ...restoring, remembered: only(2, [1]) })).toEqual({
    encryptionKeys: { keys: [2, 1], rewritten: true, past: [1] },
    message: expect.stringMatching(/encrypts all Secrets with key 2, old ones too.* takes key 1/),
  });
});

describe("a configuration of the operator's own", () => {
  const kubeadm = {
    ...validSettings.kubeadm,
    apiServerExtraArgs: { "encryption-provider-config": "/etc/own/encryption.yaml" },
  };
  const own = { ...validSettings, clusterName: "zoned-test", encryptionKeyGeneration: 1, kubeadm };
  const hadOwn = { initialization: id, ownEncryption: true } as PreviousOutputs;

  it("is the operator's, in a new cluster and in one that has had it", () => {
    expect(keysWith(1, { settings: own })).toEqual({});
    expect(keysWith(1, { settings: own, previous: hadOwn })).toEqual({});
  });

  it("is refused while Secrets are encrypted with keys that it does not have, and the way is named", () => {
    const refused = {
      problem: expect.stringMatching(
        /encrypted with key 1 of this program[^]*config rm --path [^ ]*encryption-provider-config[^]*config set encryptionKeyGeneration 0/,
      ),
    };

    expect(keysWith(1, { settings: own, remembered: only(1) })).toEqual(refused);
    expect(keysWith(1, { settings: own, machines: { [machine.name]: vm("1") } })).toEqual(refused);
    const half = { keys: [0, 1], rewritten: false, past: [] };
    expect(keysWith(1, { settings: own, remembered: half })).toEqual(refused);
  });

  it("is taken where all Secrets are in clear", () => {
    expect(keysWith(1, { settings: own, remembered: only(0, [1]) })).toEqual({});
  });

  it("is followed by what reads snapshots from before it, whatever key comes next", () => {
    const previous = { ...hadOwn, pastEncryptionKeys: [1] };
    const returned = keysWith(0, { previous }).encryptionKeys!;

    expect(returned).toEqual(only(0, [1]));
    expect(keysWith(0, { id: `${id}-later`, previous }).encryptionKeys?.keys).toEqual([0, 1]);
  });

  it("goes only where the settings say that Secrets are in clear, which its keys might have them", () => {
    expect(keysWith(1, { previous: hadOwn })).toEqual({
      problem: expect.stringMatching(
        /identity as its first provider[^]*config set encryptionKeyGeneration 0/,
      ),
    });
    expect(keysWith(0, { previous: hadOwn })).toEqual({ encryptionKeys: only(0) });
  });
});
