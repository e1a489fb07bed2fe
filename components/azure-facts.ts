import * as authorization from "@pulumi/azure-native/authorization";

import { ResourceManager } from "./resource-manager";
import { Settings } from "./settings";
import { Sku } from "./size-offers";

/** How the bootstrap step of a machine stands, as Azure tells it. */
export interface BootstrapFacts {
  /** Azure's provisioning state: Succeeded, Failed, Creating … */
  readonly state: string;
  /** When this run of the step was ordered; see `runOf` in machine.ts. */
  readonly run?: string;
  /** vmId of the machine that founded, or may found, the cluster. */
  readonly founder?: string;
}

export interface MachineFacts {
  /** Hash of what a change of would replace the machine. */
  readonly generation?: string;
  readonly kubernetesVersion?: string;
  readonly bootstrap?: BootstrapFacts;
}

/** What Azure knows already when a program starts. */
export interface AzureFacts {
  readonly subscriptionId: string;
  readonly tenantId: string;
  /** Provisioning state of the resource group, undefined when there is none. */
  readonly groupState?: string;
  /** By name of the VM. */
  readonly machines: ReadonlyMap<string, MachineFacts>;
  readonly skus: readonly Sku[];
}

/** Tags by which one `up` tells the next what it did. */
export const tag = {
  generation: "zoned-generation",
  kubernetes: "zoned-kubernetes",
  run: "zoned-run",
  founder: "zoned-founder",
} as const;

const virtualMachineType = "Microsoft.Compute/virtualMachines";
const extensionType = "Microsoft.Compute/virtualMachines/extensions";

interface ResourceEntry {
  readonly name: string;
  readonly type: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly provisioningState?: string;
}

/**
 * Asks Azure Resource Manager what azure-native has no function for: which sizes are offered where, and
 * which machines and bootstrap steps of this cluster exist. Three requests, whatever the number of machines.
 */
export async function askAzure(settings: Settings): Promise<AzureFacts> {
  const [{ subscriptionId, tenantId }, { token }] = await Promise.all([
    authorization.getClientConfig(),
    authorization.getClientToken(),
  ]);
  const arm = new ResourceManager(settings.resourceManagerEndpoint, token);
  const group = `/subscriptions/${subscriptionId}/resourceGroups/${settings.clusterName}`;

  const [groupState, entries, skus] = await Promise.all([
    arm
      .get<{ properties: { provisioningState: string } }>(
        group,
        { "api-version": "2024-03-01" },
        { properties: { provisioningState: "" } },
      )
      .then((found) => found?.properties.provisioningState),
    arm.list<ResourceEntry>(
      `${group}/resources`,
      {
        $filter: `resourceType eq '${virtualMachineType}' or resourceType eq '${extensionType}'`,
        $expand: "provisioningState",
        "api-version": "2024-03-01",
      },
      { name: "", type: "" },
    ),
    arm.list<Sku>(
      `/subscriptions/${subscriptionId}/providers/Microsoft.Compute/skus`,
      { $filter: `location eq '${settings.location}'`, "api-version": "2021-07-01" },
      { name: "", resourceType: "" },
    ),
  ]);
  return { subscriptionId, tenantId, groupState, machines: machinesIn(entries), skus };
}

function machinesIn(entries: readonly ResourceEntry[]): Map<string, MachineFacts> {
  const ofType = (type: string) =>
    entries.filter((entry) => entry.type.toLowerCase() === type.toLowerCase());
  const bootstraps = new Map(
    ofType(extensionType)
      .map((entry) => ({ ...entry, path: entry.name.split("/") }))
      .filter(({ path }) => path[1] === "bootstrap")
      .map(({ path, tags, provisioningState }) => [
        path[0],
        {
          state: provisioningState ?? "Unknown",
          run: tags?.[tag.run],
          founder: tags?.[tag.founder],
        },
      ]),
  );
  return new Map(
    ofType(virtualMachineType).map(({ name, tags }) => [
      name,
      {
        generation: tags?.[tag.generation],
        kubernetesVersion: tags?.[tag.kubernetes],
        bootstrap: bootstraps.get(name),
      },
    ]),
  );
}
