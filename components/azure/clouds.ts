/** Azure's clouds by the address of their Resource Manager. */
const clouds = [
  {
    endpoint: "https://management.azure.com",
    name: "AzurePublicCloud",
    domain: "cloudapp.azure.com",
    storage: "core.windows.net",
    login: "login.microsoftonline.com",
    tokenAudience: "api://AzureADTokenExchange",
  },
  {
    endpoint: "https://management.usgovcloudapi.net",
    name: "AzureUSGovernmentCloud",
    domain: "cloudapp.usgovcloudapi.net",
    storage: "core.usgovcloudapi.net",
    login: "login.microsoftonline.us",
    tokenAudience: "api://AzureADTokenExchangeUSGov",
  },
  {
    endpoint: "https://management.chinacloudapi.cn",
    name: "AzureChinaCloud",
    domain: "cloudapp.chinacloudapi.cn",
    storage: "core.chinacloudapi.cn",
    login: "login.partner.microsoftonline.cn",
    tokenAudience: "api://AzureADTokenExchangeChina",
  },
] as const;

export interface AzureCloud {
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
  /** Whom Entra expects a token to be for that it takes in place of a password. */
  readonly tokenAudience: string;
}

export function azureCloudAt(resourceManagerEndpoint: string): AzureCloud {
  const endpoint = resourceManagerEndpoint.replace(/\/+$/, "");
  const { name: _, ...publicCloud } = clouds[0];
  return clouds.find((cloud) => cloud.endpoint === endpoint) ?? { ...publicCloud, endpoint };
}

/** What names a cloud in a file that the cloud provider and its companions read. */
export function cloudFields(resourceManagerEndpoint: string) {
  const { endpoint, name: cloud } = azureCloudAt(resourceManagerEndpoint);
  return cloud === undefined ? { resourceManagerEndpoint: endpoint } : { cloud };
}
