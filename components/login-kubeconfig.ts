import * as pulumi from "@pulumi/pulumi";

import { serverOf } from "./api-server";
import { azureCloudAt } from "./azure/clouds";
import type { Certificates } from "./certificates";
import { type ClusterArgs, kubeconfigFor } from "./kubeconfig";
import { issuerOf } from "./settings/issuer";
import type { Entra, Settings } from "./settings/settings";

type LoginSettings = Pick<Settings, "resourceManagerEndpoint">;

/**
 * What gets a token of Entra ID. The application is both who asks and what is asked for.
 *
 * @see https://azure.github.io/kubelogin/cli/get-token.html
 */
const kubelogin = ({ tenant, application }: Entra, settings: LoginSettings) => ({
  command: "kubelogin",
  args: [
    ...["get-token", "--login", "devicecode"],
    ...["--environment", azureCloudAt(settings.resourceManagerEndpoint).name ?? "AzurePublicCloud"],
    ...["--tenant-id", tenant, "--server-id", application, "--client-id", application],
  ],
  installHint: "az aks install-cli, or https://azure.github.io/kubelogin/install.html",
});

/** @see https://github.com/int128/kubelogin/blob/master/docs/usage.md */
const oidcLogin = (entra: Entra, settings: LoginSettings) => ({
  command: "kubectl",
  args: [
    ...["oidc-login", "get-token"],
    `--oidc-issuer-url=${issuerOf(entra, settings)}`,
    `--oidc-client-id=${entra.application}`,
    ...(entra.ca === ""
      ? []
      : [`--certificate-authority-data=${Buffer.from(entra.ca).toString("base64")}`]),
  ],
  installHint: "kubectl krew install oidc-login, or https://github.com/int128/kubelogin",
});

/** A kubeconfig without a secret, by which a person logs in: with a context of its own, so that it goes beside the other. */
export const loginKubeconfig = (
  entra: Entra,
  { settings, apiServer }: ClusterArgs & { readonly settings: LoginSettings },
  { cluster }: Pick<Certificates, "cluster">,
): pulumi.Output<string> =>
  pulumi.unsecret(cluster.trusted).apply((caCert) => {
    const { clusterName, apiProxy } = settings;
    const name = `${clusterName}-login`;
    const plugin = (entra.tenant === "" ? oidcLogin : kubelogin)(entra, settings);
    return kubeconfigFor(
      { clusterName, server: serverOf(apiServer), proxy: apiProxy, caCert },
      {
        name,
        context: name,
        user: {
          exec: {
            apiVersion: "client.authentication.k8s.io/v1",
            ...plugin,
            interactiveMode: "IfAvailable",
          },
        },
      },
    );
  });
