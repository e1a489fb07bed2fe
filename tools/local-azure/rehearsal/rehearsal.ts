import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import {
  damageOf,
  type Ended,
  endRunsIn,
  enginesLeftIn,
  isPulumi,
  operate,
  pulumi,
  type PulumiOptions,
} from "../../pulumi/pulumi";
import { type Outcome, plannedSteps } from "../../pulumi/events";
import { recover, summaryOf } from "../../recover/recover";
import { checkout } from "../../shared/checkout";
import { pause } from "../../shared/concurrency";
import { writeWhole } from "../../shared/files";
import type { Progress } from "../../shared/progress";
import { UserError } from "../../shared/user-error";
import { account } from "../arm/resources/resource";
import {
  type Address,
  attachedEnvironment,
  type Attachment,
  endpointOf,
  secureEndpointOf,
} from "../daemon/attachment";
import { hostSettings } from "../machines/qemu/host";
import { pluginsOf } from "./choose-plugins";
import { assumedSettings, passphraseOf, projectOf, stackSettings, writeConfig } from "./settings";

export interface RehearsalOptions {
  /** Folder of everything that the rehearsal keeps. */
  readonly state: string;
  readonly stack: string;
  /** Folder of the engine, kubectl and the rest, from `prepareBinaries`. */
  readonly binaries: string;
  readonly azure: Attachment;
  /**
   * Folder of the Pulumi project.
   *
   * @default the checkout
   */
  readonly program?: string;
  /** Above the stack's own settings, by bare key; `undefined` takes a setting away. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** What else the program finds in its environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Shows the engine's output; without it, nothing is shown. */
  readonly progress?: Progress;
  /** Aborted by Ctrl-C: the engine then ends orderly. */
  readonly signal?: AbortSignal;
}

/** What a run of the engine came to. */
export type Run = Ended &
  Outcome & {
    /** The steps that the preview before it announced, where there was one. */
    readonly planned?: readonly string[];
  };

/** One stack of the program on the local Azure, with a backend, secrets and settings of its own. */
export class Rehearsal {
  /** By which pulumi is run on the stack. */
  readonly engine: PulumiOptions;
  #settings: Readonly<Record<string, unknown>>;

  private constructor(
    private readonly options: RehearsalOptions,
    private readonly assumed: Readonly<Record<string, unknown>>,
  ) {
    const { state, binaries, azure, program = checkout, signal } = options;
    const environment = {
      ...attachedEnvironment(azure, pluginsOf(state)),
      // The program asks the address that it writes into azure.json.
      ...(hostSettings(state) && { NODE_EXTRA_CA_CERTS: azure.authority }),
      ...options.environment,
    };
    const passphrase = passphraseOf(state);
    this.engine = { state, binaries, environment, program, signal, passphrase };
    this.#settings = options.settings ?? {};
  }

  /** Prepares a stack, or takes up one where an earlier run left it. */
  static async open(options: RehearsalOptions): Promise<Rehearsal> {
    const { state, stack, program = checkout, settings = {}, progress } = options;
    mkdirSync(state, { recursive: true, mode: 0o700 });
    const assumed = await assumedSettings({ state, stack, program, settings, progress });
    const rehearsal = new Rehearsal(options, assumed);
    await endEarlierRun(rehearsal.engine, { ...rehearsal.place, stack, progress });
    await rehearsal.#init();
    await rehearsal.configure(settings);
    await rehearsal.#recover();
    return rehearsal;
  }

