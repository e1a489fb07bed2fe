import * as network from "@pulumi/azure-native/network";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { digest } from "./digest";
import { apiPort } from "./api-server";
import { addressOf } from "./network";
import { Shown } from "./azure/shown";
import { Settings } from "./settings/settings";
import { dnsLabel } from "./api-server";
import { apiBalancerName } from "./azure/resource-names";

export interface ApiBalancerArgs {
  readonly resourceGroup: ResourceGroup;
  readonly settings: Settings;
  readonly subscriptionId: string;
  /** What the last update left; undefined before the first one. */
  readonly previous?: { readonly balancer?: string };
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

/**
 * The API's one name and address, in all zones.
 *
 * A control plane machine counts as healthy when its API server answers `/readyz`. The balancer
 * provides no egress: the NAT gateways do.
 */
export class ApiBalancer extends pulumi.ComponentResource {
  /** The pool that control plane machines join. Known once the balancer exists. */
  readonly poolId: pulumi.Output<string>;
  readonly address: pulumi.Output<string>;

  constructor(name: string, args: ApiBalancerArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:ApiBalancer", name, {}, opts);
    const { resourceGroup, settings, subscriptionId, previous, shown } = args;
    const { sku, frontend, pool, probe, rule } = definition;
    const resourceGroupName = resourceGroup.name;
    const child = { parent: this, deletedWith: resourceGroup };
    const loadBalancerName = apiBalancerName(settings.clusterName);

    const address = new network.PublicIPAddress(
      `${name}-ip`,
      {
        resourceGroupName,
        publicIpAddressName: loadBalancerName,
        sku: { name: "Standard" },
        publicIPAllocationMethod: "Static",
        zones: [...settings.zones],
        dnsSettings: { domainNameLabel: dnsLabel(settings.clusterName, subscriptionId) },
      },
      child,
    );

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
        frontendIPConfigurations: [{ ...frontend, publicIPAddress: { id: address.id } }],
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
      { ...child, ignoreChanges: ignored(previous) },
    );

    this.poolId = pulumi
      .all([part("backendAddressPools", pool.name).id, balancer.id])
      .apply(([id]) => id);
    this.address = addressOf(address, this, { name: loadBalancerName, shown });
    this.registerOutputs();
  }
}
