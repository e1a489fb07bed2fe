import { type Progress, spoken } from "../../shared/progress";
import { type Attachment, endpointOf } from "../daemon/attachment";
import type { MachineReport } from "../machines/machines";

const lookEvery = 2_000;

/** Lines on machines whose step has changed since the last look. */
export function changesOf(
  before: ReadonlyMap<string, MachineReport>,
  now: readonly MachineReport[],
): string[] {
  return now.flatMap(({ name, power, step }) => {
    const last = before.get(name);
    const lines: string[] = [];
    if (last !== undefined && last.power !== power) lines.push(`  ${name}: ${power}`);
    if (last?.step && last.step !== step) {
      lines.push(`  ${name}: ${last.step} (${spoken(last.seconds * 1000)})`);
    }
    return lines;
  });
}

/** Says what real machines are at while something else is awaited; returns how to end that. */
export function followMachines({ ports }: Attachment, progress: Progress): () => void {
  let before = new Map<string, MachineReport>();
  const timer = setInterval(async () => {
    const response = await fetch(`${endpointOf(ports)}/local/health`).catch(() => undefined);
    const { machines = [] } = ((await response?.json().catch(() => undefined)) ?? {}) as {
      machines?: readonly MachineReport[];
    };
    for (const line of changesOf(before, machines)) progress.line(line);
    before = new Map(machines.map((one) => [one.name, one]));
  }, lookEvery).unref();
  return () => clearInterval(timer);
}
