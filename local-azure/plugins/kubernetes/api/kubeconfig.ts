import { existsSync } from "node:fs";
import type { KubeConfig } from "@kubernetes/client-node";
import type { Access } from "./client";

/** Which part of a kubeconfig to use, where it is not the current context. */
export interface Choice {
  readonly context?: string;
  readonly cluster?: string;
}

function load(config: KubeConfig, kubeconfig: string): void {
  const isPath = !kubeconfig.includes("\n") && !kubeconfig.trimStart().startsWith("{");
  if (!isPath) {
    config.loadFromString(kubeconfig);
  } else if (existsSync(kubeconfig)) {
    config.loadFromFile(kubeconfig);
  } else {
    throw new Error("it is neither a kubeconfig nor the path of a file");
  }
}

/**
 * Reads a kubeconfig, given as text or as a path; without either, the one that kubectl would take.
 */
export async function accessFrom(kubeconfig: string, choice: Choice): Promise<Access> {
  // Loaded only here, since it takes as long and as much memory as all the rest.
  const { KubeConfig: Config } = await import("@kubernetes/client-node");
  const config = new Config();
  try {
    if (kubeconfig === "") {
      config.loadFromDefault();
    } else {
      load(config, kubeconfig);
    }
  } catch (error) {
    // The parser quotes the line that it stumbles over, and that line can be a key.
    const [reason] = (error instanceof Error ? error.message : String(error)).split(/[\n:]/);
    // eslint-disable-next-line preserve-caught-error -- for the same reason
    throw new Error(`the kubeconfig of this provider cannot be read: ${reason}`);
  }
  if (choice.context) {
    config.setCurrentContext(choice.context);
  }
  const context = config.getContextObject(config.getCurrentContext());
  const cluster = config.getCluster(choice.cluster ?? context?.cluster ?? "");
  if (!cluster) {
    const known = config.getContexts().map(({ name }) => name);
    throw new Error(
      `the kubeconfig of this provider has no cluster for its context ` +
        `"${config.getCurrentContext()}"; it has the contexts ${known.join(", ") || "(none)"}`,
    );
  }
  // The credentials of a cluster that was chosen by name are those of the context's user.
  const user = config.getUser(context?.user ?? "") ?? { name: "" };
  config.loadFromClusterAndUser(cluster, user);
  const options: Parameters<KubeConfig["applyToHTTPSOptions"]>[0] = {};
  await config.applyToHTTPSOptions(options);
  const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized } = options;
  const given = { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized };
  const { auth, headers = {} } = options;
  return {
    server: new URL(cluster.server),
    namespace: context?.namespace,
    // An option that is present and undefined is not the same to TLS as one that is absent.
    tls: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    headers: {
      ...(headers as Record<string, string>),
      ...(auth ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {}),
    },
  };
}
