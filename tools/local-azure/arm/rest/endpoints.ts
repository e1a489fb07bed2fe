import { refuse } from "../azure-error";

/**
 * What clients find a cloud's other addresses by. Until 2022 a list of clouds, by whose names they
 * choose one; since then the one that was asked.
 */
export function endpoints(origin: string, version: string | null): unknown {
  if (version === null || version === "") {
    throw refuse(
      "MissingApiVersionParameter",
      "The api-version query parameter (?api-version=) is required for all requests.",
    );
  }
  const arm = {
    name: "AzureCloud",
    portal: "https://portal.azure.com",
    authentication: {
      loginEndpoint: "https://login.microsoftonline.com/",
      audiences: ["https://management.core.windows.net/", "https://management.azure.com/"],
      tenant: "common",
      identityProvider: "AAD",
    },
    graph: "https://graph.windows.net/",
    graphAudience: "https://graph.windows.net/",
    // Of its token azure-native reads who has logged in.
    microsoftGraphResourceId: "https://graph.microsoft.com/",
    resourceManager: `${origin}/`,
    suffixes: {
      acrLoginServer: "azurecr.io",
      keyVaultDns: "vault.azure.net",
      sqlServerHostname: "database.windows.net",
      storage: "core.windows.net",
    },
  };
  return version < "2022" ? [arm] : arm;
}
