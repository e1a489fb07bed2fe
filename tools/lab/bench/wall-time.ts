import { readdirSync, readFileSync } from "node:fs";

import type { ResourceManager } from "../../local-azure/arm/resource-manager";
import { valid } from "../../local-azure/tests/support/arm/valid-resources";
import { type Link, longestChain } from "./chain";
import { type Bench, onLocalAzure, stackOn, stateOf, timed } from "./local-stack";

/** Operations take this share of Azure's time. */
const factor = 0.5;

/** For `pulumi up --parallel`; the default depends on the number of cores. */
const parallel = "64";

export interface WallTime {
  readonly stack: string;
  /** Seconds with at least one Azure operation in progress. */
  readonly simulated: number;
  /** Seconds without one: engine, program and cluster. */
  readonly own: number;
  readonly predicted: number;
  readonly chain: readonly Link[];
  readonly forced: number;
}

/**
 * The first update of a stack, with a share of the durations that others have measured on Azure.
 *
 * @param of what its machines are made of
 */
export const wallTime = (
  bench: Bench,
  name: string,
  of: "Ubuntu" | "an image" = "Ubuntu",
): Promise<WallTime> =>
  onLocalAzure(bench, factor, async (azure, state) => {
    const stack = of === "Ubuntu" ? name : `${name} of ${of}`;
    bench.log(`stack ${stack}: first update, at ${factor} of Azure's time`);
    const rehearsal = await stackOn(bench, azure, state, { stack: name });
    if (of === "an image") {
      const { location } = rehearsal.settings;
      await rehearsal.configure({ image: await someGalleryImage(azure.arm, String(location)) });
    }
    const { seconds } = await timed(() => rehearsal.up("--skip-preview", "--parallel", parallel));
    const simulated = covered(
      azure.arm.log
        .read()
        .filter(({ method }) => method === "PUT")
        .map(({ startedAt, endedAt }) => [Date.parse(startedAt), Date.parse(endedAt)]),
    );
    const own = seconds - simulated;
    const chain = longestChain(await stateOf(rehearsal));
    const forced = chain.reduce((sum, link) => sum + link.seconds, 0);
    return { stack, simulated, own, predicted: own + simulated / factor, chain, forced };
  });

/** Seconds that are in at least one of the spans, which are in milliseconds. */
function covered(spans: readonly (readonly [number, number])[]): number {
  let milliseconds = 0;
  let until = -Infinity;
  for (const [start, end] of [...spans].sort(([a], [b]) => a - b)) {
    milliseconds += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return milliseconds / 1000;
}

const home = "westeurope";

/** A gallery image for machines of this region, made of one that is gone again, in no time. Returns its id. */
async function someGalleryImage(arm: ResourceManager, location: string): Promise<string> {
  const { factor } = arm.durations;
  arm.durations.set({ factor: 0 });
  try {
    for (const [kind, [id, body]] of Object.entries(valid)) {
      await arm.put(id, body);
      if (kind === "machine") break;
    }
    const [machine] = valid.machine;
    const image = `${valid.definition[0]}/versions/1.0.0`;
    await arm.power(machine, "deallocate", { perform: () => undefined });
    await arm.generalize(machine);
    await arm.put(image, {
      location: home,
      publishingProfile: {
        targetRegions: [...new Set([home, location])].map((name) => ({ name })),
      },
      storageProfile: { source: { virtualMachineId: machine } },
    });
    await arm.delete(machine);
    return image;
  } finally {
    arm.durations.set({ factor });
  }
}

/** One control plane and workers. */
const sizes = [3, 30, 300] as const;

const rounds = 2;

export interface Growth {
  readonly machines: number;
  readonly resources: number;
  readonly seconds: number;
  /** Engine, language host and program together, at their peak. */
  readonly mebibytes: number;
}

/**
 * The first preview of ever larger stacks; the quickest of some, since nothing makes one too quick.
 */
export async function growth(bench: Bench): Promise<readonly Growth[]> {
  const found: Growth[] = [];
  for (const machines of sizes) {
    found.push(
      await onLocalAzure(bench, 0, async (azure, state) => {
        const workers = { name: "workers", count: machines - 1, size: "Standard_B2s" };
        // Room for 300 machines and their pods.
        const ranges = { networkCidr: "172.16.0.0/12", podCidr: "100.64.0.0/10" };
        const settings = { ...ranges, workerPools: [workers] };
        const stack = await stackOn(bench, azure, state, { stack: "local", settings });
        const results: Growth[] = [];
        for (let round = 1; round <= rounds; round += 1) {
          bench.log(`preview of ${machines} machines, ${round} of ${rounds}`);
          const { result, mebibytes } = await peakMemory(() => timed(() => stack.preview()));
          const resources = result.run.changes["create"] ?? 0;
          results.push({ machines, resources, seconds: result.seconds, mebibytes });
        }
        return results.reduce((best, one) => (one.seconds < best.seconds ? one : best));
      }),
    );
  }
  return found;
}

const every = 100;

/**
 * Peak of the memory that all processes below this one hold together, in MiB, while `work` runs.
 * Linux only.
 */
async function peakMemory<T>(work: () => Promise<T>): Promise<{ result: T; mebibytes: number }> {
  let kibibytes = 0;
  const timer = setInterval(() => {
    kibibytes = Math.max(kibibytes, residentBelow(process.pid));
  }, every);
  try {
    return { result: await work(), mebibytes: Math.round(kibibytes / 1024) };
  } finally {
    clearInterval(timer);
  }
}

function residentBelow(root: number): number {
  const processes = new Map(
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), statusOf(name)]),
  );
  const isBelow = (pid: number): boolean => {
    const parent = processes.get(pid)?.parent;
    return parent !== undefined && (parent === root || isBelow(parent));
  };
  return [...processes]
    .filter(([pid]) => isBelow(pid))
    .reduce((sum, [, status]) => sum + (status?.resident ?? 0), 0);
}

function statusOf(pid: string): { parent: number; resident: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0);
    return { parent: field("PPid"), resident: field("VmRSS") };
  } catch {
    // It ended between the two looks.
    return undefined;
  }
}
