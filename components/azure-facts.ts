import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

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
      .get<{ properties: { provisioningState: string } }>(group, { "api-version": "2024-03-01" })
      .then((found) => found?.properties.provisioningState),
    arm.list<ResourceEntry>(`${group}/resources`, {
      $filter: `resourceType eq '${virtualMachineType}' or resourceType eq '${extensionType}'`,
      $expand: "provisioningState",
      "api-version": "2024-03-01",
    }),
    arm.list<Sku>(`/subscriptions/${subscriptionId}/providers/Microsoft.Compute/skus`, {
      $filter: `location eq '${settings.location}'`,
      "api-version": "2021-07-01",
    }),
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

/** Azure answers most throttled or failed reads when asked again after a moment. */
const attempts = 4;
const secondsPerAttempt = 30;

class ResourceManager {
  constructor(
    private readonly endpoint: string,
    private readonly token: string,
  ) {}

  /** The answer, or undefined when the resource group does not exist. */
  async get<T>(path: string, query: Record<string, string>): Promise<T | undefined> {
    return this.fetch<T>(this.url(path, query));
  }

  /** All pages of a list; empty when the resource group does not exist. */
  async list<T>(path: string, query: Record<string, string>): Promise<T[]> {
    const values: T[] = [];
    let next: string | undefined = this.url(path, query);
    while (next !== undefined) {
      const page: { value: T[]; nextLink?: string } | undefined = await this.fetch(next);
      values.push(...(page?.value ?? []));
      next = page?.nextLink;
    }
    return values;
  }

  private url(path: string, query: Record<string, string>): string {
    // Not every Azure service reads a plus as a space.
    const text = new URLSearchParams(query).toString().replaceAll("+", "%20");
    return `${this.endpoint}${path}?${text}`;
  }

  private async fetch<T>(url: string): Promise<T | undefined> {
    let trouble = "";
    for (let attempt = 1; attempt <= attempts; attempt++) {
      if (attempt > 1) await new Promise((resolve) => setTimeout(resolve, 1000 * 2 ** attempt));
      try {
        const response = await fetch(url, {
          headers: { authorization: `Bearer ${this.token}` },
          signal: AbortSignal.timeout(secondsPerAttempt * 1000),
        });
        const text = await response.text();
        // Any other 404, such as a subscription's, says that the question was wrong.
        if (response.status === 404 && text.includes("ResourceGroupNotFound")) return undefined;
        if (response.ok) return JSON.parse(text) as T;
        trouble = `${response.status} ${text.slice(0, 500)}`;
        if (response.status !== 429 && response.status < 500) break;
      } catch (error) {
        const { message, cause } = error as Error;
        trouble = cause instanceof Error ? `${message}: ${cause.message}` : message;
      }
    }
    throw new pulumi.RunError(
      `Azure Resource Manager did not answer GET ${url}: ${trouble}\n` +
        "  Expected a 200. Check the network, `az account show`, and the setting resourceManagerEndpoint, then run again.",
    );
  }
}
