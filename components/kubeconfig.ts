import * as pulumi from "@pulumi/pulumi";

import { type ApiServer, serverOf } from "./api-server";
import { Certificates } from "./certificates";
import type { Settings } from "./settings/settings";

export interface Access {
  readonly clusterName: string;
  /** `https://name:port` */
  readonly server: string;
  /** Of an HTTP proxy; empty or undefined for none. */
  readonly proxy?: string;
  readonly caCert: string;
  readonly clientCert: string;
  readonly clientKey: string;
}

interface ClusterArgs {
  readonly settings: Pick<Settings, "apiProxy" | "clusterName">;
  readonly apiServer: ApiServer;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** A kubeconfig that needs nothing but the certificates that the cluster was born with. */
export function renderKubeconfig(access: Access): string {
  const { clusterName } = access;
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: clusterName,
        cluster: {
          server: access.server,
          ...proxied(access.proxy),
          "certificate-authority-data": base64(access.caCert),
        },
      },
    ],
    users: [
      {
        name: `${clusterName}-admin`,
        user: {
          "client-certificate-data": base64(access.clientCert),
          "client-key-data": base64(access.clientKey),
        },
      },
    ],
    contexts: [
      { name: clusterName, context: { cluster: clusterName, user: `${clusterName}-admin` } },
    ],
    "current-context": clusterName,
  });
}

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
 * once the API answers, on the first update; and always from then on, for a preview fails where what
 * machines depend on is unknown.
 */
export const kubeconfigOf = (
  initialized: pulumi.Output<unknown>,
  plan: ClusterArgs & { readonly initialization: { readonly exists: boolean } },
  certificates: Pick<Certificates, "cluster" | "admin">,
): pulumi.Output<string> =>
  pulumi
    .all([adminKubeconfig(plan, certificates), plan.initialization.exists ? "" : initialized])
    .apply(([kubeconfig]) => kubeconfig);
