import { azureCloudAt } from "./azure-clouds";

/** What azure.json is made of, all of it known values. */
export interface AzureJsonFacts {
  readonly tenantId: string;
  readonly subscriptionId: string;
  readonly resourceGroup: string;
  readonly location: string;
  readonly virtualNetwork: string;
  /** Where internal load balancers get their addresses unless a Service names another subnet. */
  readonly subnet: string;
  readonly securityGroup: string;
  readonly routeTable: string;
  /** Of the managed identity, or of the service principal when there is a secret. */
  readonly clientId: string;
  /** Only of a service principal. */
  readonly clientSecret?: string;
  readonly resourceManagerEndpoint: string;
}

/**
 * The file that the cloud provider and the disk driver read.
 *
 * No `loadBalancerName`: left out, it is the cluster's name, which no balancer of ours bears. No
 * rate limit either: the provider's own refuses calls where Azure's asks to wait.
 *
 * @see https://cloud-provider-azure.sigs.k8s.io/install/configs/
 */
export function azureJson(facts: AzureJsonFacts): string {
  const { endpoint, name: cloud } = azureCloudAt(facts.resourceManagerEndpoint);
  return JSON.stringify(
    {
      ...(cloud === undefined ? { resourceManagerEndpoint: endpoint } : { cloud }),
      tenantId: facts.tenantId,
      subscriptionId: facts.subscriptionId,
      resourceGroup: facts.resourceGroup,
      location: facts.location,
      ...credential(facts),

      // The default is scale sets, which a stand-alone machine is not found in.
      vmType: "standard",
      useInstanceMetadata: true,
      // Azure may list a machine later than its kubelet registers, and a node without machine is
      // deleted.
      nodeInstanceNotFoundGracePeriodInSeconds: 300,

      vnetName: facts.virtualNetwork,
      vnetResourceGroup: facts.resourceGroup,
      subnetName: facts.subnet,
      securityGroupName: facts.securityGroup,
      securityGroupResourceGroup: facts.resourceGroup,
      routeTableName: facts.routeTable,
      routeTableResourceGroup: facts.resourceGroup,

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

const credential = ({ clientId, clientSecret }: AzureJsonFacts) =>
  clientSecret === undefined
    ? // In spite of its name, this is the identity's client id.
      { useManagedIdentityExtension: true, userAssignedIdentityID: clientId }
    : { useManagedIdentityExtension: false, aadClientId: clientId, aadClientSecret: clientSecret };
