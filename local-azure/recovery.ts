import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "./files";
import type { Progress } from "./progress";
import { idOf } from "./provider/paths";
import { operate, pulumi, type PulumiOptions } from "./pulumi";
import { typeOfToken } from "./resource-manager/types";
import { Trouble } from "./trouble";

export interface Stack {
  readonly stack: string;
  readonly project: string;
  /** The engine's state of the stack. */
  readonly checkpoint: string;
  /** The rehearsal's copy of the stack's settings. */
  readonly config: string;
  readonly progress?: Progress;
}

interface Deployment {
  readonly resources?: readonly Recorded[];
  readonly pending_operations?: readonly { readonly type: string; readonly resource: Recorded }[];
}

/** A resource in the engine's state. */
interface Recorded {
  readonly urn: string;
  readonly type: string;
  readonly custom?: boolean;
  readonly id?: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly outputs?: unknown;
}

/**
 * Finds out what became of resources whose making nobody saw the end of, so that the next `up`
 * goes on.
 *
 * The engine would make them again, and azure-native, like the kubernetes provider, refuses what
 * is there
 * already. So they are read: what is there belongs to the stack, what is not is forgotten.
 */
export async function settlePending(options: PulumiOptions, stack: Stack): Promise<void> {
  if (!existsSync(stack.checkpoint) || isSettled(stack.checkpoint)) return;
  const exported = await must(["stack", "export", "--stack", stack.stack], options);
  const state = JSON.parse(exported) as { deployment: Deployment };
  const { resources = [], pending_operations: pending = [] } = state.deployment;
  const cutOff = pending.filter(({ type }) => type === "creating").map(({ resource }) => resource);
  const adopted = cutOff.flatMap((resource): Recorded[] => {
    const id = idOfCreated(resource);
    return id === undefined ? [] : [{ ...resource, id }];
  });
  const unread = resources.filter(isUnread);
  if (cutOff.length > 0) {
    const names = cutOff.map(({ urn }) => urn.split("::").at(-1)).join(", ");
    stack.progress?.line(
      `an earlier run was cut off while it created ${names}: looking what became of it`,
    );
    const file = join(options.state, "adopted.json");
    const deployment = {
      ...state.deployment,
      resources: [...resources, ...adopted],
      pending_operations: [],
    };
    writeWhole(file, JSON.stringify({ ...state, deployment }));
    await must(["stack", "import", "--stack", stack.stack, "--file", file], options);
    rmSync(file);
  }
  const targets = [...adopted, ...unread].flatMap(({ urn }) => ["--target", urn]);
  if (targets.length === 0) return;
  const flags = ["--yes", "--skip-preview", "--stack", stack.stack, "--config-file", stack.config];
  const { code, stdout } = await operate(["refresh", ...flags, ...targets], options);
  if (code !== 0) throw new Trouble(`pulumi refresh ended with ${code}:\n${stdout}`);
}

/** One that was adopted by an earlier run, itself cut off before it was read. */
const isUnread = ({ custom, id, outputs }: Recorded): boolean =>
  custom === true && Boolean(id) && outputs === undefined;

/** Whether the engine's own file, which is quicker read than exported, has nothing of the kind. */
function isSettled(checkpoint: string): boolean {
  const { checkpoint: kept } = JSON.parse(readFileSync(checkpoint, "utf8")) as {
    checkpoint?: { latest?: Deployment };
  };
  const { resources = [], pending_operations: pending = [] } = kept?.latest ?? {};
  return pending.length === 0 && !resources.some(isUnread);
}

/** The id that a provider gave, or would have given, to what it was asked to create. */
function idOfCreated({ type, inputs }: Recorded): string | undefined {
  if (type.startsWith("azure-native:")) {
    const known = typeOfToken(type);
    return known && idOf(known, inputs as Parameters<typeof idOf>[1]);
  }
  const { name, namespace } = (inputs["metadata"] ?? {}) as { name?: string; namespace?: string };
  if (!type.startsWith("kubernetes:") || name === undefined) return undefined;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

async function must(args: readonly string[], options: PulumiOptions): Promise<string> {
  const { code, stdout, stderr } = await pulumi(args, options);
  if (code === 0) return stdout;
  throw new Trouble(`pulumi ${args[0]} ended with ${code}:\n${stderr || stdout}`);
}
