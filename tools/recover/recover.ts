import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";

import { stackOf } from "../../components/azure/stack-tag";
import { makeFolder, reasonOf, writeWhole } from "../shared/files";
import { pause } from "../shared/concurrency";
import type { Progress } from "../shared/progress";
import { messageOf, UserError } from "../shared/user-error";
import type { Ended } from "../pulumi/pulumi";
import {
  type Created,
  currentOf,
  type Deployment,
  type Exported,
  hasFailed,
  idOfCreated,
  type Inputs,
  inputsOf,
  isInAzure,
  isInFlight,
  isSameId,
  maybeCreated,
  nameOf,
  plannedIn,
  type Preview,
  type Recorded,
  refusalOf,
  subscriptionIn,
  withCreated,
  withWhatGoesToo,
} from "./azure";

export interface RecoverOptions {
  readonly stack: string;
  /** Runs pulumi as the stack's owner does, and captures what it prints. */
  readonly pulumi: (args: readonly string[]) => Promise<Ended>;
  /** The stack's settings, where they are not beside Pulumi.yaml. */
  readonly configFile?: string;
  /** Folder for the copy of the state as it was. */
  readonly copies: string;
  /** The subscription, where neither the state nor the program's plan names one. */
  readonly subscription?: () => Promise<string | undefined>;
  /**
   * Looks for unrecorded resources only when the last update is known to have failed; saves a
   * preview.
   */
  readonly onlyAfterFailure?: boolean;
  readonly dryRun?: boolean;
  readonly progress?: Progress;
  readonly signal?: AbortSignal;
}

/** What became of resources, by name. */
export interface Recovery {
  /** All of which it had to be looked whether Azure has it. */
  readonly looked: readonly string[];
  /** In Azure, and now in the state. */
  readonly adopted: readonly string[];
  /** Not in Azure, and no longer in the state. */
  readonly forgotten: readonly string[];
  /** In Azure, and failed there: the next update sends an update. */
  readonly failed: readonly string[];
  /** Made by the next update whether they are there or not. */
  readonly left: readonly string[];
  /** Why `pulumi preview` is refused, so that unrecorded resources were not looked for. */
  readonly refusal?: string;
  /** File with the state as it was; absent when nothing was changed. */
  readonly copy?: string;
}

/** A recovery in sentences, one a line; none when there was nothing to recover. */
export function summaryOf(recovery: Recovery): string[] {
  const { adopted, forgotten, failed, left, refusal } = recovery;
  const line = (text: string, names: readonly string[]): string[] =>
    names.length === 0 ? [] : [`${text}: ${names.join(", ")}`];
  return [
    ...line("in Azure, and now in the state", adopted),
    ...line("not in Azure, and no longer in the state", forgotten),
    ...line("not finished in Azure, so the next pulumi up updates it", failed),
    ...line("left to the next pulumi up, which makes it or takes it as it is", left),
    ...(refusal === undefined
      ? []
      : [
          "resources that Azure may have and the state has not were not looked for, since pulumi preview is refused:",
          ...refusal.split("\n").map((text) => `  ${text}`),
        ]),
  ];
}

const lookEvery = 5_000;
/** The agent gives a script 90 minutes. */
const patience = 95 * 60_000;

/** Finds out what became of resources whose creation was interrupted, and records it. */
export const recover = (options: RecoverOptions): Promise<Recovery> => new Recover(options).run();

/**
 * Repairs a stack's state after an update that did not end.
 *
 * The engine does not go on from a creation that it began and did not see the end of: it would
 * create again, and azure-native refuses what is there already. So each such resource is put into
 * the state by the id that it must have, and `pulumi refresh` reads it: what is there stays, what
 * is not goes.
 *
 * Its operation stays pending in the state until all is done, so that this may be interrupted
 * anywhere and run again.
 */
class Recover {
  /** What was looked for, or is to be: one preview after another plans what is not there. */
  private readonly asked = new Set<string>();

  constructor(private readonly options: RecoverOptions) {}

