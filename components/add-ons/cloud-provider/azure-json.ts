import { cloudFields } from "../../azure/clouds";
import type { Place } from "../../azure/resource-names";

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
