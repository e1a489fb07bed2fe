import { parse, parseAllDocuments } from "yaml";

import {
  encryptionFile,
  encryptionFlags,
  encryptionTag,
  encryptionTexts,
  encryptionVolume,
  restoredKeys,
} from "../../../components/kubeadm/encryption";
import {
  clusterConfigurationOf,
  configurationOf,
  kubeadmFiles,
} from "../../../components/kubeadm/kubeadm";
import {
  accountKeyTexts,
  areFirst,
  authoritiesVariable,
  caTexts,
  isRewriting,
  keysOfTag,
  nextKeys,
  only,
  type RotationState,
  type RotationTexts,
  serviceAccountKeysVariable,
  tagOf,
} from "../../../components/kubeadm/rotations";
import { machinesOf } from "../../../components/settings/topology";
import { specOf, validSettings } from "../../support/sample";

const [controlPlane, ...others] = machinesOf(validSettings);
const worker = others.find(({ role }) => role === "worker")!;

type Rotated = Partial<Record<"encryptionKeys" | "cas" | "serviceAccountKeys", RotationState>>;
const specWith = (keys: Rotated = {}) => specOf(validSettings, keys);

const clusterWith = (keys?: Rotated) => {
  const files = kubeadmFiles(specWith(keys), controlPlane!);
  const { content } = files.find(({ path }) => path === "/etc/zoned/kubeadm-init.yaml")!;
  return parseAllDocuments(content)
    .map((document) => document.toJS())
    .find(({ kind }) => kind === "ClusterConfiguration");
};

/** The variables of each static pod. */
const variablesWith = (keys?: Rotated) => {
  const { apiServer, controllerManager, scheduler, etcd } = clusterWith(keys);
  const pods = [apiServer, controllerManager, scheduler, etcd.local];
  return pods.map(({ extraEnvs }) => extraEnvs);
};

const stages = [nextKeys(only(1), 2), nextKeys(nextKeys(only(1), 2), 2), only(2, [1])] as const;

interface Kind {
  readonly what: keyof Rotated;
  readonly stageText: RotationTexts["stageText"];
  /** What an update of each stage does. */
  readonly adds: string;
  readonly uses: string;
  readonly drops: string;
  readonly isOnWorkers: boolean;
  readonly isInClusterConfiguration: boolean;
}

const kinds: readonly Kind[] = [
  {
    what: "encryptionKeys",
    stageText: encryptionTexts.stageText,
    adds: "makes every API server read key 2",
    uses: "encrypts all Secrets with key 2, old ones too",
    drops: "takes key 1 from the API servers",
    isOnWorkers: false,
    isInClusterConfiguration: false,
  },
  {
    what: "cas",
    stageText: caTexts.stageText,
    adds: "has all machines and new pods trust CA 2; get the kubeconfig anew after that, and restart your pods that ask the API",
    uses: "has every certificate signed by CA 2",
    drops: "has nobody trust CA 1 any more",
    isOnWorkers: true,
    isInClusterConfiguration: true,
  },
  {
    what: "serviceAccountKeys",
    stageText: accountKeyTexts.stageText,
    adds: "has every API server admit tokens of service account key 2; publish /openid/v1/jwks anew after that where others verify tokens (the update itself does so for workloadIdentities)",
    uses: "has every token signed by service account key 2",
    drops: "has no API server admit tokens of service account key 1 any more",
    isOnWorkers: false,
    isInClusterConfiguration: true,
  },
];

describe.each(kinds)("the change of $what", (kind) => {
  const { what, stageText, adds, uses, drops } = kind;

  it("takes three updates, each of which says what the next one does", () => {
    const says = [only(1), ...stages].map((now) => stageText(now, nextKeys(now, 2), 2));

    expect(says).toEqual([
      `this update ${adds}. Run pulumi up again when it has ended: it ${uses}`,
      `this update ${uses}. Run pulumi up again when it has ended: it ${drops}`,
      `this update ${drops}`,
      undefined,
    ]);
  });

  it("has every machine that needs the keys configured anew at every stage, and no other", () => {
    const all = [only(1), ...stages].map((keys) => specWith({ [what]: keys }));
    const times = (digestOf: (spec: (typeof all)[number]) => string) =>
      new Set(all.map(digestOf)).size;

    expect(times((spec) => configurationOf(spec, controlPlane!))).toBe(4);
    expect(times((spec) => configurationOf(spec, worker))).toBe(kind.isOnWorkers ? 4 : 1);
    expect(times(clusterConfigurationOf)).toBe(kind.isInClusterConfiguration ? 4 : 1);
  });
});