  async run(): Promise<Recovery> {
    const before = await this.export();
    const { resources = [], pending_operations: pending = [] } = before.deployment;
    const begun = pending.filter(({ type }) => type === "creating").map(({ resource }) => resource);
    for (const { urn } of begun) this.asked.add(urn);
    const { lost, refusal } = await this.unrecorded(before.deployment, begun);
    const candidates = firstOfEach([
      ...(await this.located(begun.filter(isInAzure), before.deployment)),
      ...lost,
      ...resources.filter((one) => isAwaitingReplacement(one) || isUnread(one)),
    ]);
    const left = begun.filter((one) => !isInAzure(one)).map(({ urn }) => nameOf(urn));
    const changing = pending.filter(({ type }) => type === "updating" || type === "deleting");
    const doubtful = [...changing.map(({ resource }) => resource), ...resources.filter(isInFlight)]
      .filter((one) => isInAzure(one) && currentOf(before.deployment, one.urn) !== undefined)
      .map(({ urn }) => urn);
    const looked = [...new Set([...candidates.map(({ urn }) => urn), ...doubtful])];
    const names = (urns: readonly string[]) => urns.map(nameOf);
    const nothing = {
      looked: names(looked),
      adopted: [],
      forgotten: [],
      failed: [],
      left,
      refusal,
    };
    if (looked.length === 0 && pending.length === 0) return nothing;
    if (looked.length > 0) this.log(`looking whether Azure has ${names(looked).join(", ")}`);
    if (this.options.dryRun) return nothing;

    const copy = this.keep(before);
    await this.begin(before, candidates);
    const targets = withWhatGoesToo(before.deployment, looked);
    const after = await this.settled(targets).catch((error: unknown) => {
      const unsure = names(candidates.map(({ urn }) => urn)).join(", ");
      if (unsure !== "") {
        this.log(
          `the state has ${unsure} for now, whether Azure has it or not: run this again, before any pulumi up`,
        );
      }
      throw error;
    });
    const unanswered = targets.filter((urn) => isUnread(currentOf(after.deployment, urn)));
    if (unanswered.length > 0) {
      throw new UserError(
        `Azure does not say whether it has ${names(unanswered).join(", ")}, which the state has for now: ` +
          "run this again, before any pulumi up",
      );
    }
    await this.refuseOthers(before, after, candidates);
    await this.finish(after, candidates);

    const found = (urn: string): Recorded | undefined => currentOf(after.deployment, urn);
    const known = new Set([...resources, ...begun].map(({ urn }) => urn));
    const recovery = {
      looked: names(looked),
      adopted: names(candidates.map(({ urn }) => urn).filter((urn) => found(urn) !== undefined)),
      forgotten: names(targets.filter((urn) => known.has(urn) && found(urn) === undefined)),
      failed: names(targets.filter((urn) => unfinished(found(urn)))),
      left,
      refusal,
      copy,
    };
    // What was ordered after these, and its names, a preview shows only now.
    const isOlder = lost.some(({ urn }) => found(urn) !== undefined);
    return isOlder ? joined(recovery, await this.run()) : recovery;
  }

  /** What the program would create and Azure may have. */
  private async unrecorded(
    deployment: Deployment,
    begun: readonly Recorded[],
  ): Promise<{ lost: Created[]; refusal?: string }> {
    const { onlyAfterFailure, progress } = this.options;
    if (deployment.resources === undefined) return { lost: [] };
    if (onlyAfterFailure && !(await this.lastUpFailed())) return { lost: [] };
    const step = progress?.step("asking pulumi preview what there is still to create");
    const { code, stdout, stderr } = await this.pulumi("preview", "--json", ...this.configured());
    step?.done();
    let preview: Preview;
    try {
      preview = JSON.parse(stdout) as Preview;
    } catch {
      return { lost: [], refusal: stderr.trim() || stdout.trim() };
    }
    const refusal = code === 0 ? undefined : refusalOf(preview) || stderr.trim();
    const planned = plannedIn(preview);
    if (!planned.some(isInAzure)) return { lost: [], refusal };
    const subscription = await this.subscription([...deployment.resources, ...planned]);
    const lost = maybeCreated(planned, begun, deployment, subscription).filter(
      ({ urn }) => !this.asked.has(urn),
    );
    for (const { urn } of lost) this.asked.add(urn);
    return { lost, refusal };
  }

  private async lastUpFailed(): Promise<boolean> {
    const words = ["stack", "history", "--json", "--page-size", "20"];
    const text = await this.must(...words, ...this.named());
    const updates = JSON.parse(text) as { kind: string; result: string }[];
    const last = updates.find(({ kind }) => kind === "update" || kind === "destroy");
    return last !== undefined && last.result !== "succeeded";
  }

  /** The ids of resources whose creation was begun. */
  private async located(
    begun: readonly Recorded[],
    { resources = [] }: Deployment,
  ): Promise<Created[]> {
    if (begun.length === 0) return [];
    const subscription = await this.subscription([...resources, ...begun]);
    return begun.map((one) => {
      const id = idOfCreated(one, subscription);
      if (id !== undefined) return { ...one, id, inputs: one.inputs ?? {} };
      throw new UserError(
        `this command does not know the id of ${nameOf(one.urn)} (${one.type}): ` +
          "look in the portal whether it is there, delete it if it is, then pulumi refresh --clear-pending-creates",
      );
    });
  }

