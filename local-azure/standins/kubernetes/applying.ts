import { CreateRequest, UpdateRequest } from "../protocol";
import { Connection } from "../protocol/connections";
import { Unready } from "../protocol/failures";
import { Properties } from "../protocol/values";
import { Cluster } from "./cluster";
import { Settings } from "./config";
import { diagnosis } from "./diagnosis";
import { managerOf } from "./naming";
import { annotation, bodyOf, idOf, kindOfType, marked, stateOf, titleOf } from "./objects";
import { judgeOf } from "./readiness";
import { alreadyThere, explained, notThere } from "./refusals";
import { awaited, timeoutOf } from "./waiting";

export interface Context {
  readonly cluster: Cluster;
  readonly settings: Settings;
  readonly connection: Connection;
}

interface Made {
  readonly id: string;
  readonly state: Properties;
}

/**
 * Makes an object, or with a Patch resource changes one that is there, and waits until it is ready.
 */
export async function created(context: Context, request: CreateRequest): Promise<Made> {
  const { cluster, settings, connection } = context;
  const { urn, type, inputs, signal } = request;
  const { isPatch } = kindOfType(type);
  const body = bodyOf(inputs, isPatch);
  const manager = managerOf(urn, inputs, {});
  const live = await cluster
    .onceItCan(
      async () => {
        const existing = await cluster.find(body, signal);
        if (existing && !isPatch && !settings.upsertExistingObjects) {
          throw alreadyThere(existing);
        }
        if (!existing && isPatch) {
          throw notThere(body);
        }
        return applied(context, body, inputs, manager, false);
      },
      signal,
      (why) => connection.progress(urn, why),
    )
    .catch((error: unknown) => {
      throw explained(error, body, "created");
    });
  return ready(context, request, live, inputs, manager);
}

/**
 * Brings an object to its new inputs and waits until it is ready; in a preview, tells what would
 * become of it.
 */
export async function updated(context: Context, request: UpdateRequest): Promise<Properties> {
  const { cluster } = context;
  const { urn, type, state, news, preview, signal } = request;
  const body = bodyOf(news, kindOfType(type).isPatch);
  const manager = managerOf(urn, news, state);
  try {
    if (!(await cluster.find(body, signal))) {
      throw new Error(
        `${titleOf(body)} is gone from the cluster; run "pulumi up --refresh" to make it again`,
      );
    }
    const live = await applied(context, body, news, manager, preview);
    return preview
      ? stateOf(live, manager)
      : (await ready(context, request, live, news, manager)).state;
  } catch (error) {
    throw explained(error, body, "updated");
  }
}

/** Tells in a preview what the server would refuse, as far as it can know already. */
export async function rehearsed(
  context: Context,
  { urn, type, inputs, signal }: CreateRequest,
): Promise<void> {
  const body = bodyOf(inputs, kindOfType(type).isPatch);
  try {
    if (!(await context.cluster.find(body, signal))) {
      await applied(context, body, inputs, managerOf(urn, inputs, {}), true);
    }
  } catch (error) {
    const refusal = explained(error, body, "created");
    // A namespace or a definition may be among what is created before this.
    if (error !== refusal && /\((Invalid|BadRequest)\)$/.test((refusal as Error).message)) {
      throw refusal;
    }
  }
}

const applied = (
  { cluster, settings }: Context,
  body: Properties,
  inputs: Properties,
  manager: string,
  dryRun: boolean,
): Promise<Properties> =>
  cluster.apply(body, {
    manager,
    force: settings.enablePatchForce || annotation(inputs, "patchForce") === "true",
    dryRun,
  });

async function ready(
  { cluster, connection }: Context,
  request: CreateRequest | UpdateRequest,
  live: Properties,
  inputs: Properties,
  manager: string,
): Promise<Made> {
  const id = idOf(live);
  const judge = judgeOf(inputs);
  if (!judge) {
    return { id, state: stateOf(live, manager) };
  }
  const title = titleOf(live);
  const { object, flaw } = await awaited(live, {
    read: async () => {
      const found = await cluster.find(live, request.signal);
      if (!found) {
        throw new Error("it was deleted");
      }
      return found;
    },
    judge,
    timeoutSeconds: timeoutOf(request.timeoutSeconds, inputs),
    signal: request.signal,
    progress: (why) => connection.progress(request.urn, why && `waiting for ${title}: ${why}`),
  });
  if (flaw !== undefined) {
    const reasons = [
      `${title} is there, but not ready: ${flaw}`,
      ...(await diagnosis(cluster.client, object)),
    ];
    throw new Unready(id, stateOf(object, manager), marked(inputs), reasons);
  }
  return { id, state: stateOf(object, manager) };
}
