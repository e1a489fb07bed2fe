import { once } from "node:events";
import { join, resolve } from "node:path";

import { bench } from "../lab/bench/bench";
import { defaultScale } from "../local-azure/machines/qemu/sizes";
import { defaultState } from "../local-azure/rehearsal/state-folder";
import { prepareMirror } from "../mirror/mirror";
import { serveMirror } from "../mirror/serve/serve";
import type { Report } from "../mirror/sources";
import { cacheFolder } from "../programs/tools";
import { Progress } from "../shared/progress";
import { Interrupted, UserError } from "../shared/user-error";
import { type FaultsOptions, testFaults } from "../lab/faults/suite";
import { testMachines } from "../lab/machines/suite";
import { lint, test } from "./test/check";
import { commandName, perform, typed } from "./command";
import { start } from "./start";
import { stop } from "../local-azure/rehearsal/stop";

interface StartWords {
  readonly stack?: string;
  readonly port?: number;
  readonly state?: string;
  readonly machines: "simulated" | "qemu";
  readonly scale?: number;
}

interface MirrorWords {
  readonly folder?: string;
  readonly system?: string;
  readonly serve?: { readonly address: string; readonly port: number };
}

type FaultsWords = Omit<FaultsOptions, "keys" | "folder"> & { readonly folder?: string };

const progress = new Progress();

const inCache = (name: string, folder = join(cacheFolder(), name)): string => resolve(folder);

const commands: Readonly<Record<string, (signal: AbortSignal) => Promise<number | void>>> = {
  start(signal) {
    const { machines, scale = defaultScale, ...options } = typed<StartWords>().options;
    if (machines !== "qemu" && scale !== defaultScale) {
      throw new UserError("--scale is of real machines: npm start -- --machines qemu --scale 0.75");
    }
    const qemu = machines === "qemu" ? { scale } : undefined;
    const stack = options.stack ?? (qemu ? "machines" : "local");
    const state = resolve(options.state ?? defaultState);
    return start({ ...options, stack, qemu, state }, progress, signal);
  },
  stop(signal) {
    const { discard, state = defaultState } = typed<{ discard: boolean; state?: string }>().options;
    return stop({ discard, state: resolve(state) }, progress, signal);
  },
  lint: (signal) => lint(progress, signal),
  test: (signal) => test(typed().args, progress, signal),
  "test-machines"(signal) {
    const { options, args } = typed<{ keep: boolean; folder?: string }>();
    const folder = inCache("test-machines", options.folder);
    return testMachines({ keep: options.keep, folder, only: args }, progress, signal);
  },
  "test-faults"(signal) {
    const { options, args } = typed<FaultsWords>();
    const folder = inCache("test-faults", options.folder);
    return testFaults({ ...options, keys: args, folder }, progress, signal);
  },
  bench: (signal) => bench(progress, signal),
  mirror,
};

/** Fills the folder, reports what is in it, and serves it when asked to. */
async function mirror(signal: AbortSignal): Promise<void> {
  const { serve, ...options } = typed<MirrorWords>().options;
  const { folder, report } = await prepareMirror({ ...options, progress, signal });
  progress.line(`the mirror in ${folder} has:`);
  for (const line of reportLines(report)) progress.line(line);
  if (serve === undefined) {
    progress.line("serve it: npm run mirror -- --serve ADDRESS:PORT");
    return;
  }
  const server = await serveMirror(folder, serve);
  progress.line(`serving it; for a stack: pulumi config set mirror ${server.url} (Ctrl-C ends it)`);
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
  throw new Interrupted();
}

/** The lines of a report. */
function reportLines({ items, missing }: Report): string[] {
  const width = Math.max(0, ...items.map(({ what }) => what.length));
  return [
    ...items.map(({ what, from }) => `  ${what.padEnd(width)}  ${from}`),
    ...(missing.length > 0 ? ["could not be had here, and is not in the mirror:"] : []),
    ...missing.flatMap(({ what, why, without }) => [
      `  - ${what}: ${why}`,
      ...(without === undefined ? [] : [`    a stack without it: ${without}`]),
    ]),
  ];
}

perform(commands[commandName()]!);
