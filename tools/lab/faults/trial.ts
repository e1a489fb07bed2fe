import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Case } from "./cases/cases";
import { disturb } from "./cases/disturbances";
import type { Life, Recorded, StackState } from "./life";
import type { Scenario } from "./cases/scenarios";
import { keyOf } from "../../local-azure/arm/resources/resource";
import { changedAnything } from "../../pulumi/events";

const machineType = "microsoft.compute/virtualmachines";
const diskType = "microsoft.compute/disks";

/** What must not be otherwise than before. */
export interface Identity {
  /** The uid of the Namespace kube-system: one for each cluster that there ever was. */
  readonly cluster?: string;
}

/** All that is not as it has to be after a scenario was brought to its end. */
export async function flaws(life: Life, scenario: Scenario, before: Identity): Promise<string[]> {
  const left = await life.leftovers();
  const processes = left.map(({ pid, role }) => `left running: ${role} (process ${pid})`);
  if (scenario.operation === "destroy") return [...processes, ...remains(life)];
  // First, since it would change what is looked at afterwards if it could.
  const again = await life.command("up", scenario.settings, "--skip-preview");
  const state = await life.stackState(scenario.settings);
  return [
    ...processes,
    ...(again.succeeded ? [] : [`a second update fails: ${again.text.slice(-1500)}`]),
    ...(again.run && changedAnything(again.run)
      ? [`a second update changes ${JSON.stringify(again.run.changes)}`]
      : []),
    ...recordedFlaws(state),
    ...azureFlaws(life, state),
    ...memberFlaws(life),
    ...(await clusterFlaws(life, state, before)),
  ];
}

const remains = (life: Life): string[] =>
  life.azure().map(({ id }) => `left in Azure after destroy: ${id}`);

function recordedFlaws({ deployment }: StackState): string[] {
  const { resources = [], pending_operations: pending = [] } = deployment;
  const urns = resources.map(({ urn }) => urn);
  const twice = urns.filter((urn, index) => urns.indexOf(urn) !== index);
  return [
    ...twice.map((urn) => `twice in the state: ${urn}`),
    ...resources.filter((one) => one.delete).map(({ urn }) => `still to be deleted: ${urn}`),
    ...pending.map(({ resource }) => `still pending: ${resource.urn}`),
  ];
}

/** Disks of machines are Azure's own; everything else is the program's. */
function azureFlaws(life: Life, { deployment }: StackState): string[] {
  const azure = life.azure();
  const recorded = (deployment.resources ?? [])
    .filter(({ type, id }) => type.startsWith("azure-native:") && id)
    .map(({ id }) => keyOf(id!));
  const own = azure.filter(
    ({ type, body }) => type.toLowerCase() !== diskType || body["managedBy"] === undefined,
  );
  const there = new Set(azure.map(({ id }) => keyOf(id)));
  const known = new Set(recorded);
  return [
    ...own
      .filter(({ id }) => !known.has(keyOf(id)))
      .map(({ id }) => `in Azure and not in the state: ${id}`),
    ...recorded.filter((id) => !there.has(id)).map((id) => `in the state and not in Azure: ${id}`),
    ...azure
      .filter(({ body }) => body["provisioningState"] === "Failed")
      .map(({ id }) => `Failed in Azure: ${id}`),
  ];
}

function memberFlaws(life: Life): string[] {
  const folder = join(life.state, "machines", "clusters");
  const records = (existsSync(folder) ? readdirSync(folder) : [])
    .map((name) => join(folder, name, "cluster.json"))
    .filter((file) => existsSync(file));
  if (records.length !== 1) return [`there are ${records.length} clusters, expected one`];
  const { members } = JSON.parse(readFileSync(records[0]!, "utf8")) as {
    members: { machine: string; vmId: string; lives: boolean }[];
  };
  const got = members
    .map(({ machine, vmId, lives }) => `${machine} ${vmId}${lives ? "" : " (dead)"}`)
    .sort();
  const expected = life
    .azure()
    .filter(({ type }) => type.toLowerCase() === machineType)
    .filter(({ id }) => /-cp-\d+$/.test(id))
    .map(({ id, body }) => `${id.split("/").at(-1)} ${String(body["vmId"])}`)
    .sort();
  return got.join() === expected.join()
    ? []
    : [
        `etcd's members are ${got.join(", ")}, and the control plane machines ${expected.join(", ")}`,
      ];
}