describe.each([
  { what: "cas" as const, variable: authoritiesVariable, pods: [0, 1, 2, 3] },
  {
    what: "serviceAccountKeys" as const,
    variable: serviceAccountKeysVariable,
    pods: [0, 1],
  },
])("each stage of $what", ({ what, variable, pods }) => {
  it("changes the static pods that read the keys, and no other, so that kubeadm starts them anew", () => {
    for (const stage of stages) {
      expect(variablesWith({ [what]: stage })).toEqual(
        [0, 1, 2, 3].map((pod) => (pods.includes(pod) ? [variable(stage)] : undefined)),
      );
    }
    expect(new Set(stages.map((stage) => variable(stage).value)).size).toBe(3);
  });
});

it("shows other CAs and other keys of service accounts beside each other", () => {
  const counts = variablesWith({ serviceAccountKeys: stages[0], cas: only(2) });

  expect(counts.map((variables) => variables.length)).toEqual([2, 2, 1, 1]);
});

it("changes nothing of a cluster that keeps its first CAs", () => {
  expect(areFirst(only(1))).toBe(true);
  expect(clusterWith({ cas: only(1) })).toEqual(clusterWith());
  expect(JSON.stringify(clusterWith())).not.toMatch(/ZONED_|cluster-signing/);
});

it("has the controller manager sign by one certificate as long as ca.crt has several", () => {
  const signing = stages.map((cas) =>
    clusterWith({ cas }).controllerManager.extraArgs.filter(
      ({ name }: { name: string }) => name === "cluster-signing-cert-file",
    ),
  );
  const file = { name: "cluster-signing-cert-file", value: "/etc/kubernetes/pki/signing-ca.crt" };

  expect(signing).toEqual([[file], [file], []]);
});

/** Every update until nothing changes: the keys, and what is said. */
const ups = (begin: RotationState, wanted: number) => {
  const all: { keys: string; rewrites: boolean; says: string }[] = [];
  let now = begin;
  for (;;) {
    const next = nextKeys(now, wanted);
    const says = encryptionTexts.stageText(now, next, wanted);
    if (says === undefined) return { all, last: next, now };
    all.push({ keys: next.keys.join(" "), rewrites: isRewriting(next), says });
    now = next;
  }
};

it("takes a cluster from Secrets in clear to a key and back in the same way", () => {
  expect(ups(only(0), 1).all.map(({ keys }) => keys)).toEqual(["0 1", "1 0", "1"]);
  const back = ups(only(1), 0).all;
  expect(back.map(({ keys }) => keys)).toEqual(["1 0", "0 1", "0"]);
  expect(back[1]!.says).toMatch(/^this update stores all Secrets in clear, old ones too/);
});

it("ends a change that is under way before it begins another one", () => {
  const begun = nextKeys(nextKeys(only(1), 2), 2);

  const { all } = ups(begun, 3);

  expect(all.map(({ keys }) => keys)).toEqual(["2", "2 3", "3 2", "3"]);
  expect(all[0]!.says).toBe(
    "this update takes key 1 from the API servers. Run pulumi up again when it has ended: it makes every API server read key 3",
  );
});

it("gives up a key that is only known yet, where the one before is wanted again", () => {
  const { all, last } = ups(nextKeys(only(1), 2), 1);

  expect(all.map(({ keys, rewrites }) => [keys, rewrites])).toEqual([
    ["1 2", true],
    ["1", false],
  ]);
  expect(last).toEqual(only(1, [2]));
});

it("reads what a snapshot from any time has, and encrypts it anew, where a key went before", () => {
  const twice = ups(ups(only(0), 1).last, 2).last;

  expect(restoredKeys(only(1))).toEqual(only(1));
  expect(restoredKeys(twice)).toEqual({
    keys: [2, 0, 1],
    rewritten: true,
    past: [0, 1],
  });
  expect(isRewriting(restoredKeys(twice))).toBe(true);
  expect(nextKeys(restoredKeys(twice), 2)).toEqual(twice);
});

