import { existsSync } from "node:fs";
import { join } from "node:path";

import { obtainable } from "../../../components/add-ons/manifests/manifests";
import { manifests } from "../../../components/versions";
import { readJson, writeWhole } from "../../shared/files";
import type { Progress } from "../../shared/progress";
import { hostSettings } from "../machines/qemu/host";
import { documentationRange, somePublicKey, stackSettings } from "./stack-config";

type Values = Readonly<Record<string, unknown>>;

interface Question {
  readonly state: string;
  readonly stack: string;
  readonly program: string;
  readonly settings: Values;
  readonly progress?: Progress;
}

/** A stack's settings that a rehearsal needs and its file lacks, and why each. */
interface Assumption {
  readonly settings: Values;
  readonly because: string;
}

/**
 * Chooses what the stack's file leaves open, once: a value that changed between two runs would
 * change the cluster.
 */
export async function assumedSettings(question: Question): Promise<Values> {
  const { state, stack, progress } = question;
  const file = join(state, `${stack}.assumed.json`);
  const kept = existsSync(file) ? (readJson(file) as Assumption[]) : undefined;
  const chosen = kept ?? (await assume(question));
  if (!kept) writeWhole(file, JSON.stringify(chosen, undefined, 2));
  const assumptions = [...chosen, ...withoutMetrics(question), ...withoutApiProxy(question)];
  for (const { because } of assumptions) progress?.line(because);
  return Object.assign({}, ...assumptions.map(({ settings }) => settings)) as Values;
}

async function assume({ program, stack, settings, progress }: Question): Promise<Assumption[]> {
  const given = stackSettings(program, stack, settings);
  const found: Assumption[] = [];
  if (given["apiAccessCidrs"] === undefined) {
    found.push({
      settings: { apiAccessCidrs: [documentationRange] },
      because: `stack ${stack} does not say who may reach the API (apiAccessCidrs): rehearsed with ${documentationRange}, which is reserved for documentation`,
    });
  }
  if (given["sshPublicKey"] === undefined) {
    found.push({
      settings: { sshPublicKey: somePublicKey() },
      because: `stack ${stack} has no sshPublicKey: rehearsed with a key whose private half is not kept`,
    });
  }
  return [...found, ...(await withoutManifests(given, progress))];
}

/** `pulumi config set` writes a boolean as text. */
const isOn = (value: unknown): boolean => String(value) === "true";

/**
 * A simulated pod is ready and answers nothing, and as long as an API that is registered does not answer,
 * Kubernetes deletes no namespace.
 */
function withoutMetrics({ program, stack, settings, state }: Question): Assumption[] {
  if (
    !isOn(stackSettings(program, stack, settings)["metricsServer"]) ||
    hostSettings(state) !== undefined
  )
    return [];
  return [
    {
      settings: { metricsServer: false },
      because: "rehearsed without metrics-server, since pods on simulated machines answer nothing",
    },
  ];
}

/** One that the stack's file names leads to the company's network, and a rehearsal's API is on this host. */
function withoutApiProxy({ program, stack, settings }: Question): Assumption[] {
  const { apiProxy = "" } = stackSettings(program, stack);
  if (apiProxy === "" || "apiProxy" in settings) return [];
  return [
    {
      settings: { apiProxy: "" },
      because: "rehearsed without apiProxy, since the API is on this host",
    },
  ];
}

/**
 * The real program would stop; a rehearsal without a network does without these add-ons, and says
 * so.
 */
async function withoutManifests(given: Values, progress?: Progress): Promise<Assumption[]> {
  const { mirror = "", cni = "canal", diskDriver = true } = given;
  const sources = { mirror: String(mirror) };
  const has = async (list: readonly (typeof manifests.diskDriver)[number][]): Promise<boolean> =>
    (await obtainable(list, sources)).all;
  const step = progress?.step("looking for the manifests of Canal and the disk driver");
  const [canal, driver] = await Promise.all([
    cni !== "canal" || has(manifests.canal),
    !isOn(diskDriver) || has(manifests.diskDriver),
  ]).finally(() => step?.done(false));
  const could = "could not be had from their source";
  return [
    ...(canal
      ? []
      : [
          {
            settings: { cni: "flannel" },
            because: `rehearsed with flannel in place of Canal, whose manifest ${could}`,
          },
        ]),
    ...(driver
      ? []
      : [
          {
            settings: { diskDriver: false },
            because: `rehearsed without the disk driver, whose manifests ${could}`,
          },
        ]),
  ];
}