  private async subscription(resources: readonly Recorded[]): Promise<string> {
    const id = subscriptionIn(resources) ?? (await this.options.subscription?.());
    if (id !== undefined) return id;
    throw new UserError(
      "which Azure subscription the stack is in cannot be read from its state: " +
        "sign in by az login, or set ARM_SUBSCRIPTION_ID, then run this again",
    );
  }

  /** Puts resources into the state as created, and leaves their operations pending. */
  private async begin(before: Exported, created: readonly Created[]): Promise<void> {
    const now = await this.export();
    if (JSON.stringify(now) !== JSON.stringify(before)) {
      throw new UserError(
        `stack ${this.options.stack} was changed by another process meanwhile, and nothing was changed here: ` +
          "run this again",
      );
    }
    const creating = created.map((resource) => ({ type: "creating" as const, resource }));
    const deployment = withCreated(before.deployment, created.map(unread));
    await this.import({ ...now, deployment: { ...deployment, pending_operations: creating } });
  }

  /** The state once Azure works on none of these any more. */
  private async settled(targets: readonly string[]): Promise<Exported> {
    const { progress, signal } = this.options;
    const until = Date.now() + patience;
    for (let working = targets; ;) {
      await this.refresh(working);
      const state = await this.export();
      working = working.filter((urn) => {
        const one = currentOf(state.deployment, urn);
        return one !== undefined && isInFlight(one);
      });
      if (working.length === 0 || Date.now() > until) return state;
      const names = working.map(nameOf).join(", ");
      const step = progress?.step(`Azure still works on ${names}; waiting`);
      await pause(lookEvery, signal);
      step?.done(false);
    }
  }

  private async refresh(urns: readonly string[]): Promise<void> {
    if (urns.length === 0) return;
    const step = this.options.progress?.step("asking Azure by pulumi refresh");
    const targets = urns.flatMap((urn) => ["--target", urn]);
    const flags = ["--yes", "--skip-preview", "--skip-pending-creates", "--run-program=false"];
    try {
      await this.must("refresh", ...flags, ...this.configured(), ...targets);
      step?.done();
    } catch (error) {
      step?.done(false);
      const gone = await this.forgetAssignments(messageOf(error));
      if (gone.length === 0) throw error;
      await this.refresh(urns.filter((urn) => !gone.includes(urn)));
    }
  }

  /**
   * Takes out of the state what a refresh was refused for: some releases of the plugin take it for an error that a role
   * assignment is not there (pulumi-azure-native#4802). Returns their URNs.
   */
  private async forgetAssignments(refusal: string): Promise<string[]> {
    const names = [...refusal.matchAll(/RoleAssignmentNotFound.*?'([\w-]+)'/g)].map(
      ([, one]) => one!,
    );
    if (names.length === 0) return [];
    const state = await this.export();
    const { resources = [] } = state.deployment;
    const gone = resources.filter((one) => isUnread(one) && names.includes(nameIn(one.id)));
    const kept = resources.filter((one) => !gone.includes(one));
    if (gone.length > 0) {
      await this.import({ ...state, deployment: { ...state.deployment, resources: kept } });
    }
    return gone.map(({ urn }) => urn);
  }

  /**
   * Takes everything out of the state again where something is there and not by this stack, which gives its own
   * resource group a tag, and in one of others each resource: `pulumi destroy` would delete what others have.
   */
  private async refuseOthers(
    before: Exported,
    after: Exported,
    created: readonly Created[],
  ): Promise<void> {
    const others = created.filter(({ urn, inputs }) => {
      const found = currentOf(after.deployment, urn);
      const own = stackIn(inputs);
      return own !== undefined && found !== undefined && stackIn(found.outputs) !== own;
    });
    const [other] = others;
    if (other === undefined) return;
    const isOthers = ({ urn }: Recorded): boolean => others.some((one) => one.urn === urn);
    const { resources = [], pending_operations: pending = [] } = before.deployment;
    await this.import({
      ...before,
      deployment: {
        ...before.deployment,
        resources: resources.filter((one) => !isOthers(one)),
        pending_operations: pending.filter(({ resource }) => !isOthers(resource)),
      },
    });
    const found = stackIn(currentOf(after.deployment, other.urn)?.outputs);
    throw new UserError(
      `${other.id} is there ${found === undefined ? "without the tag zoned-stack" : `with the tag zoned-stack=${found}`}, ` +
        `expected zoned-stack=${stackIn(other.inputs)}, which this stack gives to its own. It is somebody else's, and nothing was put into the state: ` +
        "take another name for the cluster (pulumi config set clusterName NAME), then run pulumi up",
    );
  }