async function clusterFlaws(
  life: Life,
  { deployment, outputs }: StackState,
  before: Identity,
): Promise<string[]> {
  const kubeconfig = outputs["kubeconfig"];
  if (typeof kubeconfig !== "string") return ["the stack has no output kubeconfig"];
  const { cluster } = await identityOf(life, kubeconfig);
  const objects = (deployment.resources ?? []).flatMap(objectOf);
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
  const missing = await life
    .kubectl(kubeconfig, ["get", "--filename", "-", "--output", "name"], list)
    .then(() => "")
    .catch((error: Error) => error.message);
  return [
    ...(before.cluster !== undefined && cluster !== before.cluster
      ? [`this is another cluster: kube-system has the uid ${cluster}, and had ${before.cluster}`]
      : []),
    ...missing
      .split("\n")
      .filter((line) => line.startsWith("Error from server"))
      .map((line) => `in the state and not in the cluster: ${line}`),
  ];
}

/** The object of a resource; a Patch has none of its own. */
function objectOf({ type, inputs = {} }: Recorded): unknown[] {
  const { apiVersion, kind, metadata } = inputs as {
    apiVersion?: string;
    kind?: string;
    metadata?: { name?: string; namespace?: string };
  };
  if (!type.startsWith("kubernetes:") || type.endsWith("Patch") || !metadata?.name) return [];
  const { name, namespace } = metadata;
  return [{ apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } }];
}

export async function identityOf(life: Life, kubeconfig: string): Promise<Identity> {
  const words = ["get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}"];
  return { cluster: await life.kubectl(kubeconfig, words) };
}

export const endings = ["converged", "flawed", "stuck", "not reached"] as const;

export interface Result {
  readonly scenario: string;
  readonly kind: string;
  readonly what: string;
  readonly title: string;
  /**
   * converged: everything is as it has to be. flawed: it ended, and something is not. stuck: no
   * command succeeds. not reached: what was to go wrong did not come to pass.
   */
  readonly ending: (typeof endings)[number];
  /** How many commands it took until one succeeded, after the one in which it went wrong. */
  readonly commands: number;
  /** How often it went wrong, where that is more than once. */
  readonly times?: number;
  readonly seconds: number;
  readonly flaws: readonly string[];
  /** The end of what the engine said when it first failed. */
  readonly said?: string;
}

const mostCommands = 3;
const keptWords = 2_000;

/**
 * Lets one thing go wrong, brings it to its end by the documented commands, and looks at all of it.
 */
export async function tryOut(one: Case, life: Life, before: Identity): Promise<Result> {
  const { scenario, kind, what, title, disturbance } = one;
  const since = Date.now();
  const { happened, times, said, flaws } = await disturb(life, scenario, disturbance);
  const after = await conclude(life, scenario, before);
  const all = [...flaws, ...after.flaws];
  const ending = after.isStuck
    ? "stuck"
    : all.length > 0
      ? "flawed"
      : happened
        ? "converged"
        : "not reached";
  return {
    ...{ scenario: scenario.key, kind, what, title, ending },
    commands: after.commands,
    seconds: Math.round((Date.now() - since) / 1000),
    flaws: all,
    ...(times !== undefined && { times }),
    ...(said !== undefined && { said: said.slice(-keptWords) }),
  };
}

/**
 * Converges by `npm start` or `npm stop` alone, then looks whether everything is as it has to be.
 */
export async function conclude(
  life: Life,
  scenario: Scenario,
  before: Identity,
): Promise<{ readonly commands: number; readonly isStuck: boolean; readonly flaws: string[] }> {
  let last = "";
  for (let commands = 1; commands <= mostCommands; commands++) {
    const { succeeded, text } = await life.command(scenario.operation, scenario.settings);
    if (succeeded) return { commands, isStuck: false, flaws: await flaws(life, scenario, before) };
    last = text;
  }
  const why = `${mostCommands} commands did not help: ${last.slice(-keptWords)}`;
  const left = (await life.leftovers()).map(({ pid, role }) => `left running: ${role} (${pid})`);
  return { commands: mostCommands, isStuck: true, flaws: [why, ...left] };
}
