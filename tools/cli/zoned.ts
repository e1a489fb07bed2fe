import { join, resolve } from "node:path";

import { bench } from "../lab/bench/bench";
import { defaultScale } from "../local-azure/machines/qemu/sizes";
import { defaultState } from "../local-azure/rehearsal/state-folder";
import { cacheFolder } from "../programs/tools";
import { Progress } from "../shared/progress";
import { type FaultsOptions, testFaults } from "../lab/faults/suite";
import { testMachines } from "../lab/machines/suite";
import { lint, test } from "./test/check";
import { commandName, perform, typed } from "./command";
import { mirrorCommand, type MirrorWords } from "./mirror";
import { start } from "./start";
import { stop } from "../local-azure/rehearsal/stop";

interface StartWords {
  readonly stack?: string;
  readonly port?: number;
  readonly state?: string;
  readonly machines: "simulated" | "qemu";
  readonly scale?: number;
}

type FaultsWords = Omit<FaultsOptions, "keys" | "folder"> & { readonly folder?: string };

const progress = new Progress();

const inCache = (name: string, folder = join(cacheFolder(), name)): string => resolve(folder);

const commands: Readonly<Record<string, (signal: AbortSignal) => Promise<number | void>>> = {
  start(signal) {
    const { machines, scale = defaultScale, ...options } = typed<StartWords>().options;
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
  mirror: (signal) => mirrorCommand(typed<MirrorWords>().options, progress, signal),
};

perform(commands[commandName()]!);
