import type { MachineState } from "../../../components/azure/state";
import {
  nextKeys,
  only,
  type RotationState,
  type ServiceAccountKeys,
} from "../../../components/kubeadm/rotations";
import {
  type CasArgs,
  getLegacyTokens,
  type KeysArgs,
  planCas,
  planEncryptionKeys,
  planServiceAccountKeys,
  type ServiceAccountKeysArgs,
} from "../../../components/plan/rotations";
import type { PreviousOutputs } from "../../../components/plan/machine-changes";
import { machine, validSettings } from "../../support/sample";

const id = "1-then";
const now = "2026-11-28T12:00:00.000Z";
const { kubernetesVersion } = validSettings;
const worker = { ...machine, name: "zoned-test-workers-1", role: "worker" as const };

type What = "encryptionKeys" | "cas" | "serviceAccountKeys";

/** What a plan is made of, of any of the three. */
interface Scene extends Partial<
  Omit<CasArgs & KeysArgs & ServiceAccountKeysArgs, "azure" | "settings">
> {
  readonly machines?: Readonly<Record<string, MachineState>>;
  readonly remembered?: ServiceAccountKeys;
  /** Of one machine; another one has the version that is wanted. */
  readonly version?: string;
}

const argsOf = (what: What, { machines = {}, remembered, version, ...scene }: Scene) => ({
  id,
  now,
  controlPlanes: [machine],
  workers: [worker],
  created: [],
  legacyTokens: { secrets: [] },
  outputs: undefined,
  azure: { machines: new Map(Object.entries(machines)) },
  previous:
    remembered &&
    ({
      initialization: id,
      [what]: remembered,
      machines: {
        [machine.name]: { kubernetesVersion: version ?? kubernetesVersion },
        [worker.name]: { kubernetesVersion },
      },
    } as unknown as PreviousOutputs),
  ...scene,
});

const settingsOf = (change: object) => ({ ...validSettings, clusterName: "zoned-test", ...change });

const planned: Readonly<
  Record<What, (wanted: number, scene?: Scene) => { keys?: RotationState; message?: string }>
> = {
  encryptionKeys(encryptionKeyGeneration, scene = {}) {
    const settings = settingsOf({ encryptionKeyGeneration });
    const plan = planEncryptionKeys({ ...argsOf("encryptionKeys", scene), settings });
    return { keys: plan.encryptionKeys, message: plan.message };
  },
  cas(caGeneration, scene = {}) {
    const settings = settingsOf({ caGeneration });
    const { cas: keys, message } = planCas({ ...argsOf("cas", scene), settings });
    return { keys, message };
  },
  serviceAccountKeys(serviceAccountKeyGeneration, scene = {}) {
    const settings = settingsOf({ serviceAccountKeyGeneration });
    const plan = planServiceAccountKeys({ ...argsOf("serviceAccountKeys", scene), settings });
    return { keys: plan.serviceAccountKeys, message: plan.message };
  },
};

/** A VM that is there, with what its step was given. */
const vm = (given: Partial<Record<What, string>> = {}, initialization = id): MachineState => ({
  size: machine.size,
  initialization,
  bootstrap: { state: "Failed", ...given },
});

/** The stages that an update leaves: both are known, the second one is in use. */
const both = nextKeys(only(1), 2);
const inUse = { ...nextKeys(both, 2), signingSince: "2026-11-27T00:00:00.000Z" };