  /**
   * Takes up what an earlier run created and could not record, by the code of `npm run recover`.
   */
  async #recover(): Promise<void> {
    const { state, stack, progress, signal } = this.options;
    const recovery = await recover({
      stack,
      pulumi: (args) => pulumi(args, this.engine),
      configFile: this.place.config,
      copies: join(state, "recovered"),
      subscription: async () => account.subscriptionId,
      onlyAfterFailure: true,
      progress,
      signal,
    });
    for (const line of summaryOf(recovery)) progress?.line(line);
  }

  /** Changes the settings that are above those of the stack's file. */
  async configure(settings: Readonly<Record<string, unknown>>): Promise<void> {
    this.#settings = settings;
    const { program } = this.engine;
    const { azure, state } = this.options;
    // Real machines run upstream's cloud provider, which finds the address in azure.json.
    const addressOf = hostSettings(state) ? secureEndpointOf : endpointOf;
    const endpoint = { resourceManagerEndpoint: addressOf(azure.ports) };
    const { unreadable } = writeConfig({
      program,
      stack: this.options.stack,
      file: this.place.config,
      settings: { ...this.assumed, ...endpoint, ...this.#settings },
    });
    for (const key of unreadable) {
      // A stand-in for what only its owner can decrypt; nothing here would accept the real one
      // anyway.
      await this.#must(["config", "set", "--secret", ...this.#of(), key, "rehearsal"]);
    }
  }

  /** Sets what is encrypted in the stack's file, by its path, until settings are changed again. */
  async setSecret(path: string, value: string): Promise<void> {
    await this.#must(["config", "set", "--secret", "--path", ...this.#of(), path, value]);
  }

  /** `pulumi up` as a person runs it: its preview first. */
  up(...flags: string[]): Promise<Run> {
    return this.#operate("up", "--yes", ...flags);
  }

  preview(...flags: string[]): Promise<Run> {
    return this.#operate("preview", ...flags);
  }

  refresh(...flags: string[]): Promise<Run> {
    return this.#operate("refresh", "--yes", ...flags);
  }

  destroy(...flags: string[]): Promise<Run> {
    return this.#operate("destroy", "--yes", ...flags);
  }

  /** Takes the stack's protection away, so that a rehearsal of production can be destroyed. */
  async unprotect(): Promise<void> {
    await this.#must(["state", "unprotect", "--all", "--yes", ...this.#named()]);
  }

  /** Any other command of the engine on this stack, captured. */
  command(...args: string[]): Promise<Ended> {
    return pulumi([...args, ...this.#named()], this.engine);
  }

  /** The stack's outputs, secrets in clear. */
  async outputs(): Promise<Record<string, unknown>> {
    const args = ["stack", "output", "--json", "--show-secrets", ...this.#named()];
    return JSON.parse(await this.#must(args)) as Record<string, unknown>;
  }

  /** The stack's state as it is exported, secrets encrypted. */
  async stackExport(): Promise<unknown> {
    return JSON.parse(await this.#must(["stack", "export", ...this.#named()]));
  }

  /** The stack's settings as they are rehearsed, by bare key. */
  get settings(): Readonly<Record<string, unknown>> {
    const above = { ...this.assumed, ...this.#settings };
    return stackSettings(this.engine.program, this.options.stack, above);
  }

  /** Where the API of this name listens. */
  apiAddress(apiName: string): Promise<Address | undefined> {
    return this.options.azure.apiAddress(apiName);
  }

  /** Where things of this stack are. */
  get place(): { readonly config: string; readonly checkpoint: string; readonly project: string } {
    const { state, stack, program = checkout } = this.options;
    const project = projectOf(program);
    return {
      project,
      config: join(state, `Pulumi.${stack}.yaml`),
      checkpoint: join(state, "backend", ".pulumi", "stacks", project, `${stack}.json`),
    };
  }

  async #init(): Promise<void> {
    const { checkpoint, project } = this.place;
    if (existsSync(checkpoint)) {
      const damage = damageOf(checkpoint);
      if (damage === undefined) return;
      throw new UserError(
        `the state of stack ${this.options.stack}, ${checkpoint}, is damaged: ${damage}.\n` +
          "  It was left as it is. Put back a good copy, or give the rehearsal up: npm stop removes it, and npm start begins anew.",
      );
    }
    // From a folder of its own: `stack init` writes into the stack's file beside Pulumi.yaml.
    const program = join(this.options.state, "project");
    mkdirSync(program, { recursive: true });
    writeWhole(join(program, "Pulumi.yaml"), `name: ${project}\nruntime: nodejs\n`);
    await this.#must(["stack", "init", ...this.#named(), "--no-select"], program);
  }

  #named = (): string[] => ["--stack", this.options.stack];

  #of = (): string[] => [...this.#named(), "--config-file", this.place.config];

  #operate(command: string, ...flags: string[]): Promise<Run> {
    return operate([command, ...this.#of(), ...flags], this.engine, this.options.progress).then(
      (ended) => ({ ...ended, planned: plannedSteps(ended.stdout) }),
    );
  }

  async #must(args: readonly string[], program = this.engine.program): Promise<string> {
    const { code, stdout, stderr } = await pulumi(args, { ...this.engine, program });
    if (code === 0) return stdout;
    throw new UserError(
      `pulumi ${args.slice(0, 2).join(" ")} ended with ${code}:\n${stderr || stdout}`,
    );
  }
}

interface Stack {
  readonly stack: string;
  readonly project: string;
  readonly progress?: Progress;
}

const patience = 120_000;

/** Engines that hold this stack, by their own lock files. */
function enginesOf(folder: string): number[] {
  const locks = existsSync(folder) ? readdirSync(folder) : [];
  return locks.flatMap((name) => {
    try {
      const { pid } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { pid: number };
      return isPulumi(pid) ? [pid] : [];
    } catch {
      return [];
    }
  });
}

/**
 * Ends what a killed run has left: first orderly its engine, should it still work, then all that
 * the engine had started, then its lock.
 */
export async function endEarlierRun(options: PulumiOptions, stack: Stack): Promise<void> {
  const { state, signal } = options;
  const locks = join(
    state,
    "backend",
    ".pulumi",
    "locks",
    "organization",
    stack.project,
    stack.stack,
  );
  const engines = (): Set<number> =>
    new Set([...enginesOf(locks), ...enginesLeftIn(state).map(({ pid }) => pid)]);
  const left = engines();
  if (left.size > 0) {
    const step = stack.progress?.step(
      "an earlier run was killed; waiting for its engine to end orderly",
    );
    for (const pid of left) end(pid, "SIGINT");
    const until = Date.now() + patience;
    while (engines().size > 0 && Date.now() < until) {
      await pause(200, signal);
    }
    for (const pid of engines()) end(pid, "SIGKILL");
    step?.done();
  }
  await endRunsIn(state);
  rmSync(locks, { recursive: true, force: true });
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}
