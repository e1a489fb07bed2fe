import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { allOnPath } from "../../programs/engine";
import { readJson, writeWhole } from "../../shared/files";

/** A program of upstream's on this host. */
interface Program {
  readonly path: string;
  /** Such as `v1.36.5`, where it matters; what builds it may leave another word. */
  readonly version?: string;
}

/** By the name of the image whose containers they run in place of. */
type Programs = Readonly<Record<string, Program>>;

const controllerManager = "azure-cloud-controller-manager";
const diskDriver = "azuredisk-csi";

interface Wanted {
  /** What upstream calls it where it is built, and in its image. */
  readonly names: readonly string[];
  /** The version in what it says of itself, where another program may have its name. */
  readonly says?: RegExp;
}

const wanted: Readonly<Record<string, Wanted>> = {
  [controllerManager]: {
    names: [controllerManager, "cloud-controller-manager"],
    says: /^Cloud Provider Azure (\S+)/m,
  },
  [diskDriver]: { names: ["azurediskplugin"], says: /^Driver Version: (\S+)/m },
  ...Object.fromEntries(
    [
      "csi-provisioner",
      "csi-attacher",
      "csi-resizer",
      "csi-snapshotter",
      "snapshot-controller",
    ].map((name) => [name, { names: [name] }]),
  ),
};

const answersWithinMs = 10_000;

const recordFile = (state: string): string => join(state, "own-programs.json");

/** Those that the local Azure of this state folder has found, and that are still there. */
function recorded(state: string): Programs {
  if (!existsSync(recordFile(state))) return {};
  const programs = Object.entries(readJson(recordFile(state)) as Programs);
  return Object.fromEntries(programs.filter(([, { path }]) => existsSync(path)));
}

/** Images of the disk driver's pods for which there is no program: it works with all or not at all. */
const missing = (programs: Programs): string[] =>
  Object.keys(wanted).filter((image) => image !== controllerManager && !(image in programs));

/**
 * What the local Azure of this state folder runs in place of pods that it would pretend to run: paths
 * by the name of the image.
 */
export function ownPrograms(state: string): Readonly<Record<string, string>> {
  const programs = recorded(state);
  return Object.fromEntries(
    Object.entries(programs)
      .filter(([image]) => image === controllerManager || missing(programs).length === 0)
      .map(([image, { path }]) => [image, path]),
  );
}

/** Looks for them on PATH, for the local Azure that starts next. */
export function chooseOwnPrograms(state: string, path = process.env.PATH ?? ""): void {
  const found = Object.entries(wanted).map(([image, one]) => [image, find(one, path)]);
  writeWhole(recordFile(state), JSON.stringify(Object.fromEntries(found)));
}

/** Lines that say what runs. */
export function described(state: string): string[] {
  const programs = recorded(state);
  const { [controllerManager]: manager, [diskDriver]: driver } = programs;
  const namesOf = (image: string): string => wanted[image]!.names.join(" or ");
  return [
    manager
      ? `runs Azure's cloud controller manager ${manager.version} (${manager.path}); its node manager is simulated`
      : `simulates Azure's cloud provider for nodes alone, since PATH has no ${namesOf(controllerManager)}: Services get no load balancer`,
    driver && missing(programs).length === 0
      ? `runs Azure's disk driver ${driver.version} (${driver.path}) in place of its controller's pods; on nodes it is simulated`
      : `claims get no disk, since PATH has no ${missing(programs).map(namesOf).join(", ")}`,
  ];
}

function find({ names, says }: Wanted, path: string): Program | undefined {
  const candidates = names.flatMap((name) => allOnPath(name, path));
  if (says === undefined) return candidates.map((one) => ({ path: one }))[0];
  for (const candidate of candidates) {
    const [, version] = says.exec(answerOf(candidate)) ?? [];
    if (version !== undefined) return { path: candidate, version };
  }
  return undefined;
}

function answerOf(file: string): string {
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
