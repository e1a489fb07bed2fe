import { parse } from "yaml";

import { Unreachable, Resolve, type Access } from "./client";
import { DynamicClient, isUnreachable } from "./dynamic-client";
import { Settings } from "../provider-config";

/** Whether the cluster that a provider's settings name can be reached, and its client. */
export class Reachability {
  private reached?: Promise<DynamicClient>;

  constructor(
    private readonly settings: Settings,
    private readonly resolve: Resolve | undefined,
  ) {}

  /** Asked once: whether there is a cluster does not change during a run. */
  cluster(): Promise<DynamicClient> {
    this.reached ??= Promise.resolve()
      .then(() => DynamicClient.reached(accessFrom(this.settings.kubeconfig), this.resolve))
      .catch((error: Error) => {
        throw isUnreachable(error) ? error : new Unreachable(error.message, { cause: error });
      });
    return this.reached;
  }

  /** Asks whether there is a cluster, before anything else is. */
  async tried(): Promise<void> {
    await this.clusterOrError();
  }

  /** For previews, which have to do without a cluster that is not there yet. */
  async clusterIfThere(): Promise<DynamicClient | undefined> {
    const found = await this.clusterOrError();
    return found instanceof Error ? undefined : found;
  }

  /**
   * The client, or why resources of a cluster that does not answer leave the state.
   *
   * @throws what is to be done, where the settings do not say that they do
   */
  async clusterOrAbsence(): Promise<DynamicClient | string> {
    const found = await this.clusterOrError();
    if (!(found instanceof Error)) {
      return found;
    }
    const { message } = found;
    if (this.settings.deleteUnreachable) {
      return `${message}; since deleteUnreachable is set, this resource leaves the state`;
    }
    throw new Error(
      `${message}. Nothing was forgotten; run this again when the API answers. If the cluster was deleted, run it ` +
        `with PULUMI_K8S_DELETE_UNREACHABLE=true, and its objects leave the state`,
    );
  }

  private clusterOrError(): Promise<DynamicClient | Error> {
    return this.cluster().catch((error: unknown) => {
      if (isUnreachable(error)) {
        return error;
      }
      throw error;
    });
  }
}

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
