/** Azure's clouds by the address of their Resource Manager. */
const clouds = [
  {
    endpoint: "https://management.azure.com",
    name: "AzurePublicCloud",
    domain: "cloudapp.azure.com",
  },
  {
    endpoint: "https://management.usgovcloudapi.net",
    name: "AzureUSGovernmentCloud",
    domain: "cloudapp.usgovcloudapi.net",
  },
  {
    endpoint: "https://management.chinacloudapi.cn",
    name: "AzureChinaCloud",
    domain: "cloudapp.chinacloudapi.cn",
  },
] as const;

interface AzureCloud {
  /** Without a slash at its end. */
  readonly endpoint: string;
  /** By which the cloud provider knows it; any other cloud needs its endpoint spelt out there. */
  readonly name?: string;
  /** Below which, by region, the DNS labels of public addresses are. */
  readonly domain: string;
}

export function azureCloudAt(resourceManagerEndpoint: string): AzureCloud {
  const endpoint = resourceManagerEndpoint.replace(/\/+$/, "");
  return (
    clouds.find((cloud) => cloud.endpoint === endpoint) ?? { endpoint, domain: clouds[0].domain }
  );
}
