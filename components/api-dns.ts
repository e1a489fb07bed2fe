import * as privatedns from "@pulumi/azure-native/privatedns";
import * as pulumi from "@pulumi/pulumi";

import { apiRecord, apiZone } from "./api-server";
import type { ClusterGroup } from "./cluster-group";
import type { Network } from "./network";
import type { Settings } from "./settings/settings";

interface ApiDnsArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Pick<Settings, "clusterName">;
  readonly subscriptionId: string;
  readonly network: Pick<Network, "virtualNetworkId">;
  /** Of the API. */
  readonly address: string;
}

/** What does not belong to a region is in this location. */
const location = "global";

const ttlSeconds = 300;

/**
 * The name of a private API, in a private DNS zone that the cluster's network is linked to. Other
 * networks resolve it by a link of their own.
 */
export class ApiDns extends pulumi.ComponentResource {
  /** Where the network knows the name once both of them are there. */
  readonly parts: readonly pulumi.CustomResource[];

  constructor(name: string, args: ApiDnsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:ApiDns", name, {}, opts);
    const { resourceGroup, settings, subscriptionId, network, address } = args;
    const resourceGroupName = resourceGroup.name;
    const child = { parent: this, deletedWith: resourceGroup.own };

    const zone = new privatedns.PrivateZone(
      `${name}-zone`,
      {
        resourceGroupName,
        privateZoneName: apiZone(settings.clusterName, subscriptionId),
        location,
      },
      child,
    );
    const link = new privatedns.VirtualNetworkLink(
      `${name}-link`,
      {
        resourceGroupName,
        privateZoneName: zone.name,
        virtualNetworkLinkName: settings.clusterName,
        location,
        virtualNetwork: { id: network.virtualNetworkId },
        registrationEnabled: false,
      },
      child,
    );
    const record = new privatedns.PrivateRecordSet(
      `${name}-record`,
      {
        resourceGroupName,
        privateZoneName: zone.name,
        recordType: "A",
        relativeRecordSetName: apiRecord,
        aRecords: [{ ipv4Address: address }],
        ttl: ttlSeconds,
      },
      child,
    );
    this.parts = [link, record];
    this.registerOutputs();
  }
}
