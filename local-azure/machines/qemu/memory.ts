import { readFileSync } from "node:fs";
import { freemem } from "node:os";

/** What the host keeps for itself and for the engine. */
const keptMib = 1024;

/** How much memory new processes may take: free, or held by caches that give way. */
export function availableMib(): number {
  let free = freemem() / 1024 / 1024;
  try {
    const found = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
    if (found !== undefined) free = Number(found) / 1024;
  } catch {
    // No /proc here: what is said to be free.
  }
  return Math.floor(free) - keptMib;
}
