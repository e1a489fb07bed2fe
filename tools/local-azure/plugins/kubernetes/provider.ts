import { readFileSync } from "node:fs";

import { Unready } from "../protocol/failures";
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
import { Resolve } from "./api/client";
import { DynamicClient } from "./api/dynamic-client";
import { Reachability } from "./api/reachability";
import { timeoutOf } from "./await/await";
import { diagnosis } from "./await/diagnosis";
import { readinessRuleOf } from "./await/readiness";
import { kindOfType, marked, normalised, partsOfId, stateOf, titleOf, without } from "./objects";
import { Context, created, managerOf, previewed, relinquished, updated } from "./operations/apply";
import { checked } from "./operations/check";
import { deleted } from "./operations/delete";
import { difference, pruned } from "./operations/diff";
import { explained } from "./operations/errors";
import { checkConfig, diffConfig, Settings, settingsFrom } from "./provider-config";

const { version } = JSON.parse(
  readFileSync(require.resolve("@pulumi/kubernetes/package.json"), "utf8"),
) as { readonly version: string };

/** One `kubernetes.Provider` of a program. */
export class KubernetesProvider implements ResourceProvider {
  private settings: Settings = settingsFrom({});
  private readonly definedKinds = new Map<string, boolean>();
  private reachability = new Reachability(this.settings, undefined);

  constructor(
    private readonly engine: EngineLog,
    private readonly resolve: Resolve | undefined,
  ) {}

  checkConfig = ({ news }: CheckRequest): CheckResult => checkConfig(news);

  diffConfig = ({ olds, news }: DiffRequest): DiffResult => diffConfig(olds, news);

  async configure(config: Properties): Promise<void> {
    this.settings = settingsFrom(config);
    this.reachability = new Reachability(this.settings, this.resolve);
    await this.reachability.tried();
  }

  async check(request: CheckRequest): Promise<CheckResult> {
    return checked(request, {
      discovery: async () => (await this.reachability.cluster()).discovery,
      definedKinds: this.definedKinds,
    });
  }

  diff({ type, olds, news, state }: DiffRequest): DiffResult {
    const { isPatch } = kindOfType(type);
    return difference({ olds, news, state, isPatch });
  }

  async create(request: CreateRequest) {
    const { inputs, preview, type } = request;
    if (!preview) {
      return created(await this.context(), request);
    }
    const context =
      hasUnknown(inputs) || kindOfType(type).isPatch ? undefined : await this.contextIfThere();
    return { id: "", state: context ? await previewed(context, request) : marked(inputs) };
  }

  async read({ urn, type, id, state, inputs, signal }: ReadRequest) {
    const cluster = await this.clusterOrAbsence(urn);
    if (!cluster) {
      return undefined;
    }
    const { isPatch, ...kind } = kindOfType(type);
    const live = await cluster.find({ ...kind, ...inputs, metadata: partsOfId(id) }, signal);
    if (!live) {
      return undefined;
    }
    const manager = managerOf(state);
    const now = stateOf(live, manager);
    if (Object.keys(inputs).length === 0) {
      const wanted = without(normalised(live), "status");
      const imported = isPatch ? { ...kind, metadata: partsOfId(id) } : marked(wanted);
      return { id, state: now, inputs: imported };
    }
    const drifted = marked(pruned(live, inputs) as Properties);
    const problem = await readinessRuleOf(inputs)?.(live, cluster.list);
    if (problem !== undefined) {
      const why = await diagnosis(cluster.client, live);
      throw new Unready(id, now, drifted, [`${titleOf(live)} is not ready: ${problem}`, ...why]);
    }
    return { id, state: now, inputs: drifted };
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
    const cluster = await this.clusterOrAbsence(urn);
    if (!cluster) {
      return;
    }
    const { isPatch, ...kind } = kindOfType(type);
    const object = { ...kind, ...inputs, metadata: { ...partsOfId(id) } };
    try {
      if (isPatch) {
        await relinquished(cluster, object, managerOf(state));
      } else {
        await deleted(cluster, object, inputs, {
          signal,
          timeoutSeconds: timeoutOf(timeoutSeconds),
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

  /** Undefined where the resource is to be forgotten. */
  private async clusterOrAbsence(urn: string): Promise<DynamicClient | undefined> {
    const found = await this.reachability.clusterOrAbsence();
    if (found instanceof DynamicClient) {
      return found;
    }
    this.engine.warn(urn, found);
    return undefined;
  }
}

export interface KubernetesOptions {
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
