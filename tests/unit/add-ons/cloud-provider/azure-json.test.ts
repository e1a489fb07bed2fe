import {
  azureJson,
  AzureJsonArgs,
} from "../../../../components/add-ons/cloud-provider/cloud-config";

const args: AzureJsonArgs = {
  tenantId: "tenant",
  subscriptionId: "subscription",
  resourceGroup: "shop",
  location: "westeurope",
  virtualNetwork: { name: "shop-vnet", resourceGroup: "shop" },
  subnet: "nodes-1",
  securityGroup: { name: "shop-nsg", resourceGroup: "shop" },
  routeTable: { name: "shop-rt", resourceGroup: "shop" },
  clientId: "client",
  resourceManagerEndpoint: "https://management.azure.com",
  tags: {},
};

const written = (change: Partial<AzureJsonArgs> = {}) =>
  JSON.parse(azureJson({ ...args, ...change }));

it("looks for stand-alone machines, since the default looks for scale sets", () => {
  expect(written()).toMatchObject({ vmType: "standard" });
  expect(written()).not.toHaveProperty("disableAvailabilitySetNodes");
});

it("names the cluster's own network, firewall and routes, each with its group", () => {
  expect(written()).toMatchObject({
    tenantId: "tenant",
    subscriptionId: "subscription",
    resourceGroup: "shop",
    location: "westeurope",
    vnetName: "shop-vnet",
    vnetResourceGroup: "shop",
    subnetName: "nodes-1",
    securityGroupName: "shop-nsg",
    securityGroupResourceGroup: "shop",
    routeTableName: "shop-rt",
    routeTableResourceGroup: "shop",
  });
});

it("names a network of others by its own groups, and no routes where it has none", () => {
  const theirs = { name: "spoke", resourceGroup: "network" };
  const change = { virtualNetwork: theirs, securityGroup: { ...theirs, name: "guard" } };

  const json = written({ ...change, routeTable: undefined });

  expect(json).toMatchObject({
    ...{ resourceGroup: "shop", vnetName: "spoke", vnetResourceGroup: "network" },
    ...{ securityGroupName: "guard", securityGroupResourceGroup: "network" },
  });
  expect(json).not.toHaveProperty("routeTableName");
  expect(json).not.toHaveProperty("routeTableResourceGroup");
});

it("puts addresses and not network interfaces into balancers, and gives no egress", () => {
  expect(written()).toMatchObject({
    loadBalancerSku: "standard",
    loadBalancerBackendPoolConfigurationType: "nodeIP",
    excludeMasterFromStandardLB: true,
    disableOutboundSNAT: true,
    maximumLoadBalancerRuleCount: 250,
  });
});

it("leaves the balancer's name to the provider, so that it never adopts another", () => {
  expect(written()).not.toHaveProperty("loadBalancerName");
});

it("waits and tries again when Azure is busy, and refuses nothing by itself", () => {
  expect(written()).toMatchObject({ cloudProviderBackoff: true, cloudProviderBackoffRetries: 6 });
  expect(written()).not.toHaveProperty("cloudProviderRateLimit");
});

it("keeps the node of a machine that Azure does not list yet", () => {
  expect(written().nodeInstanceNotFoundGracePeriodInSeconds).toBe(300);
});

it("signs in as the managed identity, by its client id", () => {
  const identity = written();

  expect(identity).toMatchObject({
    useManagedIdentityExtension: true,
    userAssignedIdentityID: "client",
    useInstanceMetadata: true,
  });
  expect(identity).not.toHaveProperty("aadClientId");
});

it("signs in as a service principal when there is a secret", () => {
  const principal = written({ clientSecret: "secret" });

  expect(principal).toMatchObject({
    useManagedIdentityExtension: false,
    aadClientId: "client",
    aadClientSecret: "secret",
  });
  expect(principal).not.toHaveProperty("userAssignedIdentityID");
});

it.each([
  { endpoint: "https://management.azure.com", cloud: "AzurePublicCloud" },
  { endpoint: "https://management.azure.com/", cloud: "AzurePublicCloud" },
  { endpoint: "https://management.usgovcloudapi.net", cloud: "AzureUSGovernmentCloud" },
  { endpoint: "https://management.chinacloudapi.cn", cloud: "AzureChinaCloud" },
])("knows $endpoint by name", ({ endpoint, cloud }) => {
  const known = written({ resourceManagerEndpoint: endpoint });

  expect(known.cloud).toBe(cloud);
  expect(known).not.toHaveProperty("resourceManagerEndpoint");
});

it("gives the endpoint of any other cloud, and no name that it may not be listed by", () => {
  const other = written({ resourceManagerEndpoint: "http://localhost:9/" });

  expect(other.resourceManagerEndpoint).toBe("http://localhost:9");
  expect(other).not.toHaveProperty("cloud");
});

it("has the cloud provider tag what it makes, and take away no other's tag", () => {
  const tags = { owner: "a,b=c" };

  expect(written({ tags })).toMatchObject({ tagsMap: tags });
  expect(written({ tags })).not.toHaveProperty("systemTags");
  expect(written()).not.toHaveProperty("tagsMap");
});
