import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { allOnPath } from "../../programs/engine";
import { readJson, writeWhole } from "../../shared/files";

/** What upstream calls it where it is built, and in its image. */
const names = ["azure-cloud-controller-manager", "cloud-controller-manager"];

const answersWithinMs = 10_000;

/** Azure's cloud controller manager as a program on this host. */
export interface ControllerManagerProgram {
  readonly path: string;
  /** Such as `v1.36.5`; what builds it may leave another word. */
  readonly version: string;
}

const recordFile = (state: string): string => join(state, "cloud-provider.json");

/** The one that the local Azure of this state folder runs; without it, one is simulated. */
export function controllerManagerOf(state: string): ControllerManagerProgram | undefined {
  if (!existsSync(recordFile(state))) return undefined;
  const { program } = readJson(recordFile(state)) as { program?: ControllerManagerProgram };
  return program && existsSync(program.path) ? program : undefined;
}

/**
 * Looks for it on PATH, for the local Azure that starts next.
 *
 * @returns a line that says what will run
 */
export function chooseControllerManager(state: string, path = process.env.PATH ?? ""): string {
  const program = find(path);
  writeWhole(recordFile(state), JSON.stringify({ program }));
  return described(program);
}

export const described = (program: ControllerManagerProgram | undefined): string =>
  program
    ? `runs Azure's cloud controller manager ${program.version} (${program.path}); its node manager is simulated, and claims get no disk`
    : `simulates Azure's cloud provider for nodes alone, since PATH has no ${names.join(" or ")}: Services get no load balancer, claims no disk`;

function find(path: string): ControllerManagerProgram | undefined {
  for (const candidate of names.flatMap((name) => allOnPath(name, path))) {
    // Other clouds have one of the same name.
    const [, version] = /^Cloud Provider Azure (\S+)/m.exec(versionOf(candidate)) ?? [];
    if (version !== undefined) return { path: candidate, version };
  }
  return undefined;
}

function versionOf(file: string): string {
  try {
    return execFileSync(file, ["--version"], {
      encoding: "utf8",
      timeout: answersWithinMs,
      stdio: ["ignore", "pipe", "ignore"],
    });
  } catch {
    return "";
  }
}
