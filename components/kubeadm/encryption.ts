import { createHmac } from "node:crypto";

import { stringify } from "yaml";

import type { PayloadFile } from "./payload-file";
import { isRewriting, rotationTexts, type RotationState, tagOf } from "./rotations";

/**
 * What reads every snapshot of a cluster that had these keys of Secrets, and encrypts all Secrets as
 * they do. Key 0 is none: Secrets in clear.
 */
export const restoredKeys = ({ keys, past }: RotationState): RotationState => ({
  keys: [...new Set([...keys, ...past])],
  rewritten: true,
  past,
});

/** As a tag. A stage that is taken back may only have to store Secrets anew, by the keys that there are. */
export const encryptionTag = (keys: RotationState): string =>
  isRewriting(keys) ? `${tagOf(keys)} rewritten` : tagOf(keys);

const nameOf = (key: number): string => (key === 0 ? "Secrets in clear" : `key ${key}`);

export const encryptionTexts = rotationTexts({
  setting: "encryptionKeyGeneration",
  nameOf,
  adds: (key) => `makes every API server read ${nameOf(key)}`,
  uses: (key) =>
    `${key === 0 ? "stores all Secrets in clear" : `encrypts all Secrets with key ${key}`}, old ones too`,
  drops: (names) => `takes ${names} from the API servers`,
});

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
export const encryptionFile = (secret: string, { keys }: RotationState): PayloadFile => ({
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
