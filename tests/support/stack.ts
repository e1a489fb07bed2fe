import { readFileSync } from "node:fs";
import { join } from "node:path";

import * as pulumi from "@pulumi/pulumi";
import { parse } from "yaml";

import { loadSettings } from "../../components/settings/load";
import { Settings } from "../../components/settings/settings";
import { checkout } from "../../tools/shared/checkout";

export type Values = Record<string, unknown>;

/** A change to valid settings, and a part of its message, which says what is wrong with it. */
export type Refused = readonly [values: Values, says: string];

export type Accepted = readonly [merit: string, values: Values];

export interface Cases {
  readonly refused: readonly Refused[];
  readonly accepted: readonly Accepted[];
}

interface Declared {
  readonly default: unknown;
  readonly description: string;
  readonly secret?: boolean;
}

const read = (file: string) => parse(readFileSync(join(checkout, file), "utf8"));

/** What Pulumi.yaml says about each setting. */
export const declared: Readonly<Record<string, Declared>> = read("Pulumi.yaml").config;

export const stackFile = (stack: string): Values => read(`Pulumi.${stack}.yaml`);

/** A stack's own settings, by bare key. */
export const stackValues = (stack: string): Values =>
  Object.fromEntries(
    Object.entries(stackFile(stack).config as Values).map(([key, value]) => [
      key.replace("zoned:", ""),
      value,
    ]),
  );

/** An ssh-ed25519 key whose private half is not kept, and a range of documentation's. */
export const access: Values = {
  sshPublicKey: stackValues("local").sshPublicKey,
  apiAccessCidrs: ["203.0.113.0/24"],
};

/**
 * The settings as the engine would hand them over: the stack's values above Pulumi.yaml's defaults,
 * all as text.
 */
export function settingsWith(values: Values, secrets: readonly string[] = []): Settings {
  const defaults = Object.entries(declared).map(([key, { default: value }]) => [key, value]);
  const all = Object.entries({ ...Object.fromEntries(defaults), ...values })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [
      `zoned:${key}`,
      typeof value === "string" ? value : JSON.stringify(value),
    ]);
  pulumi.runtime.setAllConfig(
    Object.fromEntries(all),
    secrets.map((key) => `zoned:${key}`),
  );
  return loadSettings(new pulumi.Config("zoned"));
}

/** The message of a stack that is refused, a line for each problem; none for valid settings. */
export function complaints(values: Values, secrets: readonly string[] = []): string[] {
  try {
    settingsWith(values, secrets);
    return [];
  } catch (error) {
    if (!(error instanceof pulumi.RunError)) throw error;
    return error.message
      .split("\n")
      .slice(1)
      .map((line) => line.replace("  - ", ""));
  }
}
