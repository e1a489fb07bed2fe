import { parse } from "yaml";

import {
  encryptionFile,
  encryptionFlags,
  encryptionTag,
  encryptionVolume,
  heldText,
  restoredKeys,
  stageText,
} from "../../../components/kubeadm/encryption";
import {
  isRewriting,
  keysOfTag,
  nextKeys,
  only,
  RotationState,
  tagOf,
} from "../../../components/kubeadm/rotation";

/** Every update until nothing changes: the keys, and what is said. */
const ups = (begin: RotationState, wanted: number) => {
  const all: { keys: string; rewrites: boolean; says: string }[] = [];
  let now = begin;
  for (;;) {
    const next = nextKeys(now, wanted);
    const says = stageText(now, next, wanted);
    if (says === undefined) return { all, last: next, now };
    all.push({ keys: next.keys.join(" "), rewrites: isRewriting(next), says });
    now = next;
  }
};

it("takes three updates to another key: read, write with old Secrets rewritten, forget", () => {
  const { all, last, now } = ups(only(1), 2);

  expect(all).toEqual([
    {
      keys: "1 2",
      rewrites: false,
      says: "this update makes every API server read key 2. Run pulumi up again when it has ended: it encrypts all Secrets with key 2, old ones too",
    },
    {
      keys: "2 1",
      rewrites: true,
      says: "this update encrypts all Secrets with key 2, old ones too. Run pulumi up again when it has ended: it takes key 1 from the API servers",
    },
    { keys: "2", rewrites: false, says: "this update takes key 1 from the API servers" },
  ]);
  expect(last).toEqual(now);
});

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
  expect(restoredKeys(twice)).toEqual({ keys: [2, 0, 1], rewritten: true, past: [0, 1] });
  expect(isRewriting(restoredKeys(twice))).toBe(true);
  expect(nextKeys(restoredKeys(twice), 2)).toEqual(twice);
});

it("says why an update keeps what there is, and nothing where that is what is wanted", () => {
  expect(heldText(only(1), 2, "it is so")).toBe(
    "encryptionKeyGeneration is 2, and it is so, so that this update keeps key 1. Run pulumi up again when it has ended: it goes on to key 2",
  );
  expect(heldText(only(2), 2, "it is so")).toBeUndefined();
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
