import { readdirSync, readFileSync } from "node:fs";

const every = 100;

/** Peak of the memory that all processes below this one hold together, in MiB, while `work` runs. Linux only. */
export async function peakMemory<T>(
  work: () => Promise<T>,
): Promise<{ result: T; mebibytes: number }> {
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
