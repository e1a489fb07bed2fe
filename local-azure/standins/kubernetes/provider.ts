import {
  CheckRequest,
  CheckResult,
  CreateRequest,
  DeleteRequest,
  DiffRequest,
  DiffResult,
  ReadRequest,
  ResourceProvider,
  UpdateRequest,
} from "../protocol";
import { Connection } from "../protocol/connections";
import { Unready } from "../protocol/failures";
import { hasUnknown, Properties } from "../protocol/values";
import { Context, created, rehearsed, updated } from "./applying";
import { checked } from "./check";
import { Cluster } from "./cluster";
import { checkConfig, diffConfig, Settings, settingsFrom } from "./config";
import { deleted, relinquished } from "./deletion";
import { diagnosis } from "./diagnosis";
import { difference } from "./diff";
import { accessFrom } from "./kubeconfig";
import { managerOf } from "./naming";
import { kindOfType, marked, normalised, partsOfId, stateOf, titleOf } from "./objects";
import { judgeOf } from "./readiness";
import { Reach } from "./reach";
import { Resolve } from "./redirect";
import { refreshed } from "./refresh";
import { explained } from "./refusals";
import { timeoutOf } from "./waiting";

/** One `kubernetes.Provider` of a program. */
export class KubernetesProvider implements ResourceProvider {
  private settings: Settings = settingsFrom({});
  private reach = new Reach(this.settings, undefined);

  constructor(
    private readonly connection: Connection,
    private readonly resolve: Resolve | undefined,
    private readonly accessOf = accessFrom,
  ) {}

  checkConfig = ({ news }: CheckRequest): CheckResult => checkConfig(news);

  diffConfig = ({ olds, news }: DiffRequest): DiffResult => diffConfig(olds, news);

  async configure(config: Properties): Promise<void> {
    this.settings = settingsFrom(config);
    this.reach = new Reach(this.settings, this.resolve, this.accessOf);
    await this.reach.tried();
  }

  async check(request: CheckRequest): Promise<CheckResult> {
    if (this.settings.skipUpdateUnreachable && !(await this.reach.clusterIfThere())) {
      return { inputs: request.olds };
    }
    return checked(request, {
      namespace: () => this.reach.namespace(),
      discovery: async () => (await this.reach.cluster()).discovery,
    });
  }

  diff({ type, olds, news, state }: DiffRequest): DiffResult {
    const { isPatch } = kindOfType(type);
    return difference({ olds, news, state, isPatch, mutability: this.settings });
  }

  async create(request: CreateRequest) {
    const { inputs, preview, type } = request;
    if (!preview) {
      return created(await this.context(), request);
    }
    const context =
      hasUnknown(inputs) || kindOfType(type).isPatch ? undefined : await this.contextIfThere();
    if (context) {
      await rehearsed(context, request);
    }
    return { id: "", state: marked(inputs) };
  }

  async read({ urn, type, id, state, inputs, signal }: ReadRequest) {
    const cluster = await this.clusterOr(urn);
    if (typeof cluster === "string") {
      return cluster === "forget" ? undefined : { id, state, inputs };
    }
    const { isPatch, ...kind } = kindOfType(type);
    const live = await cluster.find({ ...kind, ...inputs, metadata: partsOfId(id) }, signal);
    if (!live) {
      return undefined;
    }
    const manager = managerOf(inputs, state);
    const now = stateOf(live, manager);
    if (Object.keys(inputs).length === 0) {
      const { status: _status, ...wanted } = normalised(live);
      const imported = isPatch ? { ...kind, metadata: partsOfId(id) } : marked(wanted);
      return { id, state: now, inputs: imported };
    }
    const drifted = marked(refreshed(inputs, state, live) as Properties);
    const flaw = judgeOf(inputs)?.(live);
    if (flaw !== undefined) {
      const why = await diagnosis(cluster.client, live);
      throw new Unready(id, now, drifted, [`${titleOf(live)} is not ready: ${flaw}`, ...why]);
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
    const cluster = await this.clusterOr(urn);
    if (cluster === "forget") {
      return;
    }
    if (cluster === "keep") {
      throw new Error(`${id} cannot be deleted while its cluster cannot be reached`);
    }
    const { isPatch, ...kind } = kindOfType(type);
    const object = { ...kind, ...inputs, metadata: { ...partsOfId(id) } };
    try {
      if (isPatch) {
        await relinquished(cluster, object, managerOf(inputs, state));
      } else {
        await deleted(cluster, object, inputs, {
          signal,
          timeoutSeconds: timeoutOf(timeoutSeconds, inputs),
          progress: (why) => this.connection.progress(urn, why),
        });
      }
    } catch (error) {
      throw explained(error, object, isPatch ? "relinquished" : "deleted");
    }
  }

  private async context(): Promise<Context> {
    const { settings, connection } = this;
    return { cluster: await this.reach.cluster(), settings, connection };
  }

  private async contextIfThere(): Promise<Context | undefined> {
    const { settings, connection } = this;
    const cluster = await this.reach.clusterIfThere();
    return cluster && { cluster, settings, connection };
  }

  private async clusterOr(urn: string): Promise<Cluster | "forget" | "keep"> {
    const found = await this.reach.clusterOrAbsence();
    if (found instanceof Cluster) {
      return found;
    }
    this.connection.warn(urn, found.why);
    return found.verdict;
  }
}
