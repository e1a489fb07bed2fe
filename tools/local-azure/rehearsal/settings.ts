import { generateKeyPairSync, randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { parse, stringify } from "yaml";

import { obtainable } from "../../../components/add-ons/manifests/manifests";
import { manifests } from "../../../components/versions";
import { readJson, writeWhole } from "../../shared/files";
import type { Progress } from "../../shared/progress";
import { messageOf, UserError } from "../../shared/user-error";
import { hostSettings } from "../machines/qemu/host";

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
const documentationRange = "203.0.113.0/24";

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

interface Question {
  readonly state: string;
  readonly stack: string;
  readonly program: string;
  readonly settings: Readonly<Values>;
  readonly progress?: Progress;
}

/** A stack's settings that a rehearsal needs and its file lacks, and why each. */
interface Assumption {
  readonly settings: Readonly<Values>;
  readonly because: string;
}

/**
 * Chooses what the stack's file leaves open, once: a value that changed between two runs would
 * change the cluster.
 */
export async function assumedSettings(question: Question): Promise<Readonly<Values>> {
  const { state, stack, progress } = question;
  const file = join(state, `${stack}.assumed.json`);
  const kept = existsSync(file) ? (readJson(file) as Assumption[]) : undefined;
  const chosen = kept ?? (await assume(question));
  if (!kept) writeWhole(file, JSON.stringify(chosen, undefined, 2));
  const assumptions = [...chosen, ...withoutMetrics(question), ...withoutApiProxy(question)];
  for (const { because } of assumptions) progress?.line(because);
  return Object.assign({}, ...assumptions.map(({ settings }) => settings)) as Values;
}

async function assume({ program, stack, settings, progress }: Question): Promise<Assumption[]> {
  const given = stackSettings(program, stack, settings);
  const found: Assumption[] = [];
  if (given["apiAccessCidrs"] === undefined) {
    found.push({
      settings: { apiAccessCidrs: [documentationRange] },
      because: `stack ${stack} does not say who may reach the API (apiAccessCidrs): rehearsed with ${documentationRange}, which is reserved for documentation`,
    });
  }
  if (given["sshPublicKey"] === undefined) {
    found.push({
      settings: { sshPublicKey: somePublicKey() },
      because: `stack ${stack} has no sshPublicKey: rehearsed with a key whose private half is not kept`,
    });
  }
  return [...found, ...(await withoutManifests(given, progress))];
}

/** `pulumi config set` writes a boolean as text. */
const isOn = (value: unknown): boolean => String(value) === "true";

/**
 * A simulated pod is ready and answers nothing, and as long as an API that is registered does not answer,
 * Kubernetes deletes no namespace.
 */
function withoutMetrics({ program, stack, settings, state }: Question): Assumption[] {
  if (
    !isOn(stackSettings(program, stack, settings)["metricsServer"]) ||
    hostSettings(state) !== undefined
  )
    return [];
  return [
    {
      settings: { metricsServer: false },
      because: "rehearsed without metrics-server, since pods on simulated machines answer nothing",
    },
  ];
}

/** One that the stack's file names leads to the company's network, and a rehearsal's API is on this host. */
function withoutApiProxy({ program, stack, settings }: Question): Assumption[] {
  const { apiProxy = "" } = stackSettings(program, stack);
  if (apiProxy === "" || "apiProxy" in settings) return [];
  return [
    {
      settings: { apiProxy: "" },
      because: "rehearsed without apiProxy, since the API is on this host",
    },
  ];
}

/**
 * The real program would stop; a rehearsal without a network does without these add-ons, and says
 * so.
 */
async function withoutManifests(
  given: Readonly<Values>,
  progress?: Progress,
): Promise<Assumption[]> {
  const { mirror = "", cni = "canal", diskDriver = true } = given;
  const sources = { mirror: String(mirror) };
  const has = async (list: readonly (typeof manifests.diskDriver)[number][]): Promise<boolean> =>
    (await obtainable(list, sources)).all;
  const step = progress?.step("looking for the manifests of Canal and the disk driver");
  const [canal, driver] = await Promise.all([
    cni !== "canal" || has(manifests.canal),
    !isOn(diskDriver) || has(manifests.diskDriver),
  ]).finally(() => step?.done(false));
  const could = "could not be had from their source";
  return [
    ...(canal
      ? []
      : [
          {
            settings: { cni: "flannel" },
            because: `rehearsed with flannel in place of Canal, whose manifest ${could}`,
          },
        ]),
    ...(driver
      ? []
      : [
          {
            settings: { diskDriver: false },
            because: `rehearsed without the disk driver, whose manifests ${could}`,
          },
        ]),
  ];
}

/** The user's own passphrase, as the engine would find it. */
function fromEnvironment(env: NodeJS.ProcessEnv): string | undefined {
  const { PULUMI_CONFIG_PASSPHRASE: text, PULUMI_CONFIG_PASSPHRASE_FILE: file } = env;
  if (text !== undefined) return text;
  try {
    return file === undefined ? undefined : readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new UserError(
      `PULUMI_CONFIG_PASSPHRASE_FILE names ${file}, which cannot be read (${(error as Error).message}): ` +
        "name the file with the passphrase, or unset it for one that the rehearsal makes itself",
    );
  }
}

/**
 * The passphrase that this rehearsal's secrets are encrypted with: the user's own, else a random
 * one that is kept beside them.
 *
 * @throws UserError when the user's own is not the one that the rehearsal was started with
 */
export function passphraseOf(state: string, env: NodeJS.ProcessEnv = process.env): string {
  const kept = join(state, "passphrase");
  const check = join(state, "passphrase.check");
  const own = fromEnvironment(env);
  if (own === undefined) {
    if (existsSync(kept)) return readFileSync(kept, "utf8");
    if (existsSync(check)) throw wrong("is not set", state);
    const random = randomBytes(24).toString("base64url");
    writeWhole(kept, random);
    return random;
  }
  if (existsSync(kept)) {
    if (readFileSync(kept, "utf8") !== own) throw wrong("is another one", state);
  } else if (existsSync(check)) {
    if (!matches(readFileSync(check, "utf8"), own)) throw wrong("is another one", state);
  } else {
    const salt = randomBytes(16);
    writeWhole(check, `${salt.toString("hex")}:${scryptSync(own, salt, 32).toString("hex")}`);
  }
  return own;
}

function matches(check: string, passphrase: string): boolean {
  const [salt, hash] = check.split(":").map((part) => Buffer.from(part, "hex"));
  if (!salt || hash?.length !== 32) return false;
  return timingSafeEqual(hash, scryptSync(passphrase, salt, 32));
}

function wrong(what: string, state: string): UserError {
  const remedy = existsSync(join(state, "passphrase"))
    ? "the rehearsal was started with one of its own: unset PULUMI_CONFIG_PASSPHRASE and PULUMI_CONFIG_PASSPHRASE_FILE"
    : "set PULUMI_CONFIG_PASSPHRASE to the one it was started with";
  return new UserError(
    `wrong passphrase: PULUMI_CONFIG_PASSPHRASE ${what}, and the secrets in ${state} cannot be read without the first one; ` +
      `${remedy}, or give the rehearsal up: npm stop -- --discard`,
  );
}
