import { existsSync } from "node:fs";
import { join } from "node:path";

import { minorFor, versions } from "../../../components/versions";
import { controllerManager, diskDriver, diskPlugin, nodeManager } from "../../programs/controllers";
import { isInstalled, placesOf, type InstallOptions, tryToInstall } from "../../programs/installs";
import type { Tool } from "../../programs/tools";
import { writeWhole } from "../../shared/files";
import { messageOf } from "../../shared/user-error";

/**
 * Where the program is that runs in place of an image's containers, once it is there; by the name of
 * the image.
 */
export type OwnPrograms = Readonly<Record<string, () => string | undefined>>;

/** Those of one controller, which works with all of them or not at all. */
interface Controller {
  /** By the name of the image. */
  readonly tools: Readonly<Record<string, Tool>>;
  /** The setting by which a stack does without it. */
  readonly setting: string;
  /** @param kubernetesVersion empty for the release's own */
  runs(kubernetesVersion: string): string;
  readonly without: string;
}

/** The longest build first. */
const controllers: readonly Controller[] = [
  {
    tools: {
      "azure-cloud-controller-manager": controllerManager,
      "azure-cloud-node-manager": nodeManager,
    },
    setting: "cloudProvider",
    runs(kubernetesVersion) {
      const { cloudProvider } = minorFor(kubernetesVersion || versions.kubernetes);
      const version = `v${controllerManager.version}`;
      const onAzure = cloudProvider === version ? "" : `, which on Azure have ${cloudProvider}`;
      return `runs Azure's cloud controller manager and node managers ${version} in place of their pods${onAzure}`;
    },
    without: "Services get no load balancer",
  },
  {
    tools: Object.fromEntries(
      diskDriver.map((tool) => [tool === diskPlugin ? "azuredisk-csi" : tool.name, tool]),
    ),
    setting: "diskDriver",
    runs: () =>
      `runs Azure's disk driver v${diskPlugin.version} in place of its controller's pods; on nodes it is simulated`,
    without: "claims get no disk",
  },
];

const missing = ({ tools }: Controller, cache?: string): Tool[] =>
  Object.values(tools).filter((tool) => !isInstalled(tool, cache));

const mark = (state: string): string => join(state, "own-programs");

/**
 * Has the local Azure of this state folder run programs in place of pods, from its next start on.
 * Without them nothing but the engine and the program asks Azure, which is what tests count.
 */
export const useOwnPrograms = (state: string): void => writeWhole(mark(state), "");

/** What the local Azure of this state folder runs in place of pods that it would pretend to run. */
export function ownProgramsIn(state: string, cache?: string): OwnPrograms {
  if (!existsSync(mark(state))) return {};
  return Object.fromEntries(
    controllers.flatMap((controller) =>
      Object.entries(controller.tools).map(([image, tool]) => [
        image,
        () =>
          missing(controller, cache).length === 0 ? placesOf(tool, cache)[tool.name] : undefined,
      ]),
    ),
  );
}

/**
 * Installs what a stack with these settings runs in place of pods, and says what that is. A
 * cluster does without what cannot be had.
 */
export async function installOwnPrograms(
  settings: Readonly<Record<string, unknown>>,
  options: InstallOptions,
): Promise<void> {
  const { progress, signal, cache } = options;
  for (const controller of controllers) {
    const { setting, without } = controller;
    // `pulumi config set` writes a boolean as text.
    if (String(settings[setting] ?? true) !== "true") continue;
    const tools = missing(controller, cache);
    if (tools.length > 0) {
      const names = tools.map(({ name }) => name).join(", ");
      progress.line(`${without} until ${names} ${tools.length === 1 ? "is" : "are"} there`);
    }
    const problem = await problemWith(tools, options);
    if (signal.aborted) return;
    const { kubernetesVersion = "" } = settings;
    progress.line(
      problem === undefined ? controller.runs(String(kubernetesVersion)) : `${without}: ${problem}`,
    );
  }
}

/** Installs them; returns why one cannot be had. */
async function problemWith(
  tools: readonly Tool[],
  options: InstallOptions,
): Promise<string | undefined> {
  try {
    // They share most packages, which builds side by side would both compile.
    for (const tool of tools) {
      const [problem] = await tryToInstall([tool], options);
      if (problem !== undefined) return problem;
    }
  } catch (error) {
    return messageOf(error);
  }
  return undefined;
}
