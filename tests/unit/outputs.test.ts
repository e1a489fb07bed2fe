import { setTimeout } from "node:timers/promises";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { Member } from "../../components/control-plane";
import { outputsOf } from "../../components/outputs";
import { PreviousOutputs } from "../../components/plan/machine-changes";
import { only } from "../../components/kubeadm/rotations";
import { diskClasses } from "../../components/azure/disk-classes";
import { Plan } from "../../components/plan/plan";
import type { Settings } from "../../components/settings/settings";
import { Recorder, valueOf } from "../support/record";
import { machine, subscriptionId, validSettings } from "../support/sample";
import { people, tenant } from "../support/settings-cases/entra";

const order = {
  ...{ generation: "now", createdAt: "then", bootstrapRequestedAt: "then" },
  ...{ kubernetesVersion: "1.36.3", configuration: "now" },
};
const worker = { ...machine, name: "zoned-test-workers-1", role: "worker" as const, zone: "3" };

const before = { initialization: "0-before" } as PreviousOutputs;

const pair = { cert: pulumi.output("cert"), key: pulumi.output("key") };

/** What a step shows of itself when it has done what is ordered. */
const tags = {
  "zoned-bootstrap-requested-at": "then",
  "zoned-kubernetes": "1.36.3",
  "zoned-configuration": "now",
  "zoned-encryption-keys": "1 2",
};

const unknown = new (pulumi.Output as any)(
  new Set(),
  Promise.resolve(undefined),
  Promise.resolve(false),
  Promise.resolve(false),
  Promise.resolve(new Set()),
) as pulumi.Output<any>;

interface Scene {
  /** Steps that have ended. */
  readonly ended: readonly string[];
  /** Tags of the control plane's step that are others. */
  readonly others?: Partial<typeof tags>;
  /** Whether the worker's step was not to be made. */
  readonly isLeftOut?: boolean;
  /** Whether Azure has refused a document of the issuer. */
  readonly isUnpublished?: boolean;
  /** Whether the worker is a new spot machine. */
  readonly isSpare?: boolean;
  readonly settings?: Partial<Settings>;
  readonly previous?: Partial<PreviousOutputs>;
  /** Whether API servers have a configuration of the operator's own. */
  readonly ownEncryption?: boolean;
  /** Whether this update has all Secrets stored anew. */
  readonly isRewriting?: boolean;
  /** Whether it is the preview of the first update. */
  readonly isFirstPreview?: boolean;
}

async function outputs({
  ended,
  others,
  isLeftOut,
  isUnpublished,
  isSpare,
  settings,
  previous = before,
  ownEncryption,
  isRewriting = false,
  isFirstPreview = false,
}: Scene) {
  await Recorder.start({ preview: isFirstPreview });
  const plan = {
    settings: { ...validSettings, ...settings },
    controlPlanes: [machine],
    workers: [worker],
    spec: {
      encryptionKeys: ownEncryption
        ? undefined
        : { keys: [1, 2], rewritten: isRewriting, past: [] },
      cas: { keys: [3, 1], rewritten: true, past: [2] },
      serviceAccountKeys: { keys: [4, 5], rewritten: false, past: [] },
      tokenIssuers: ["https://issuer.example"],
    },
    federation: { isUsed: true, isOnMachines: false },
    apiServer: { name: "api.example", port: 6443 },
    apiAddress: "10.1.1.30",
    subscriptionId,
    initialization: { id: "1-then", exists: true },
    machineRecords: new Map([machine, worker].map(({ name }) => [name, order])),
    diskClasses: diskClasses([]),
    previous: isFirstPreview ? undefined : previous,
  } as unknown as Plan;
  const memberOf = (role: string) => {
    const one = role === "worker" ? worker : machine;
    const validUntil = pulumi.output(`in the time of ${role}`);
    const made = {
      plan: one,
      kubeletCertificate: { validUntil },
      isSpare: isSpare && role === "worker",
    };
    return { machine: made, step: stepOf(one) } as unknown as Member;
  };
  const stepOf = ({ name, role }: typeof worker | typeof machine) => {
    const id = `/virtualMachines/${name.toUpperCase()}/extensions/bootstrap`;
    return {
      id:
        isLeftOut && role === "worker"
          ? unknown
          : pulumi.output(ended.includes(role) ? id : new Promise<string>(() => {})),
      tags: pulumi.output({ ...tags, ...(role === "control-plane" && others) }),
    };
  };
  return outputsOf(
    plan,
    new ResourceGroup("cluster", { resourceGroupName: "zoned-test" }),
    pulumi.output("{}"),
    { cluster: { ...pair, trusted: pulumi.secret("the authority") } },
    { initialControlPlane: pulumi.output("the-initial-vm") },
    [memberOf("control-plane"), memberOf("worker")],
    {
      clients: { "shop.app": pulumi.output("client id of shop.app") },
      published: isUnpublished ? (unknown as pulumi.Output<string[]>) : pulumi.output([]),
    },
    { workloads: ["DaemonSet kube-system/kube-proxy"] },
  );
}

