import * as network from "@pulumi/azure-native/network";
import type { input } from "@pulumi/azure-native/types";
import * as pulumi from "@pulumi/pulumi";
import * as privatedns from "@pulumi/azure-native/privatedns";

import { apiPort, apiRecord, apiZone } from "./api-server";
import type { ClusterGroup } from "./cluster-group";
import { digest } from "./digest";
import { addressOf, type Network } from "./network";
import { Shown } from "./azure/shown";
import { Settings } from "./settings/settings";
import { apiBalancerName, dnsLabel } from "./azure/resource-names";

export interface ApiBalancerArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly network: Pick<Network, "balancerSubnetId" | "virtualNetworkId">;
  /** Of a private API. */
  readonly apiAddress?: string;
  /** What the last update left; undefined before the first one. */
  readonly previous?: { readonly balancer: string };
  readonly shown: Shown;
}

/** All that the balancer is, but for names and ids of the cluster. */
const definition = {
  sku: { name: "Standard" },
  frontend: { name: "api" },
  pool: { name: "control-plane" },
  probe: {
    name: "readyz",
    protocol: "Https",
    port: apiPort,
    requestPath: "/readyz",
    intervalInSeconds: 5,
    numberOfProbes: 1,
    probeThreshold: 2,
  },
  rule: {
    name: "api",
    protocol: "Tcp",
    frontendPort: apiPort,
    backendPort: apiPort,
    // A quiet `kubectl logs --follow` must outlive Azure's default of four minutes.
    idleTimeoutInMinutes: 30,
    enableTcpReset: true,
    disableOutboundSnat: true,
  },
};

/** A hash of what the balancer is, for the next update to see whether it changes. */
export const balancerDigest = (): string => digest(definition);

/**
 * After a refresh Azure's list of the machines in the pool is among the inputs. It is left out of a
 * balancer that stays as it is, and not sent with one that changes: Azure refuses a list that has become
 * another one since.
 */
const ignored = (memory: ApiBalancerArgs["previous"]): string[] =>
  memory?.balancer === balancerDigest()
    ? ["backendAddressPools[0].loadBalancerBackendAddresses"]
    : [];

/** Where the balancer takes connections. */
interface Frontend {
  readonly configuration: Omit<input.network.FrontendIPConfigurationArgs, "name">;
  readonly address: pulumi.Output<string>;
}

/**
 * The API's one name and address, in all zones: a public address, or a private one that the network
 * alone reaches. An internal frontend has its zones itself, and keeps them.
 *
 * A control plane machine counts as healthy when its API server answers `/readyz`. The balancer
 * provides no egress: the NAT gateways do.
 */
export class ApiBalancer extends pulumi.ComponentResource {
  /** The pool that control plane machines join. Known once the balancer exists. */
  readonly poolId: pulumi.Output<string>;
  /** What exists as long as the cluster: the group of its own, or the balancer in that of others. */
  readonly lastsAsCluster: pulumi.Resource;
  /** In an update, known once the API's name leads there. */
  readonly address: pulumi.Output<string>;

  constructor(name: string, args: ApiBalancerArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:ApiBalancer", name, {}, opts);
    const { resourceGroup, settings, previous } = args;
    const { sku, frontend, pool, probe, rule } = definition;
    const resourceGroupName = resourceGroup.name;
    const child = { parent: this, deletedWith: resourceGroup.own };
    const loadBalancerName = apiBalancerName(settings.clusterName);
    const { configuration, address } =
      settings.apiAccess === "private"
        ? this.privateFrontend(name, args)
        : this.publicFrontend(name, args, child);

    // A rule names its own balancer's parts by full id.
    const part = (kind: string, id: string) => ({
      id: pulumi.interpolate`${resourceGroup.id}/providers/Microsoft.Network/loadBalancers/${loadBalancerName}/${kind}/${id}`,
    });
    const balancer = new network.LoadBalancer(
      `${name}-lb`,
      {
        resourceGroupName,
        loadBalancerName,
        sku,
        frontendIPConfigurations: [{ ...frontend, ...configuration }],
        backendAddressPools: [pool],
        probes: [probe],
        loadBalancingRules: [
          {
            ...rule,
            frontendIPConfiguration: part("frontendIPConfigurations", frontend.name),
            backendAddressPools: [part("backendAddressPools", pool.name)],
            probe: part("probes", probe.name),
          },
        ],
      },
      {
        ...child,
        ignoreChanges: ignored(previous),
        // What the group of its own does for a cluster, in that of others.
        protect: resourceGroup.own === undefined && settings.protect,
      },
    );

    this.poolId = pulumi
      .all([part("backendAddressPools", pool.name).id, balancer.id])
      .apply(([id]) => id);
    this.lastsAsCluster = resourceGroup.own ?? balancer;
    this.address = address;
    this.registerOutputs();
  }

  private publicFrontend(
    name: string,
    { resourceGroup, settings, subscriptionId, shown }: ApiBalancerArgs,
    child: pulumi.CustomResourceOptions,
  ): Frontend {
    const publicIpAddressName = apiBalancerName(settings.clusterName);
    const address = new network.PublicIPAddress(
      `${name}-ip`,
      {
        resourceGroupName: resourceGroup.name,
        publicIpAddressName,
        sku: { name: "Standard" },
        publicIPAllocationMethod: "Static",
        zones: [...settings.zones],
        dnsSettings: { domainNameLabel: dnsLabel(settings.clusterName, subscriptionId) },
      },
      child,
    );
    return {
      configuration: { publicIPAddress: { id: address.id } },
      address: addressOf(address, this, { name: publicIpAddressName, shown }),
    };
  }

  private privateFrontend(name: string, args: ApiBalancerArgs): Frontend {
    const { settings, network: inside } = args;
    // Every private API has one: free-addresses.ts.
    const address = args.apiAddress!;
    const named =
      settings.apiName === ""
        ? new ApiDns(`${name}-dns`, { ...args, address }, { parent: this }).parts
        : [];
    return {
      configuration: {
        subnet: { id: inside.balancerSubnetId },
        privateIPAllocationMethod: "Static",
        privateIPAddress: address,
        zones: [...settings.zones],
      },
      address: pulumi.all(named.map(({ urn }) => urn)).apply(() => address),
    };
  }
}

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
class ApiDns extends pulumi.ComponentResource {
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
