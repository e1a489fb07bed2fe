import { Access, Unreachable } from "./client";
import { DynamicClient, isUnreachable } from "./dynamic-client";
import { Settings } from "../provider-config";
import { accessFrom } from "./kubeconfig";
import { Resolve } from "./client";

/** What becomes of resources whose cluster does not answer, and why. */
export interface Absence {
  readonly verdict: "forget" | "keep";
  readonly why: string;
}

/** Whether the cluster that a provider's settings name can be reached, and its client. */
export class Reachability {
  private access?: Promise<Access>;
  private reached?: Promise<DynamicClient>;

  constructor(
    private readonly settings: Settings,
    private readonly resolve: Resolve | undefined,
    private readonly accessOf = accessFrom,
  ) {}

  /** Asked once: whether there is a cluster does not change during a run. */
  cluster(): Promise<DynamicClient> {
    this.reached ??= this.namespace()
      .then(async (namespace) =>
        DynamicClient.reached(await this.credentials(), namespace, this.resolve),
      )
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

  /** @throws what is to be done, where the settings have no answer for a cluster that is gone */
  async clusterOrAbsence(): Promise<DynamicClient | Absence> {
    const found = await this.clusterOrError();
    if (!(found instanceof Error)) {
      return found;
    }
    const { message } = found;
    const { deleteUnreachable, skipUpdateUnreachable } = this.settings;
    if (deleteUnreachable) {
      const why = `${message}; since deleteUnreachable is set, this resource leaves the state`;
      return { verdict: "forget", why };
    }
    if (skipUpdateUnreachable) {
      const why = `${message}; since skipUpdateUnreachable is set, it is left as it is`;
      return { verdict: "keep", why };
    }
    throw new Error(
      `${message}. Nothing was forgotten; run this again when the API answers. If the cluster was deleted, run it ` +
        `with PULUMI_K8S_DELETE_UNREACHABLE=true, and its objects leave the state`,
    );
  }

  /** Of objects that name none; the same whether or not the cluster answers. */
  async namespace(): Promise<string> {
    return this.settings.namespace ?? (await this.credentials()).namespace ?? "default";
  }

  private credentials(): Promise<Access> {
    this.access ??= this.accessOf(this.settings.kubeconfig, this.settings);
    return this.access;
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