it("says as which client the pods of each declared account log in, and has no such output where none is declared", async () => {
  const app = { namespace: "shop", serviceAccount: "app", identityId: "", roles: [] };

  const { workloadIdentities } = await outputs({
    ended: [],
    settings: { workloadIdentities: [app] },
  });

  expect(await valueOf(pulumi.output(workloadIdentities))).toEqual({
    "shop.app": "client id of shop.app",
  });
  expect(Object.keys(await outputs({ ended: [] }))).not.toContain("workloadIdentities");
});

/** The outputs' memory of the cluster once these steps have ended, if it is there. */
async function memory(...ended: readonly string[]) {
  const { cluster: output } = await outputs({ ended });
  return { remembered: new Promise((resolve) => output.apply(resolve)) };
}

it("remembers the cluster once every step has ended, and not before", async () => {
  const first = await memory("control-plane");
  const second = await memory("worker");
  const both = await memory("control-plane", "worker");

  expect(await both.remembered).toEqual({
    initialization: "1-then",
    subscriptionId,
    initialControlPlane: "the-initial-vm",
    controlPlanes: 1,
    apiAddress: "10.1.1.30",
    balancer: expect.stringMatching(/^[0-9a-f]{16}$/),
    encryptionKeys: { keys: [1, 2], rewritten: false, past: [] },
    cas: { keys: [3, 1], rewritten: true, past: [2] },
    serviceAccountKeys: { keys: [4, 5], rewritten: false, past: [] },
    tokenIssuers: ["https://issuer.example"],
    isFederated: true,
    settings: expect.objectContaining({ location: "westeurope", podCidr: "10.244.0.0/16" }),
    diskDriver: true,
    addOns: ["DaemonSet kube-system/kube-proxy"],
    storageClasses: diskClasses([]).map(({ name }) => name),
    tags: [],
    machines: { [machine.name]: order, [worker.name]: order },
  });
  const early = [first.remembered, second.remembered, setTimeout(50)];
  expect(await Promise.race(early)).toBeUndefined();
});

describe("an update that --target or --exclude keep from some of its steps", () => {
  const ended = ["control-plane", "worker"];

  it.each([
    ["ran before", { "zoned-bootstrap-requested-at": "before" }],
    ["has another version", { "zoned-kubernetes": "1.35.9" }],
    ["has another configuration", { "zoned-configuration": "before" }],
    ["has not got the keys of Secrets", { "zoned-encryption-keys": "1" }],
  ])("is not remembered where a step %s, and says so", async (_, others) => {
    const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

    expect(await valueOf((await outputs({ ended, others })).cluster)).toEqual(before);

    expect(warn).toHaveBeenCalledWith(
      expect.stringContaining(`left out the steps of ${machine.name},`),
    );
    warn.mockRestore();
  });

  it("is not remembered where a step was to store Secrets anew by the key that they had before", async () => {
    const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
    const rewritten = { "zoned-encryption-keys": "1 2 rewritten" };
    const left = await outputs({ ended, isRewriting: true });
    const whole = await outputs({ ended, isRewriting: true, others: rewritten });

    expect(await valueOf(left.cluster)).toEqual(before);
    expect(await valueOf(whole.cluster)).toMatchObject({ initialization: "1-then" });
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
  });

  it("is not remembered where a step was not to be made", async () => {
    expect(await valueOf((await outputs({ ended, isLeftOut: true })).cluster)).toEqual(before);
  });
});

