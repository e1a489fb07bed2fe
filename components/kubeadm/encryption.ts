import { createHmac } from "node:crypto";

import { stringify } from "yaml";

import type { PayloadFile } from "../machine/bootstrap/bootstrap";

/**
 * The keys of Secrets that every API server of a cluster has, by the numbers of the setting
 * `secretsKey`. 0 is none: Secrets in clear.
 */
export interface SecretsKeys {
  /** The first one encrypts; the others only decrypt what they encrypted before. */
  readonly keys: readonly number[];
  /** Whether the first one has encrypted every Secret. */
  readonly rewritten: boolean;
  /** Those that went: a snapshot of etcd from before may need one. */
  readonly past: readonly number[];
}

/** Where one key is left, as when a cluster is made. */
export const only = (key: number, past: readonly number[] = []): SecretsKeys => ({
  keys: [key],
  rewritten: true,
  past,
});

/**
 * The next stage on the way to another key.
 *
 * While an `up` is under way, and after one that failed, some API servers are a stage ahead. So each
 * stage needs the one before it everywhere: a key is known to all before it encrypts, it encrypts
 * everywhere before old Secrets are rewritten, and no key goes before they are. Whatever key is
 * wanted meanwhile, no server writes what another one cannot read.
 *
 * @param now what the last `up` that ended well has left on every control plane
 */
export function nextKeys({ keys, rewritten, past }: SecretsKeys, wanted: number): SecretsKeys {
  const [first, ...others] = keys as [number, ...number[]];
  if (rewritten && others.length > 0) return only(first, [...new Set([...past, ...others])]);
  if (first === wanted) return { keys, rewritten: true, past };
  return keys.includes(wanted)
    ? { keys: [wanted, ...keys.filter((key) => key !== wanted)], rewritten: true, past }
    : { keys: [...keys, wanted], rewritten: false, past };
}

/** What reads every snapshot of a cluster that had these, and encrypts all Secrets as they do. */
export const restoredKeys = ({ keys, past }: SecretsKeys): SecretsKeys => ({
  keys: [...new Set([...keys, ...past])],
  rewritten: true,
  past,
});

/** Whether an `up` that leaves these has to encrypt all Secrets anew. */
export const isRewriting = ({ keys, rewritten }: SecretsKeys): boolean =>
  rewritten && keys.length > 1;

export const nameOf = (key: number): string => (key === 0 ? "Secrets in clear" : `key ${key}`);
const namesOf = (keys: readonly number[]): string => keys.map(nameOf).join(", ");
const storing = (key: number): string =>
  key === 0 ? "stores all Secrets in clear" : `encrypts all Secrets with key ${key}`;
const again = (does: string): string => `Run pulumi up again when it has ended: it ${does}`;
const beginning = (wanted: number): string =>
  again(`makes every API server read ${nameOf(wanted)}`);

/** What a stage does, and what the next `up` is for; nothing where there is none. */
export function stageText(now: SecretsKeys, next: SecretsKeys, wanted: number): string | undefined {
  const [first, ...others] = next.keys as [number, ...number[]];
  if (isRewriting(next)) {
    return `this up ${storing(first)}, old ones too. ${again(`takes ${namesOf(others)} from the API servers`)}`;
  }
  if (others.length > 0) {
    return `this up makes every API server read ${nameOf(wanted)}. ${again(storing(wanted))}`;
  }
  if (now.keys.length === 1) return undefined;
  const gone = now.keys.filter((key) => key !== first);
  return `this up takes ${namesOf(gone)} from the API servers${first === wanted ? "" : `. ${beginning(wanted)}`}`;
}

/** What is said of an `up` in which there can be no stage. */
export const heldText = ({ keys }: SecretsKeys, wanted: number, why: string): string | undefined =>
  keys.length === 1 && keys[0] === wanted
    ? undefined
    : `secretsKey is ${wanted}, and ${why}, so that this up keeps ${namesOf(keys)}. ${again(`goes on to ${nameOf(wanted)}`)}`;

/** The API server's own, which an operator may set. */
export const encryptionFlag = "encryption-provider-config";
const directory = "/etc/zoned/encryption";
const path = `${directory}/secrets.yaml`;

/** Whether the API server gets this program's keys: the operator's own configuration takes their place. */
export const isOurs = (operators: Readonly<Record<string, string>>): boolean =>
  operators[encryptionFlag] === undefined;

/** An API server looks for another file once a minute, so that no stage starts it anew. */
export const encryptionFlags = {
  [encryptionFlag]: path,
  [`${encryptionFlag}-automatic-reload`]: "true",
};

/** Where the API server sees the file. A directory, since the file is replaced, not written to. */
export const encryptionVolume = {
  name: "zoned-encryption",
  hostPath: directory,
  mountPath: directory,
  readOnly: true,
  pathType: "Directory",
};

const providerOf = (secret: string, key: number): object =>
  key === 0
    ? { identity: {} }
    : { secretbox: { keys: [{ name: `key${key}`, secret: deriveKey(secret, key) }] } };

/**
 * The API server's file for these keys.
 *
 * @param secret from which they are derived
 */
export const encryptionFile = (secret: string, { keys }: SecretsKeys): PayloadFile => ({
  path,
  mode: "0600",
  content: stringify({
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "EncryptionConfiguration",
    resources: [{ resources: ["secrets"], providers: keys.map((key) => providerOf(secret, key)) }],
  }),
});

/** 32 bytes in base64, as secretbox wants them; always the same for the same number. */
const deriveKey = (secret: string, key: number): string =>
  createHmac("sha256", secret).update(`secrets-key/${key}`).digest("base64");

/** The keys as a tag. */
export const tagOf = ({ keys }: SecretsKeys): string => keys.join(" ");

/** The keys of a tag. Tags are asked only for what a cluster began with. */
export const keysOfTag = (tag: string): SecretsKeys => ({
  keys: tag.split(" ").map(Number),
  rewritten: true,
  past: [],
});
