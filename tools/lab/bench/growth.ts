import { readdirSync, readFileSync } from "node:fs";

import { type Bench, onLocalAzure, stackOn, timed } from "./local-stack";

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