it("does not remember keys that Entra cannot find, where --continue-on-error goes on without the document", async () => {
  const { cluster } = await outputs({ ended: ["control-plane", "worker"], isUnpublished: true });

  expect(await valueOf(cluster)).toEqual(before);
});

it("remembers the cluster also where a new spot machine has not been made", async () => {
  const { cluster } = await outputs({ ended: ["control-plane"], isLeftOut: true, isSpare: true });

  expect(await valueOf(cluster)).toMatchObject({ initialization: "1-then" });
});

it("does not remember nothing in the first preview, of which Pulumi would warn", async () => {
  const { cluster } = await outputs({
    ended: ["control-plane"],
    isLeftOut: true,
    isFirstPreview: true,
  });

  expect(await (cluster as any).isKnown).toBe(false);
});

it("remembers which identities of others its machines have, and none of its own", async () => {
  const ended = ["control-plane", "worker"];
  const theirs = { identityId: "/ids/theirs", kubeletIdentityId: "/ids/their-kubelets" };
  const some = await outputs({ ended, settings: theirs });
  const own = await valueOf((await outputs({ ended })).cluster);

  expect(await valueOf(some.cluster)).toMatchObject(theirs);
  expect([own!.identityId, own!.kubeletIdentityId]).toEqual([undefined, undefined]);
});

it("remembers as long as an encryption is the operator's own which keys went before it", async () => {
  const update = async (previous: Partial<PreviousOutputs>) => {
    const ended = ["control-plane", "worker"];
    const { cluster } = await outputs({ ended, previous, ownEncryption: true });
    return (await valueOf(cluster))!;
  };
  const first = await update({ initialization: "1-then", encryptionKeys: only(0, [1]) });
  const second = await update(first);

  for (const one of [first, second]) {
    expect(one).toMatchObject({ ownEncryption: true, pastEncryptionKeys: [1] });
    expect(one.encryptionKeys).toBeUndefined();
  }
  const lost = { initialization: "0-before", encryptionKeys: only(2, [1, 0]) };
  expect((await update(lost)).pastEncryptionKeys).toEqual([2, 1]);
});

it("has a kubeconfig without a secret for people who log in, and remembers by whom, only where they may", async () => {
  const ended = ["control-plane", "worker"];
  const some = await outputs({ ended, settings: { entra: people } });
  const none = await outputs({ ended });

  expect(await pulumi.isSecret(some.loginKubeconfig!)).toBe(false);
  expect(await valueOf(some.cluster)).toMatchObject({
    issuer: `https://login.microsoftonline.com/${tenant}/v2.0`,
  });
  expect(none).not.toHaveProperty("loginKubeconfig");
  expect((await valueOf(none.cluster))!.issuer).toBeUndefined();
});

it("says where the API and every machine is, and until when its kubelet's certificate is valid", async () => {
  const { apiAddress, machines, resourceGroup } = await outputs({ ended: [] });

  expect(apiAddress).toBe("https://api.example:6443");
  expect(await valueOf(pulumi.output(machines))).toEqual([
    {
      ...{ name: machine.name, role: "control-plane", zone: "westeurope-2" },
      address: machine.address,
      kubeletCertificateUntil: "in the time of control-plane",
    },
    {
      ...{ name: worker.name, role: "worker", zone: "westeurope-3", address: worker.address },
      kubeletCertificateUntil: "in the time of worker",
    },
  ]);
  expect(await valueOf(resourceGroup)).toBe("zoned-test");
});
