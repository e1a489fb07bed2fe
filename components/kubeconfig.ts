import * as pulumi from "@pulumi/pulumi";

import { type ApiServer, serverOf } from "./api-server";
import { azureCloudAt } from "./azure/clouds";
import { Certificates } from "./certificates";
import { issuerOf } from "./settings/logins";
import type { Entra, Settings } from "./settings/settings";

/** Where the API is, and by what it proves itself. */
interface Server {
  readonly clusterName: string;
  /** `https://name:port` */
  readonly server: string;
  /** Of an HTTP proxy; empty or undefined for none. */
  readonly proxy?: string;
  readonly caCert: string;
}

export interface Access extends Server {
  readonly clientCert: string;
  readonly clientKey: string;
}

interface ClusterArgs {
  readonly settings: Pick<Settings, "apiProxy" | "clusterName">;
  readonly apiServer: ApiServer;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** A kubeconfig of one user, and of one context of that name. */
const kubeconfigFor = (
  { clusterName, server, proxy, caCert }: Server,
  {
    name,
    context,
    user,
  }: { readonly name: string; readonly context: string; readonly user: object },
): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: clusterName,
        cluster: { server, ...proxied(proxy), "certificate-authority-data": base64(caCert) },
      },
    ],
    users: [{ name, user }],
    contexts: [{ name: context, context: { cluster: clusterName, user: name } }],
    "current-context": context,
  });

/** A kubeconfig that needs nothing but the certificates that the cluster was born with. */
export const renderKubeconfig = (access: Access): string =>
  kubeconfigFor(access, {
    name: `${access.clusterName}-admin`,
    context: access.clusterName,
    user: {
      "client-certificate-data": base64(access.clientCert),
      "client-key-data": base64(access.clientKey),
    },
  });

const proxied = (proxy = "") => (proxy === "" ? {} : { "proxy-url": proxy });

/** A kubeconfig of an earlier update with the proxy of now. */
export function throughProxy(kubeconfig: string, proxy: string): string {
  const { clusters, ...rest } = JSON.parse(kubeconfig) as {
    clusters: { name: string; cluster: Record<string, string> }[];
  };
  return JSON.stringify({
    ...rest,
    clusters: clusters.map(({ name, cluster: { "proxy-url": _, ...cluster } }) => ({
      name,
      cluster: { ...cluster, ...proxied(proxy) },
    })),
  });
}

/** The administrator's kubeconfig, secret: known before anything answers to it. */
export const adminKubeconfig = (
  { settings, apiServer }: ClusterArgs,
  { cluster, admin }: Pick<Certificates, "cluster" | "admin">,
): pulumi.Output<string> =>
  pulumi.secret(
    pulumi.all([cluster.trusted, admin.cert, admin.key]).apply(([caCert, clientCert, clientKey]) =>
      renderKubeconfig({
        clusterName: settings.clusterName,
        server: serverOf(apiServer),
        proxy: settings.apiProxy,
        caCert,
        clientCert,
        clientKey,
      }),
    ),
  );

/**
 * The kubeconfig of the stack, secret.
 *
 * All its parts exist before the first machine boots. Handed out that early, it would make the
 * Kubernetes provider call a server that is not there, and fail even a preview. So it is known only
 * once the API answers, on the first update. From then on a preview does not know it where the
 * administrator's certificate is renewed, or the CA.
 */
export const kubeconfigOf = (
  initialized: pulumi.Output<unknown>,
  plan: ClusterArgs & { readonly initialization: { readonly exists: boolean } },
  certificates: Pick<Certificates, "cluster" | "admin">,
): pulumi.Output<string> =>
  pulumi
    .all([adminKubeconfig(plan, certificates), plan.initialization.exists ? "" : initialized])
    .apply(([kubeconfig]) => kubeconfig);

/**
 * The kubeconfig by which objects are applied: in the preview of a living cluster that of the last update
 * while this one's is unknown, to which the API still answers. A provider of an unknown one compares nothing,
 * and the engine ends where a worker is replaced, since it asks what becomes of the labels of its Node.
 */
export const kubeconfigToApplyBy = (
  kubeconfig: pulumi.Output<string>,
  {
    initialization,
    previousKubeconfig: before,
  }: {
    readonly initialization: { readonly exists: boolean };
    readonly previousKubeconfig?: string;
  },
): pulumi.Output<string> =>
  pulumi.runtime.isDryRun() && initialization.exists && before !== undefined
    ? isKnown(kubeconfig).apply((known) => (known ? kubeconfig : pulumi.secret(before)))
    : kubeconfig;

/** What a new resource would have is unknown where the engine was told to leave it out; and in a preview. */
export const isKnown = (output: pulumi.Output<unknown>): pulumi.Output<boolean> =>
  pulumi.output((output as unknown as { readonly isKnown: Promise<boolean> }).isKnown);

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
