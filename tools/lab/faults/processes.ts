import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A process that a run of the engine consists of. */
export interface EngineProcess {
  readonly pid: number;
  readonly role: "engine" | "language host" | "program" | "other";
}

/** All that a run of the engine on this state folder has started, children of its children too. */
export function processesOf(state: string): EngineProcess[] {
  const mark = `PULUMI_HOME=${join(state, "pulumi-home")}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => read(pid, "environ").includes(mark))
    .map((pid) => ({ pid: Number(pid), role: roleOf(read(pid, "cmdline")) }));
}

/** One that has ended has no command line any more, and belongs to no case. */
function roleOf(command: readonly string[]): EngineProcess["role"] {
  const [program = "", ...args] = command;
  if (program.endsWith("/pulumi")) return "engine";
  if (program.endsWith("pulumi-language-nodejs")) return "language host";
  return args.some((word) => word.includes("@pulumi/pulumi/cmd/run")) ? "program" : "other";
}

function read(pid: string, file: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
  } catch {
    return [];
  }
}