it("says why an update keeps what there is, and nothing where that is what is wanted", () => {
  expect(encryptionTexts.heldText(only(1), 2, "it is so")).toBe(
    "encryptionKeyGeneration is 2, and it is so, so that this update keeps key 1. Run pulumi up again when it has ended: it goes on to key 2",
  );
  expect(encryptionTexts.heldText(only(2), 2, "it is so")).toBeUndefined();
});

/**
 * Three API servers, what each has, which keys may have encrypted a Secret that is stored, and what
 * the outputs remember.
 */
interface World {
  readonly servers: readonly (readonly number[])[];
  readonly stored: readonly number[];
  readonly memory: RotationState;
}

/** An update that reaches so many servers, and perhaps its end. */
function upsOf({ servers, stored, memory }: World, wanted: number): World[] {
  const next = { ...nextKeys(memory, wanted), past: [] };
  const after = servers.map((_, reached) => {
    const changed = servers.map((keys, at) => (at <= reached ? next.keys : keys));
    return { servers: changed, stored: sorted([...stored, next.keys[0]!]), memory };
  });
  const last = after.at(-1)!;
  const rewritten = { ...last, stored: isRewriting(next) ? [next.keys[0]!] : last.stored };
  return [...after, rewritten, { ...rewritten, memory: next }];
}

const sorted = (keys: readonly number[]) => [...new Set(keys)].sort();

it("leaves no API server without a key that another one has written with, wherever ups fail and whatever key is wanted next", () => {
  const begin: World = { servers: [[1], [1], [1]], stored: [1], memory: only(1) };
  const seen = new Map([[JSON.stringify(begin), begin]]);
  const broken: World[] = [];
  for (const world of seen.values()) {
    const { servers, stored } = world;
    if (servers.some((keys) => stored.some((key) => !keys.includes(key)))) broken.push(world);
    for (const wanted of [0, 1, 2, 3]) {
      for (const next of upsOf(world, wanted)) seen.set(JSON.stringify(next), next);
    }
  }
  expect(broken).toEqual([]);
  expect(seen.size).toBeGreaterThan(1000);
});

it("gives the API server a key of 32 bytes for each number, the first one to write with, and none in clear", () => {
  const { path, mode, content } = encryptionFile("from the state", keysOfTag("2 1 0"));
  const [{ resources, providers }] = parse(content).resources;

  expect(resources).toEqual(["secrets"]);
  expect(providers.map((one: object) => Object.keys(one)[0])).toEqual([
    "secretbox",
    "secretbox",
    "identity",
  ]);
  const keys = providers.slice(0, 2).map((one: any) => one.secretbox.keys[0]);
  expect(keys.map(({ name }: { name: string }) => name)).toEqual(["key2", "key1"]);
  expect(
    keys.map(({ secret }: { secret: string }) => Buffer.from(secret, "base64").length),
  ).toEqual([32, 32]);
  expect(keys[0].secret).not.toBe(keys[1].secret);
  expect(content).not.toContain("from the state");
  expect(mode).toBe("0600");
  expect(path).toBe(encryptionFlags["encryption-provider-config"]);
  expect(path.startsWith(`${encryptionVolume.mountPath}/`)).toBe(true);
});

it("derives the same keys in every release, so that a restored cluster can be read, and others from another secret", () => {
  const of = (secret: string) =>
    parse(encryptionFile(secret, only(1)).content).resources[0].providers[0].secretbox.keys;
  const key = "Z4Xe/u21jfHGhhYsnbJEOYc5C/RmBV+9R1jkUgH4TLQ=";

  expect(of("from the state")).toEqual([{ name: "key1", secret: key }]);
  expect(of("another one")).not.toEqual(of("from the state"));
});

it("reads what it writes into a tag", () => {
  const keys = { keys: [2, 0], rewritten: true, past: [] };

  for (const tag of [tagOf(keys), encryptionTag(keys)]) expect(keysOfTag(tag)).toEqual(keys);
});
