import { readFileSync } from "node:fs";

import {
  CheckRequest,
  CheckResult,
  CreateRequest,
  DeleteRequest,
  DiffRequest,
  DiffResult,
  EngineLog,
  ReadRequest,
  ResourceProvider,
  Served,
  UpdateRequest,
} from "../protocol/protocol";
import { type Around, serve } from "../protocol/serve";
import { hasUnknown, Properties } from "../protocol/values";
import { Reachability, Resolve } from "./api";
import { kindOfType, marked, partsOfId, stateOf, text } from "./objects";
import {
  Context,
  created,
  deleted,
  explained,
  managerOf,
  previewed,
  relinquished,
  updated,
} from "./apply";
import { checkConfig, checked, diffConfig, difference, mutableKinds, pruned } from "./check";

const { version } = JSON.parse(
  readFileSync(require.resolve("@pulumi/kubernetes/package.json"), "utf8"),
) as { readonly version: string };

/** One `kubernetes.Provider` of a program. */
export class KubernetesProvider implements ResourceProvider {
  private reachability = new Reachability("", undefined);
  private mutable: readonly string[] = [];

  constructor(
    private readonly engine: EngineLog,
    private readonly resolve: Resolve | undefined,
  ) {}

  checkConfig = ({ news }: CheckRequest): CheckResult => checkConfig(news);

  diffConfig = ({ olds, news }: DiffRequest): DiffResult => diffConfig(olds, news);

  async configure(config: Properties): Promise<void> {
    this.mutable = mutableKinds(config);
    this.reachability = new Reachability(text(config.kubeconfig), this.resolve);
    await this.reachability.tried();
  }

  check = checked;

  diff = (request: DiffRequest): DiffResult => difference(request, this.mutable);

  async create(request: CreateRequest) {
    const { inputs, preview, type } = request;
    if (!preview) {
      return created(await this.context(), request);
    }
    const context =
      hasUnknown(inputs) || kindOfType(type).isPatch ? undefined : await this.contextIfThere();
    return { id: "", state: context ? await previewed(context, request) : marked(inputs) };
  }

  async read({ id, state, inputs, signal }: ReadRequest) {
    if (Object.keys(inputs).length === 0) {
      throw new Error(
        `only the official plugin imports an object: make a resource of ${id}, which takes it over`,
      );
    }
    const cluster = await this.reachability.clusterOfState();
    const live = await cluster.find({ ...inputs, metadata: partsOfId(id) }, signal);
    if (!live) {
      return undefined;
    }
    const drifted = marked(pruned(live, inputs) as Properties);
    return { id, state: stateOf(live, managerOf(state)), inputs: drifted };
  }

  async update(request: UpdateRequest): Promise<Properties> {
    const { state, news, preview } = request;
    if (!preview) {
      return updated(await this.context(), request);
    }
    const context = hasUnknown(news) ? undefined : await this.contextIfThere();
    return context ? updated(context, request) : marked({ ...state, ...news });
  }

  async delete({
    urn,
    type,
    id,
    state,
    inputs,
    timeoutSeconds,
    signal,
  }: DeleteRequest): Promise<void> {
    const cluster = await this.reachability.clusterOfState();
    const { isPatch } = kindOfType(type);
    const object = { ...inputs, metadata: partsOfId(id) };
    try {
      if (isPatch) {
        await relinquished(cluster, object, managerOf(state));
      } else {
        await deleted(cluster, object, inputs, {
          signal,
          timeoutSeconds,
          progress: (why) => this.engine.progress(urn, why),
        });
      }
    } catch (error) {
      throw explained(error, object, isPatch ? "relinquished" : "deleted");
    }
  }

  private async context(): Promise<Context> {
    return { cluster: await this.reachability.cluster(), engine: this.engine };
  }

  private async contextIfThere(): Promise<Context | undefined> {
    const cluster = await this.reachability.clusterIfThere();
    return cluster && { cluster, engine: this.engine };
  }
}

interface KubernetesOptions {
  /** 0 takes any that is free. */
  readonly port: number;
  /**
   * Where connections to a host go instead, for names that do not resolve here. The certificate is
   * still checked against the name.
   */
  readonly resolve?: Resolve;
  readonly around?: Around;
}

/** Stands in for the `kubernetes` plugin where the official one cannot be installed. */
export const serveKubernetes = ({ port, resolve, around }: KubernetesOptions): Promise<Served> =>
  serve({ version, connect: (engine) => new KubernetesProvider(engine, resolve) }, port, around);