describe.each<{ what: What; setting: string; uses: string; drops: string }>([
  {
    what: "encryptionKeys",
    setting: "encryptionKeyGeneration",
    uses: "this update encrypts all Secrets with key 2, old ones too",
    drops: "this update takes key 1 from the API servers",
  },
  {
    what: "cas",
    setting: "caGeneration",
    uses: "this update has every certificate signed by CA 2",
    drops: "this update has nobody trust CA 1 any more",
  },
  {
    what: "serviceAccountKeys",
    setting: "serviceAccountKeyGeneration",
    uses: "this update has every token signed by service account key 2",
    drops: "this update has no API server admit tokens of service account key 1 any more",
  },
])("the change of $what", ({ what, setting, uses, drops }) => {
  const plan = planned[what];

  it("is none in a new cluster, which is made with the key that is wanted", () => {
    expect(plan(1)).toEqual({ keys: only(1) });
    expect(plan(7)).toEqual({ keys: only(7) });
  });

  it("is none in a cluster that has the key", () => {
    const machines = { [machine.name]: vm({ [what]: "1" }) };

    expect(plan(1, { remembered: only(1), machines })).toEqual({ keys: only(1) });
  });

  it("begins when an update has ended well: until then a cluster keeps what it began with, also where its step failed", () => {
    expect(plan(2, { machines: { [machine.name]: vm({ [what]: "1" }) } })).toEqual({
      keys: only(1),
      message: expect.stringMatching(
        new RegExp(`^${setting} is 2, and no update of this cluster has ended well yet`),
      ),
    });
  });

  it("asks no machine of an earlier initialization what the cluster began with", () => {
    const machines = { [machine.name]: vm({ [what]: "1" }, "0-before") };

    expect(plan(2, { machines })).toEqual({ keys: only(2) });
  });

  it("goes one stage an update, from what the last one that ended well has left", () => {
    expect(plan(2, { remembered: only(1) }).keys).toEqual(both);
    expect(plan(2, { remembered: both })).toEqual({
      keys: expect.objectContaining({ keys: [2, 1], rewritten: true, past: [] }),
      message: expect.stringContaining(uses),
    });
    expect(plan(2, { remembered: inUse })).toEqual({ keys: only(2, [1]), message: drops });
  });
});

describe.each([
  { what: "cas" as const, names: "CA 1, CA 2" },
  { what: "serviceAccountKeys" as const, names: "service account key 1, service account key 2" },
])("the change of $what", ({ what, names }) => {
  it("rests in an update that restores the cluster, which says so", () => {
    const { keys, message } = planned[what](2, { remembered: both, id: `${id}-later` });

    expect(keys).toEqual(both);
    expect(message).toMatch(/restores the cluster from a snapshot/);
    expect(message).toContain(`keeps ${names}. Run pulumi up again`);
  });
});

it.each<["cas" | "serviceAccountKeys", RotationState, number]>([
  ["cas", only(1), 1],
  ["cas", nextKeys(only(1), 2), 1],
  ["serviceAccountKeys", { keys: [2, 1], rewritten: true, past: [] }, 2],
])(
  "a cluster in the place of a lost one begins with what signed there: %s %j",
  (what, had, first) => {
    const outputs = { initialization: "0-before", [what]: had } as unknown as PreviousOutputs;

    // The engine takes no key out of the state that is protected.
    expect(planned[what](3, { outputs }).keys).toEqual(only(first));
  },
);

describe("the change of CAs", () => {
  it.each<[string, Scene, RegExp]>([
    ["upgrades Kubernetes", { version: "1.35.9" }, /upgrades Kubernetes to/],
    ["makes a control plane", { created: [machine] }, /makes zoned-test-cp-1/],
    [
      "removes a control plane",
      { machines: { "zoned-test-cp-2": vm({ cas: "1 2" }) } },
      /removes zoned-test-cp-2/,
    ],
    [
      "removes a worker, whose kubeconfig stays that of before",
      { machines: { [worker.name]: vm(), "zoned-test-workers-2": vm() } },
      /removes zoned-test-workers-2,/,
    ],
  ])("rests in an update that %s, which says so", (_, scene, says) => {
    const { keys, message } = planned.cas(2, { remembered: both, ...scene });

    expect(keys).toEqual(both);
    expect(message).toMatch(says);
    expect(message).toMatch(/keeps CA 1, CA 2\. Run pulumi up again/);
  });

  it.each<[string, Scene]>([
    [
      "beside a machine that somebody else has made in the resource group",
      { machines: { "jump-host": { size: machine.size } } },
    ],
    ["in an update that makes workers", { created: [worker] }],
  ])("goes on %s", (_, scene) => {
    expect(planned.cas(2, { remembered: both, ...scene }).keys?.keys).toEqual([2, 1]);
  });
});

