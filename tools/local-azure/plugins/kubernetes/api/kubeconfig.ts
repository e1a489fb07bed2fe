import { parse } from "yaml";
import type { Access } from "./client";

interface Kubeconfig {
  readonly clusters: readonly [{ readonly cluster: Readonly<Record<string, string>> }];
  readonly users: readonly [{ readonly user: Readonly<Record<string, string>> }];
}

/** Reads a kubeconfig of one cluster and one client certificate, as the program renders it. */
export function accessFrom(kubeconfig: string): Access {
  try {
    const { clusters, users } = parse(kubeconfig) as Kubeconfig;
    const [{ cluster }] = clusters;
    const [{ user }] = users;
    const data = (of: Readonly<Record<string, string>>, key: string): Buffer =>
      Buffer.from(of[`${key}-data`]!, "base64");
    return {
      server: new URL(cluster["server"]!),
      tls: {
        ca: data(cluster, "certificate-authority"),
        cert: data(user, "client-certificate"),
        key: data(user, "client-key"),
      },
    };
  } catch {
    // The parser quotes the line that it stumbles over, and that line can be a key.
    throw new Error(
      "the kubeconfig of this provider cannot be read: expected one cluster and one user with their certificates in it",
    );
  }
}