  /** Records what was sent where Azure does not show it, and that nothing is pending any more. */
  private async finish(state: Exported, created: readonly Created[]): Promise<void> {
    const sent = new Map(created.map((one) => [one.urn, one]));
    const resources = (state.deployment.resources ?? []).map((one): Recorded => {
      const mine = sent.get(one.urn);
      const isMine = mine !== undefined && !one.delete && isSameId(one.id, mine.id);
      const inputs = isMine ? { inputs: inputsOf(mine.inputs, one.inputs ?? {}) } : {};
      const errors = unfinished(one) ? { initErrors: ["Azure has not finished it"] } : {};
      return { ...one, ...inputs, ...errors };
    });
    const deployment = { ...state.deployment, resources, pending_operations: [] };
    await this.import({ ...state, deployment });
  }

  private async export(): Promise<Exported> {
    return JSON.parse(await this.must("stack", "export", ...this.named())) as Exported;
  }

  private async import(state: Exported): Promise<void> {
    const file = join(this.options.copies, `import-${randomUUID()}.json`);
    try {
      writeWhole(file, JSON.stringify(state));
      await this.must("stack", "import", ...this.named(), "--file", file);
    } finally {
      rmSync(file, { force: true });
    }
  }

  private keep(state: Exported): string {
    const time = new Date().toISOString().replace(/[:.]/g, "-");
    const { copies, stack } = this.options;
    const file = join(copies, `${stack.replaceAll("/", "-")}-${time}.json`);
    try {
      makeFolder(copies);
      writeWhole(file, JSON.stringify(state, undefined, 2));
    } catch (error) {
      throw new UserError(
        `a copy of the state cannot be kept in ${copies}: ${reasonOf(error)}. Nothing was changed. ` +
          "Make it writable, or name another folder: npm run recover -- --copies FOLDER",
      );
    }
    this.log(`the state as it was: ${file}`);
    return file;
  }

  private log(line: string): void {
    this.options.progress?.line(line);
  }

  private named = (): string[] => ["--stack", this.options.stack];

  private configured(): string[] {
    const { configFile } = this.options;
    return [...this.named(), ...(configFile === undefined ? [] : ["--config-file", configFile])];
  }

  private pulumi(...args: string[]): Promise<Ended> {
    return this.options.pulumi(args);
  }

  private async must(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.pulumi(...args);
    if (code === 0) return stdout;
    const output = [stderr.trim(), stdout.trim()].filter((text) => text !== "").join("\n");
    throw new UserError(`pulumi ${args[0]} ended with ${code}:\n${output}`);
  }
}

/**
 * Whether a resource was deleted and its replacement never created. The engine takes such an entry
 * up well only while what it was replaced for is replaced, too: else it deletes what it has just
 * created, since both have one id.
 */
const isAwaitingReplacement = (one: Recorded): one is Created =>
  isInAzure(one) && one.pendingReplacement === true && one.id !== undefined;

/**
 * Put into the state and never read, since Azure did not answer then. The engine takes such an
 * entry for what is there.
 */
const isUnread = (one: Recorded | undefined): one is Created =>
  one !== undefined &&
  isInAzure(one) &&
  one.id !== undefined &&
  !one.delete &&
  Object.keys(one.outputs ?? {}).length === 0;

/** The name at the end of an id of Azure's. */
const nameIn = (id: string): string => id.split("/").at(-1)!;

/** One recovery after another. */
function joined(first: Recovery, second: Recovery): Recovery {
  const both = (name: "looked" | "adopted" | "forgotten" | "failed" | "left") => [
    ...new Set([...first[name], ...second[name]]),
  ];
  return {
    looked: both("looked"),
    adopted: both("adopted"),
    forgotten: both("forgotten"),
    failed: both("failed"),
    left: both("left"),
    refusal: second.refusal,
    copy: first.copy,
  };
}

/** The stack that has made a resource, by its tags. */
const stackIn = (properties: Inputs = {}): string | undefined => stackOf(properties["tags"]);

const firstOfEach = (all: readonly Created[]): Created[] =>
  all.filter((one, index) => all.findIndex(({ urn }) => urn === one.urn) === index);

const unfinished = (one: Recorded | undefined): boolean =>
  one !== undefined && (hasFailed(one) || isInFlight(one));

/** As good as never read: the entry of a resource of which only the id is known. */
function unread(one: Created): Created {
  const { outputs: _outputs, initErrors: _errors, pendingReplacement: _pending, ...rest } = one;
  return rest;
}