describe("the change of service accounts' keys", () => {
  const plan = planned.serviceAccountKeys;
  const admits =
    "this update has no API server admit tokens of service account key 1 any more" as const;

  it("remembers since when the new key signs", () => {
    expect(plan(2, { remembered: both }).keys).toMatchObject({ signingSince: now });
  });

  it("admits tokens of the old key for a day and a half after the new one began to sign", () => {
    expect(plan(2, { remembered: inUse, now: "2026-11-28T11:59:00.000Z" })).toEqual({
      keys: inUse,
      message:
        "pods may have tokens of service account key 1 until 2026-11-28T12:00:00.000Z, so that this update keeps it. Run pulumi up again after that",
    });
    expect(plan(2, { remembered: inUse }).message).toBe(admits);
  });

  it.each([
    ["does not know the new one", both, "1"],
    ["signs with the old one", inUse, "1 2"],
  ])(
    "rests while a control plane is to leave that an earlier update could not remove, and that %s",
    (_, remembered, left) => {
      const machines = (serviceAccountKeys: string) => ({
        [machine.name]: vm({ serviceAccountKeys: remembered.keys.join(" ") }),
        "zoned-test-cp-2": vm({ serviceAccountKeys }),
      });

      const { keys, message } = plan(2, { remembered, machines: machines(left) });
      expect(keys?.keys).toEqual(remembered.keys);
      expect(message).toMatch(
        /this update removes zoned-test-cp-2, which may not have all of its keys/,
      );
      // Its last tokens are as old as this update.
      if (remembered === inUse) expect(keys).toMatchObject({ signingSince: now });

      const known = machines(remembered.keys.join(" "));
      expect(plan(2, { remembered, machines: known }).keys?.keys).not.toEqual(remembered.keys);
    },
  );

  it("admits them for longer where drains let an update take longer", () => {
    const settings = settingsOf({
      ...{ serviceAccountKeyGeneration: 2, controlPlaneCount: 5, drainMinutes: 60 },
    });
    const scene = { remembered: inUse, now: "2026-11-28T17:59:00.000Z" };

    expect(
      planServiceAccountKeys({ ...argsOf("serviceAccountKeys", scene), settings }).message,
    ).toContain("until 2026-11-28T18:00:00.000Z");
  });

  it.each<[string, ServiceAccountKeysArgs["legacyTokens"], RegExp]>([
    [
      "as long as Secrets have tokens of it, and names them",
      { secrets: ["default/ci", "tools/backup"] },
      /of service account key 1 that never end are in Secrets \(default\/ci, tools\/backup\).*kubectl delete secret/,
    ],
    [
      "where nobody knows whether Secrets have tokens of it",
      { unknown: "the API does not answer" },
      /the API does not answer/,
    ],
  ])("keeps the old key %s", (_, legacyTokens, says) => {
    expect(plan(2, { remembered: inUse, legacyTokens })).toEqual({
      keys: inUse,
      message: expect.stringMatching(says),
    });
  });

  it("looks for them in an API that may be asked, and not while its health is not checked", async () => {
    const { previous } = argsOf("serviceAccountKeys", { remembered: inUse });
    const look = (skipHealthCheckUntil: string) =>
      getLegacyTokens({
        ...{ settings: { skipHealthCheckUntil }, previous, now },
        kubeconfig: "of no cluster",
      });

    expect(await look("")).toEqual({ unknown: expect.any(String) });
    expect(await look("20261128T130000Z")).toEqual({ secrets: [] });
  });
});

