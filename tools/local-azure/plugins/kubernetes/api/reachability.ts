import { kubeconfigOf } from "../../../machines/simulated/api";
import { type Access, Resolve, Unreachable } from "./client";
import { DynamicClient } from "./dynamic-client";

/** Whether the cluster that a provider's kubeconfig names can be reached, and its client. */
export class Reachability {
  private reached?: Promise<DynamicClient | Unreachable>;

  constructor(
    private readonly kubeconfig: string,
    private readonly resolve: Resolve | undefined,
  ) {}

  /** Asked once: whether there is a cluster does not change during a run. */
  tried(): Promise<DynamicClient | Unreachable> {
    this.reached ??= Promise.resolve()
      .then(() => DynamicClient.reached(accessFrom(this.kubeconfig), this.resolve))
      .catch((error: Error) =>
        error instanceof Unreachable ? error : new Unreachable(error.message, { cause: error }),
      );
    return this.reached;
  }

  /** @throws Unreachable */
  async cluster(): Promise<DynamicClient> {
    const found = await this.tried();
    if (found instanceof Unreachable) throw found;
    return found;
  }

  /** For previews, which have to do without a cluster that is not there yet. */
  async clusterIfThere(): Promise<DynamicClient | undefined> {
    const found = await this.tried();
    return found instanceof Unreachable ? undefined : found;
  }

  /**
   * For what reads or deletes an object of the state.
   *
   * @throws what is to be done
   */
  async clusterOfState(): Promise<DynamicClient> {
    const found = await this.tried();
    if (!(found instanceof Unreachable)) return found;
    throw new Error(`${found.message}. Nothing was forgotten; run this again when the API answers`);
  }
}

/** Reads a kubeconfig of one cluster and one client certificate, as the program renders it. */
function accessFrom(kubeconfig: string): Access {
  try {
    const { server, ca, user } = kubeconfigOf(kubeconfig);
    const { cert, key } = user;
    if (cert !== undefined && key !== undefined) return { server, tls: { ca, cert, key } };
  } catch {
    // The parser quotes the line that it stumbles over, and that line can be a key.
  }
  throw new Error(
    "the kubeconfig of this provider cannot be read: expected one cluster and one user with their certificates in it",
  );
}
