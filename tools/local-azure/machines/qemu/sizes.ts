import { readFileSync } from "node:fs";

import { UserError } from "../../../shared/user-error";
import { findSize } from "../../arm/subscription/offers";
import type { Accelerator } from "./hypervisor";

/** What a machine gets of this host. */
export interface Shape {
  readonly cores: number;
  readonly memoryMib: number;
}

interface Sized {
  readonly name: string;
  readonly size: string;
}

/** How much of a size's memory its machine gets here, unless the user says otherwise. */
export const defaultScale = 0.75;

/** Below it, Kubernetes does not run on the sizes that a cluster is made of. */
const smallestScale = 0.4;

/**
 * For translated code, the most that QEMU takes. Once it is full, an emulated processor forgets all of
 * it and begins anew: with half of it that happens amid kubeadm init.
 */
export const translatedMib = 2048;

/** What a process of QEMU needs besides the machine's memory. */
const overheadMib = (accelerator: Accelerator): number =>
  128 + (accelerator === "tcg" ? translatedMib : 0);

/** kubeadm wants two processors of a control plane. */
const fewestCores = 2;

/**
 * Whether control planes outnumber the host's processors, and kubeadm lets them have but one each.
 */
export const outnumberHostCores = (
  controlPlanes: number,
  hostCores: number,
  ignoredChecks: readonly string[],
): boolean => controlPlanes > hostCores && ignoredChecks.includes("NumCPU");

/**
 * How many processors a machine has here at most. Those that are emulated and share one of the host's
 * wait for each other, so a machine has one then, unless it is a control plane that is not one of
 * too many.
 */
export const mostCores = (hostCores: number, isWaitedFor: boolean, oneVcpuEach: boolean): number =>
  isWaitedFor && !oneVcpuEach ? Math.max(fewestCores, hostCores) : 1;

/**
 * Linux gives a fifth less for each step of it. An emulated machine of one processor gets half of what
 * one of two gets, which would have as much as it otherwise; one that gives way, a fifth.
 */
export const niceness = {
  givingWay: 7,
  of: ({ cores }: Shape, accelerator: Accelerator): number =>
    accelerator === "tcg" && cores === 1 ? 3 : 0,
} as const;

/** A size as memory, scaled, and as cores, of which there are so many at most. */
export function shapeOf(size: string, scale: number, most: number): Shape {
  const found = findSize(size);
  if (found === undefined) {
    throw new UserError(
      `size ${size} is none that the local Azure knows, so its machine has no shape`,
    );
  }
  return {
    cores: Math.min(found.cores, most),
    memoryMib: Math.round(found.memoryGb * 1024 * scale),
  };
}

const gib = (mib: number): string => `${(mib / 1024).toFixed(1)} GiB`;

/** What these machines take of this host in all. */
export const neededMib = (
  machines: readonly Sized[],
  scale: number,
  accelerator: Accelerator,
): number =>
  machines.reduce((sum, { size }) => sum + shapeOf(size, scale, fewestCores).memoryMib, 0) +
  machines.length * overheadMib(accelerator);

/** Refuses machines that this host has no memory for, with the arithmetic. */
export function checkFits(
  machines: readonly Sized[],
  scale: number,
  accelerator: Accelerator,
  availableMib: number,
): void {
  const needed = neededMib(machines, scale, accelerator);
  if (needed <= availableMib) return;
  const terms = [...new Set(machines.map(({ size }) => size))].map((size) => {
    const count = machines.filter((one) => one.size === size).length;
    return `${count} × ${size} of ${gib(shapeOf(size, scale, fewestCores).memoryMib)}`;
  });
  const overhead = overheadMib(accelerator);
  const own = needed - machines.length * overhead;
  const possible = (scale * (availableMib - machines.length * overhead)) / own;
  const advice =
    possible >= smallestScale
      ? `--scale ${Math.floor(possible * 20) / 20} may do, smaller sizes or fewer machines will`
      : "take smaller sizes or fewer machines";
  throw new UserError(
    `these machines need ${gib(needed)} of memory: ${terms.join(", ")} (at --scale ${scale}), and ` +
      `${gib(overhead)} for each one's QEMU; this host has ${gib(availableMib)} to give: ${advice}`,
  );
}

/** What the host keeps for itself and for the engine. */
const keptMib = 1024;

/** How much memory new processes may take: free, or held by caches that give way. */
export function availableMib(): number {
  const kib = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
  return Math.floor(Number(kib) / 1024) - keptMib;
}