describe("the change of the key of Secrets", () => {
  const plan = planned.encryptionKeys;

  it("rests in an update that removes a control plane, which encrypts with the old key until then", () => {
    const given = vm({ encryptionKeys: "1 2" });
    const machines = { [machine.name]: given, "zoned-test-cp-2": given };

    expect(plan(2, { remembered: both, machines })).toEqual({
      keys: both,
      message: expect.stringMatching(/this update removes zoned-test-cp-2, .* goes on to key 2$/),
    });
    expect(
      plan(2, { remembered: both, machines: { ...machines, "zoned-test-workers-9": vm() } })
        .message,
    ).not.toMatch(/workers/);
  });

  it("reads every snapshot while it restores one, and says so where Secrets have to be encrypted anew", () => {
    const restoring = { id: `${id}-later` };

    expect(plan(2, { ...restoring, remembered: only(1) })).toEqual({ keys: only(1) });
    expect(plan(2, { ...restoring, remembered: only(2, [1]) })).toEqual({
      keys: { keys: [2, 1], rewritten: true, past: [1] },
      message: expect.stringMatching(/encrypts all Secrets with key 2, old ones too.* takes key 1/),
    });
  });

  it.each<[string, object, number[]]>([
    ["rotated its key", { encryptionKeys: only(2, [1]) }, [1]],
    ["was on the way to another one", { encryptionKeys: both }, [1]],
    ["had another one", { encryptionKeys: only(3) }, [3]],
    ["had the operator's own", { ownEncryption: true, pastEncryptionKeys: [1] }, [0, 1]],
  ])(
    "can restore snapshots of a lost cluster that %s, after an empty one took its place",
    (_, had, past) => {
      const outputs = { initialization: "0-before", ...had } as PreviousOutputs;
      const failed = { [machine.name]: vm({ encryptionKeys: "2" }) };
      const first = plan(2, { outputs }).keys;

      expect(first).toEqual(only(2, past));
      expect(plan(2, { outputs, machines: failed }).keys).toEqual(first);
      for (const scene of [{ remembered: first }, { outputs, machines: failed }]) {
        expect(plan(2, { ...scene, id: `${id}-later` }).keys?.keys).toEqual([2, ...past]);
      }
    },
  );
});

describe("a configuration of the operator's own", () => {
  const kubeadm = {
    ...validSettings.kubeadm,
    apiServerExtraArgs: { "encryption-provider-config": "/etc/own/encryption.yaml" },
  };
  const hadOwn = { initialization: id, ownEncryption: true } as PreviousOutputs;
  const keysWith = (encryptionKeyGeneration: number, scene: Scene & { readonly own?: true }) => {
    const { own, ...rest } = scene;
    const settings = settingsOf({ encryptionKeyGeneration, ...(own && { kubeadm }) });
    return planEncryptionKeys({ ...argsOf("encryptionKeys", rest), settings });
  };

  it("is the operator's, in a new cluster and in one that has had it", () => {
    expect(keysWith(1, { own: true })).toEqual({});
    expect(keysWith(1, { own: true, previous: hadOwn })).toEqual({});
  });

  it("is refused while Secrets are encrypted with keys that it does not have, and the way is named", () => {
    const refused = {
      problem: expect.stringMatching(
        /encrypted with key 1 of this program[^]*config rm --path [^ ]*encryption-provider-config[^]*config set encryptionKeyGeneration 0/,
      ),
    };

    const given = { [machine.name]: vm({ encryptionKeys: "1" }) };
    expect(keysWith(1, { own: true, remembered: only(1) })).toEqual(refused);
    expect(keysWith(1, { own: true, machines: given })).toEqual(refused);
    const half = { keys: [0, 1], rewritten: false, past: [] };
    expect(keysWith(1, { own: true, remembered: half })).toEqual(refused);
  });

  it("is taken where all Secrets are in clear", () => {
    expect(keysWith(1, { own: true, remembered: only(0, [1]) })).toEqual({});
  });

  it("is followed by what reads snapshots from before it, whatever key comes next", () => {
    const previous = { ...hadOwn, pastEncryptionKeys: [1] };

    expect(keysWith(0, { previous }).encryptionKeys).toEqual(only(0, [1]));
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
