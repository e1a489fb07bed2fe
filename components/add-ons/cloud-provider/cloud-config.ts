import { createHash } from "node:crypto";

import { Secret } from "@pulumi/kubernetes/core/v1";
import * as pulumi from "@pulumi/pulumi";

import type { ClusterGroup } from "../../cluster-group";
import { azureJson, type AzureJsonArgs } from "./azure-json";
import { CloudCredential } from "../../identity";
import type { ExistingNetwork, ExistingSubnet } from "../../azure/existing-network";
import { networkNames, type Place } from "../../azure/resource-names";
import { tagsOf } from "../../azure/stack-tag";
import type { Settings } from "../../settings/settings";

/** Where the cloud provider and the disk driver look for azure.json. */
export const cloudConfigSecret = {
  namespace: "kube-system",
  name: "azure-cloud-provider",
  key: "cloud-config",
} as const;

export interface CloudConfigArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly existingNetwork?: ExistingNetwork;
  readonly tenantId: string;
  readonly subscriptionId: string;
  readonly credential: CloudCredential;
}

/** azure.json as a Secret, so that no machine carries it as a file. */
export class CloudConfig extends pulumi.ComponentResource {
  /**
   * Changes with the content, and says nothing about it. What reads the Secret at its start carries
   * this as an annotation of its pods, so that they start again.
   */
  readonly digest: pulumi.Output<string>;

  constructor(name: string, args: CloudConfigArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:CloudConfig", name, {}, opts);
    const { resourceGroup, settings, existingNetwork, tenantId, subscriptionId, credential } = args;

    const text = pulumi
      .all([resourceGroup.name, credential.clientId, credential.clientSecret])
      .apply(([group, clientId, clientSecret]) =>
        azureJson({
          tenantId,
          subscriptionId,
          resourceGroup: group,
          location: settings.location,
          ...(existingNetwork === undefined
            ? ownNetwork(settings.clusterName, group)
            : networkOf(existingNetwork)),
          clientId,
          clientSecret,
          resourceManagerEndpoint: settings.resourceManagerEndpoint,
          tags: tagsOf(settings),
        }),
      );
    this.digest = pulumi.unsecret(
      text.apply((content) => createHash("sha256").update(content).digest("hex")),
    );

    const { namespace, key } = cloudConfigSecret;
    new Secret(
      `${name}-secret`,
      {
        metadata: { name: cloudConfigSecret.name, namespace },
        type: "Opaque",
        data: { [key]: text.apply((content) => Buffer.from(content).toString("base64")) },
      },
      { parent: this, dependsOn: opts?.dependsOn },
    );
    this.registerOutputs();
  }
}

type Network = Pick<AzureJsonArgs, "virtualNetwork" | "subnet" | "securityGroup" | "routeTable">;

function ownNetwork(clusterName: string, resourceGroup: string): Network {
  const { virtualNetwork, balancerSubnet, securityGroup, routeTable } = networkNames(clusterName);
  return {
    virtualNetwork: { name: virtualNetwork, resourceGroup },
    subnet: balancerSubnet,
    securityGroup: { name: securityGroup, resourceGroup },
    routeTable: { name: routeTable, resourceGroup },
  };
}

function networkOf({ id, subnets }: ExistingNetwork): Network {
  const [{ name, securityGroup, routeTable }] = [...subnets.values()] as [ExistingSubnet];
  return {
    virtualNetwork: placeOf(id),
    subnet: name,
    securityGroup: placeOf(securityGroup!),
    routeTable: routeTable === undefined ? undefined : placeOf(routeTable),
  };
}

function placeOf(id: string): Place {
  const [, resourceGroup = "", name = ""] =
    /\/resourceGroups\/([^/]+)\/.*\/([^/]+)$/i.exec(id) ?? [];
  return { name, resourceGroup };
}
