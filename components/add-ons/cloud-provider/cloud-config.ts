import { createHash } from "node:crypto";

import { Secret } from "@pulumi/kubernetes/core/v1";
import * as pulumi from "@pulumi/pulumi";

import { cloudFields } from "../../azure/clouds";
import { type ExistingNetwork, keyOf } from "../../azure/existing-network";
import { networkNames, type Place } from "../../azure/resource-names";
import { tagsOf } from "../../azure/stack-tag";
import type { Certificates } from "../../certificates";
import type { ClusterGroup } from "../../cluster-group";
import { CloudCredential } from "../../identity";
import {
  addressVariables,
  hasLogin,
  type ProxySettings,
  proxyVariables,
} from "../../settings/proxy";
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
  readonly certificates: Pick<Certificates, "cluster">;
}

/**
 * azure.json as a Secret, so that no machine carries it as a file; beside it the addresses of a proxy that have
 * a password in them.
 */
export class CloudConfig extends pulumi.ComponentResource {
  /**
   * Changes with the content, and says nothing about it. What reads the Secret at its start carries
   * this as an annotation of its pods, so that they start again.
   */
  readonly digest: pulumi.Output<string>;
  /** azure.json for who asks nothing of Azure, in the encoding of a Secret. */
  readonly withoutCredential: pulumi.Output<string>;

  constructor(name: string, args: CloudConfigArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:CloudConfig", name, {}, opts);
    const { resourceGroup, settings, existingNetwork, tenantId, subscriptionId, credential } = args;

    const written = (group: string, clientId?: string, clientSecret?: string): string =>
      azureJson({
        tenantId,
        subscriptionId,
        resourceGroup: group,
        location: settings.location,
        ...(existingNetwork === undefined
          ? ownNetwork(settings.clusterName, group)
          : networkOf(existingNetwork, settings)),
        clientId,
        clientSecret,
        resourceManagerEndpoint: settings.resourceManagerEndpoint,
        // The cloud provider puts them on the security group as well, and takes none away again.
        tags: existingNetwork === undefined ? tagsOf(settings) : settings.tags,
      });
    const text = pulumi
      .all([resourceGroup.name, credential.clientId, credential.clientSecret])
      .apply(([group, clientId, clientSecret]) => written(group, clientId, clientSecret));
    this.withoutCredential = resourceGroup.name.apply((group) => base64(written(group)));
    const logins = addressVariables(settings.httpProxy).filter(({ value }) => hasLogin(value));
    // Programs read the host's authorities once.
    const proxyCa = settings.httpProxy?.ca ?? "";
    // A password that somebody has chosen could be guessed from a hash over nothing else that is secret.
    this.digest = pulumi.unsecret(
      pulumi
        .all([text, logins.length > 0 ? args.certificates.cluster.key : ""])
        .apply(([content, key]) =>
          sha256([content, proxyCa, ...logins.map(({ value }) => key + value)].join("")),
        ),
    );

    const { namespace, key } = cloudConfigSecret;
    new Secret(
      `${name}-secret`,
      {
        metadata: { name: cloudConfigSecret.name, namespace },
        type: "Opaque",
        data: {
          [key]: text.apply(base64),
          ...Object.fromEntries(logins.map(({ name, value }) => [name, base64(value)])),
        },
      },
      { parent: this, dependsOn: opts?.dependsOn },
    );
    this.registerOutputs();
  }
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const base64 = (text: string): string => Buffer.from(text).toString("base64");

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

/** Internal Services have addresses of the first subnet that the settings name, as a private API has. */
function networkOf({ id, subnets }: ExistingNetwork, { nodeSubnets }: Settings): Network {
  const { name, securityGroup, routeTable } = subnets.get(keyOf(nodeSubnets[0]!))!;
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

/** What azure.json is made of, all of it known values. */
export interface AzureJsonArgs {
  readonly tenantId: string;
  readonly subscriptionId: string;
  readonly resourceGroup: string;
  readonly location: string;
  readonly virtualNetwork: Place;
  /** Where internal load balancers get their addresses unless a Service names another subnet. */
  readonly subnet: string;
  readonly securityGroup: Place;
  /** None where the subnets of others have none. */
  readonly routeTable?: Place;
  /** Of the managed identity, or of the service principal when there is a secret; none for who never logs in. */
  readonly clientId?: string;
  /** Only of a service principal. */
  readonly clientSecret?: string;
  readonly resourceManagerEndpoint: string;
  /** For the balancers, addresses and security group that the cloud provider writes. */
  readonly tags: Readonly<Record<string, string>>;
}

/**
 * The file that the cloud provider and the disk driver read.
 *
 * No `loadBalancerName`: left out, it is the cluster's name, which no balancer of ours bears. No
 * rate limit either: the provider's own refuses calls where Azure's asks to wait.
 *
 * @see https://cloud-provider-azure.sigs.k8s.io/install/configs/
 */
export function azureJson(args: AzureJsonArgs): string {
  return JSON.stringify(
    {
      ...cloudFields(args.resourceManagerEndpoint),
      tenantId: args.tenantId,
      subscriptionId: args.subscriptionId,
      resourceGroup: args.resourceGroup,
      location: args.location,
      ...credential(args),

      // The default is scale sets, which a stand-alone machine is not found in.
      vmType: "standard",
      useInstanceMetadata: true,
      // Azure may list a machine later than its kubelet registers, and a node without machine is
      // deleted.
      nodeInstanceNotFoundGracePeriodInSeconds: 300,

      vnetName: args.virtualNetwork.name,
      vnetResourceGroup: args.virtualNetwork.resourceGroup,
      subnetName: args.subnet,
      securityGroupName: args.securityGroup.name,
      securityGroupResourceGroup: args.securityGroup.resourceGroup,
      routeTableName: args.routeTable?.name,
      routeTableResourceGroup: args.routeTable?.resourceGroup,

      // Without systemTags: with it, the provider deletes every tag that it does not know.
      ...(Object.keys(args.tags).length > 0 && { tagsMap: args.tags }),

      loadBalancerSku: "standard",
      // Addresses, not network interfaces: those are ours, and one that is in another balancer's
      // pool would silently be left out.
      loadBalancerBackendPoolConfigurationType: "nodeIP",
      excludeMasterFromStandardLB: true,
      // Egress is the NAT gateways' part.
      disableOutboundSNAT: true,
      maximumLoadBalancerRuleCount: 250,

      cloudProviderBackoff: true,
      cloudProviderBackoffRetries: 6,
      cloudProviderBackoffDuration: 5,
    },
    null,
    2,
  );
}

const credential = ({ clientId, clientSecret }: AzureJsonArgs) =>
  clientSecret === undefined
    ? // In spite of its name, this is the identity's client id.
      { useManagedIdentityExtension: true, userAssignedIdentityID: clientId }
    : { useManagedIdentityExtension: false, aadClientId: clientId, aadClientSecret: clientSecret };

/**
 * The proxy's variables for a pod that calls Azure. An address with a password comes from the Secret, since
 * more people may read a pod.
 */
export const proxyEnv = (settings: ProxySettings, apiName: string) =>
  proxyVariables(settings, apiName).map(({ name, value }) =>
    hasLogin(value)
      ? { name, valueFrom: { secretKeyRef: { name: cloudConfigSecret.name, key: name } } }
      : { name, value },
  );
