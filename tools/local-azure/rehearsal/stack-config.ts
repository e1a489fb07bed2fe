import { generateKeyPairSync } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { parse, stringify } from "yaml";

import { writeWhole } from "../../shared/files";
import { messageOf, UserError } from "../../shared/user-error";

export type Values = Record<string, unknown>;

interface StackFile extends Record<string, unknown> {
  config?: Values;
  encryptionsalt?: string;
}

/** Secrets that were encrypted in the checkout's file, and cannot be read in a rehearsal. */
const ofItsOwner = ["encryptionsalt", "encryptedkey", "secretsprovider"] as const;

interface ConfigSource {
  /** Folder of the Pulumi project. */
  readonly program: string;
  readonly stack: string;
  /** The rehearsal's own copy, which is written. */
  readonly file: string;
  /** Above what the checkout's file says, by bare key; `undefined` takes a key away. */
  readonly settings: Readonly<Values>;
}

interface WrittenConfig {
  /** Keys, with the project's name, whose values only their owner can decrypt. */
  readonly unreadable: readonly string[];
}

/** The name of the project in this folder. */
export function projectOf(program: string): string {
  const { name } = read(join(program, "Pulumi.yaml")) as { name?: unknown };
  if (typeof name !== "string")
    throw new UserError(`${join(program, "Pulumi.yaml")} names no project`);
  return name;
}

/**
 * The settings of a stack's file in the checkout, if there is one, by bare key and below those
 * given.
 */
export function stackSettings(program: string, stack: string, above: Values = {}): Values {
  const project = projectOf(program);
  const file = join(program, `Pulumi.${stack}.yaml`);
  const { config = {} } = existsSync(file) ? read(file) : {};
  const below = Object.fromEntries(
    Object.entries(config).map(([key, value]) => [key.replace(`${project}:`, ""), value]),
  );
  return { ...below, ...above };
}

/**
 * Copies a stack's file for the rehearsal, with other settings, so that the checkout stays as it
 * is: the engine writes the salt of the encryption into whatever file it is given.
 */
export function writeConfig({ program, stack, file, settings }: ConfigSource): WrittenConfig {
  const project = projectOf(program);
  const original = join(program, `Pulumi.${stack}.yaml`);
  const document: StackFile = existsSync(original) ? { ...read(original) } : {};
  for (const key of ofItsOwner) delete document[key];
  const config: Values = {};
  const unreadable: string[] = [];
  for (const [key, value] of Object.entries(stackSettings(program, stack, settings))) {
    const full = key.includes(":") ? key : `${project}:${key}`;
    if (isSecure(value)) unreadable.push(full);
    else if (value !== undefined) config[full] = value;
  }
  const salt = existsSync(file) ? read(file).encryptionsalt : undefined;
  const written = { ...document, config, ...(salt && { encryptionsalt: salt }) };
  // Where long lines are folded, the engine's YAML reads an empty line more than was written.
  writeWhole(file, stringify(written, { lineWidth: 0 }));
  return { unreadable };
}

const isSecure = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "secure" in value;

function read(file: string): StackFile {
  try {
    return (parse(readFileSync(file, "utf8")) ?? {}) as StackFile;
  } catch (error) {
    throw new UserError(`${file} cannot be read: ${messageOf(error).split("\n")[0]}`);
  }
}

/** Addresses that are reserved for documentation (RFC 5737). */
export const documentationRange = "203.0.113.0/24";

/** A public key in OpenSSH's form whose private half is not kept. */
export function somePublicKey(): string {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const { n = "", e = "" } = publicKey.export({ format: "jwk" });
  const field = (bytes: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  // A leading zero keeps the modulus, whose highest bit is set, from being read as negative.
  const modulus = Buffer.concat([Buffer.of(0), Buffer.from(n, "base64url")]);
  const blob = [Buffer.from("ssh-rsa"), Buffer.from(e, "base64url"), modulus].map(field);
  return `ssh-rsa ${Buffer.concat(blob).toString("base64")} rehearsal`;
}
