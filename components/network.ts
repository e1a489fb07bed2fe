import * as network from "@pulumi/azure-native/network";
import * as pulumi from "@pulumi/pulumi";

import { apiPort } from "./api-server";
import { type ExistingNetwork, subnetIdOf } from "./azure/existing-network";
import { knownOutput, Shown, shownAs, shownText } from "./azure/shown";
import type { ClusterGroup } from "./cluster-group";
import { Settings } from "./settings/settings";
import { balancerZone, zoneCidr } from "./settings/topology";
import { egressName, gatewayZones, networkNames, suffixOf } from "./azure/resource-names";

export interface NetworkArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly shown: Shown;
  /** The network of the subnets that the settings name. */
  readonly existingNetwork?: ExistingNetwork;
}

/** What Azure calls a group of addresses that it keeps itself. */
type ServiceTag = "AzureLoadBalancer" | "VirtualNetwork";

type Verdict = Pick<
  network.SecurityRuleArgs,
  "access" | "destinationAddressPrefix" | "destinationAddressPrefixes"
> & { readonly access: "Allow" | "Deny" };

/**
 * The network of the nodes: a subnet per zone, and one for internal balancers, closed to everything that no rule admits, each with
 * egress that survives the other zones.
 *
 * A Standard NAT gateway lives in one zone, so with `egress: zonal` every zone has its own. With
 * `egress: single` one gateway without zone serves all subnets: cheaper, and down when its zone is.
 * With `egress: none` the network's own routes lead out.
 *
 * Where the settings name subnets that exist already, nothing is made: all of this is others' part.
 */
export class Network extends pulumi.ComponentResource {
  /** By zone. */
  readonly subnetIds: ReadonlyMap<string, pulumi.Output<string>>;
  readonly virtualNetworkId: pulumi.Output<string>;
  /** Of the internal balancers, in all zones; where the network is others', the first of the machines' subnets. */
  readonly balancerSubnetId: pulumi.Output<string>;

