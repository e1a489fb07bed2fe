/** Azure's clouds by the address of their Resource Manager. */
const clouds = [
  {
    endpoint: "https://management.azure.com",
    name: "AzurePublicCloud",
    domain: "cloudapp.azure.com",
    storage: "core.windows.net",
    login: "login.microsoftonline.com",
  },
  {
    endpoint: "https://management.usgovcloudapi.net",
    name: "AzureUSGovernmentCloud",
    domain: "cloudapp.usgovcloudapi.net",
    storage: "core.usgovcloudapi.net",
    login: "login.microsoftonline.us",
  },
  {
    endpoint: "https://management.chinacloudapi.cn",
    name: "AzureChinaCloud",
    domain: "cloudapp.chinacloudapi.cn",
    storage: "core.chinacloudapi.cn",
    login: "login.partner.microsoftonline.cn",
  },
] as const;

interface AzureCloud {
  /** Without a slash at its end. */
  readonly endpoint: string;
  /** By which the cloud provider knows it; any other cloud needs its endpoint spelt out there. */
  readonly name?: string;
  /** Below which, by region, the DNS labels of public addresses are. */
  readonly domain: string;
  /** Below which, by service, the names of storage accounts are. */
  readonly storage: string;
  /** Of Entra ID. */
  readonly login: string;
}

export function azureCloudAt(resourceManagerEndpoint: string): AzureCloud {
  const endpoint = resourceManagerEndpoint.replace(/\/+$/, "");
  const { domain, storage, login } = clouds[0];
  return (
    clouds.find((cloud) => cloud.endpoint === endpoint) ?? { endpoint, domain, storage, login }
  );
}