  constructor(name: string, args: NetworkArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Network", name, {}, opts);
    const { resourceGroup, settings, shown, existingNetwork } = args;
    if (existingNetwork !== undefined) {
      this.subnetIds = new Map(
        settings.zones.map((zone) => [zone, pulumi.output(subnetIdOf(settings, zone))]),
      );
      this.virtualNetworkId = pulumi.output(existingNetwork.id);
      this.balancerSubnetId = pulumi.output(settings.nodeSubnets[0]!);
      this.registerOutputs();
      return;
    }

    const resourceGroupName = resourceGroup.name;
    const child = { parent: this, deletedWith: resourceGroup.own };
    const isPrivate = settings.apiAccess === "private";
    const names = networkNames(settings.clusterName);

    const virtualNetwork = new network.VirtualNetwork(
      `${name}-vnet`,
      {
        resourceGroupName,
        virtualNetworkName: names.virtualNetwork,
        addressSpace: { addressPrefixes: [settings.networkCidr] },
      },
      child,
    );
    // Its rules are resources of their own: a list here would take away what the cloud provider
    // adds.
    const securityGroup = new network.NetworkSecurityGroup(
      `${name}-nsg`,
      { resourceGroupName, networkSecurityGroupName: names.securityGroup },
      child,
    );
    const routeTable = new network.RouteTable(
      `${name}-rt`,
      { resourceGroupName, routeTableName: names.routeTable },
      child,
    );

    const gateway = (zone: string | undefined) => {
      const suffix = suffixOf(zone);
      const gatewayName = egressName(settings.clusterName, zone);
      const address = new network.PublicIPAddress(
        `${name}-egress${suffix}-ip`,
        {
          resourceGroupName,
          publicIpAddressName: gatewayName,
          sku: { name: "Standard" },
          publicIPAllocationMethod: "Static",
          zones: zone === undefined ? [...settings.zones] : [zone],
        },
        // After a refresh the gateway that has the address is among the inputs.
        { ...child, ignoreChanges: ["natGateway"] },
      );
      const nat = new network.NatGateway(
        `${name}-egress${suffix}`,
        {
          resourceGroupName,
          natGatewayName: gatewayName,
          sku: { name: "Standard" },
          publicIpAddresses: [{ id: address.id }],
          zones: zone === undefined ? [] : [zone],
        },
        child,
      );
      const { addedRanges: added = [] } =
        shown.get(shownAs("azure-native:network:NatGateway", gatewayName)) ?? {};
      return {
        zone,
        suffix,
        nat,
        addresses: [addressOf(address, this, { name: gatewayName, shown }), ...added],
      };
    };
    const gateways = gatewayZones(settings).map(gateway);

    // After a refresh the etag of somebody's delegation is among the inputs; a subnet has one at most.
    const ofSubnet = { ...child, ignoreChanges: ["delegations[0].etag"] };

    // Azure changes one subnet of a network, and one rule of a group, at a time: hence the chain.
    const chain: pulumi.Resource[] = [];
    const last = () => chain.slice(-1);
    const rule = (
      sentence: string,
      priority: number,
      port: number,
      from: pulumi.Input<string>[] | ServiceTag,
      verdict: Verdict = { access: "Allow", destinationAddressPrefix: settings.networkCidr },
    ) => {
      chain.push(
        new network.SecurityRule(
          `${name}-${sentence}`,
          {
            resourceGroupName,
            networkSecurityGroupName: securityGroup.name,
            securityRuleName: sentence,
            priority,
            direction: "Inbound",
            protocol: "Tcp",
            ...(Array.isArray(from)
              ? { sourceAddressPrefixes: from }
              : { sourceAddressPrefix: from }),
            sourcePortRange: "*",
            ...verdict,
            destinationPortRange: String(port),
          },
          { ...child, dependsOn: last() },
        ),
      );
    };
    // A node's packet to the balancer's public address leaves by the NAT gateway and comes back as
    // a stranger, from any address that the gateway has. A rule for each gateway, made before a subnet
    // leaves by it, and deleted with it: while the egress changes, both ways lead to the API.
    for (const { zone, suffix, addresses } of isPrivate ? [] : gateways) {
      const sentence = `nodes-reach-the-api-through-their-egress${suffix}`;
      rule(sentence, 210 + Number(zone ?? 0), apiPort, addresses);
    }

    this.subnetIds = new Map(
      settings.zones.map((zone, index) => {
        const { nat } = gateways[index] ?? gateways[0] ?? {};
        const subnet = new network.Subnet(
          `${name}-nodes-${zone}`,
          {
            resourceGroupName,
            virtualNetworkName: virtualNetwork.name,
            subnetName: `nodes-${zone}`,
            addressPrefix: zoneCidr(settings.networkCidr, zone),
            defaultOutboundAccess: false,
            networkSecurityGroup: { id: securityGroup.id },
            routeTable: { id: routeTable.id },
            ...(nat && { natGateway: { id: nat.id } }),
          },
          { ...ofSubnet, dependsOn: last() },
        );
        chain.push(subnet);
        return [zone, subnet.id];
      }),
    );

    if (settings.apiAccessCidrs.length > 0) {
      rule("operators-reach-the-api", 200, apiPort, [...settings.apiAccessCidrs]);
    }
    // Azure's own rule admits the tag VirtualNetwork, which is also every network that is peered, the
    // probes' address, and with a default route in the table all that there is. Frontends of Services are
    // in another subnet than machines, and stay open.
    const nobody: Verdict = {
      access: "Deny",
      destinationAddressPrefixes: settings.zones.map((zone) =>
        zoneCidr(settings.networkCidr, zone),
      ),
    };
    rule("nodes-reach-the-api", 230, apiPort, [settings.networkCidr, settings.podCidr]);
    rule("azure-probes-the-api", 240, apiPort, "AzureLoadBalancer");
    rule("nobody-else-reaches-the-api", 250, apiPort, "VirtualNetwork", nobody);
    if (settings.sshAccessCidrs.length > 0) {
      rule("operators-reach-ssh", 220, 22, [...settings.sshAccessCidrs]);
    }
    rule("nobody-else-reaches-ssh", 260, 22, "VirtualNetwork", nobody);

    // An internal balancer takes the lowest free address of its subnet, which is the next machine's
    // in one of theirs.
    const balancers = new network.Subnet(
      `${name}-internal-balancers`,
      {
        resourceGroupName,
        virtualNetworkName: virtualNetwork.name,
        subnetName: names.balancerSubnet,
        addressPrefix: zoneCidr(settings.networkCidr, balancerZone),
        defaultOutboundAccess: false,
        networkSecurityGroup: { id: securityGroup.id },
      },
      { ...ofSubnet, dependsOn: last() },
    );
    chain.push(balancers);
    this.balancerSubnetId = balancers.id;
    this.virtualNetworkId = virtualNetwork.id;

    this.registerOutputs();
  }
}

/** The address itself: Azure's answer leaves it out only while the address is being made. */
export const addressOf = (
  ip: network.PublicIPAddress,
  owner: pulumi.Resource,
  { name, shown }: { readonly name: string; readonly shown: Shown },
): pulumi.Output<string> =>
  knownOutput(
    pulumi.all([ip.ipAddress, ip.name]).apply(([address, ipName]) => {
      if (address === undefined) {
        throw new pulumi.ResourceError(
          `Azure returned the public IP ${ipName} without an address; run pulumi refresh, then pulumi up`,
          owner,
          true,
        );
      }
      return address;
    }),
    ip,
    shownText(shown, "azure-native:network:PublicIPAddress", name, "ipAddress"),
  );
