import { CreateRequest, UpdateRequest } from "../protocol";
import { Connection } from "../protocol/connections";
import { Unready } from "../protocol/failures";
import { Properties } from "../protocol/values";
import { Cluster } from "./cluster";
import { Settings } from "./config";
import { diagnosis } from "./diagnosis";
import { managerOf } from "./naming";
import {
  annotation,
  at,
  bodyOf,
  idOf,
  items,
  kindOfType,
  marked,
  stateOf,
  titleOf,
} from "./objects";
import { judgeOf } from "./readiness";
import { explained, notThere } from "./refusals";
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
  const manager = managerOf(inputs, {});
  const live = await cluster
    .onceItCan(
      async () => {
        if (isPatch && !(await cluster.find(body, signal))) {
          throw notThere(body);
        }
        return isPatch || settings.upsertExistingObjects
          ? applied(context, body, inputs, manager, false)
          : cluster.create(body, { manager: creator });
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
  const { type, state, news, preview, signal } = request;
  const body = bodyOf(news, kindOfType(type).isPatch);
  const manager = managerOf(news, state);
  try {
    const found = await cluster.find(body, signal);
    if (!found) {
      throw new Error(
        `${titleOf(body)} is gone from the cluster; run "pulumi up --refresh" to make it again`,
      );
    }
    if (!preview && !kindOfType(type).isPatch) await takeOver(cluster, found, manager);
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
  { type, inputs, signal }: CreateRequest,
): Promise<void> {
  const body = bodyOf(inputs, kindOfType(type).isPatch);
  try {
    if (!(await context.cluster.find(body, signal))) {
      await context.cluster.create(body, { manager: creator, dryRun: true });
    }
  } catch (error) {
    const refusal = explained(error, body, "created");
    // A namespace or a definition may be among what is created before this.
    if (error !== refusal && /\((Invalid|BadRequest)\)$/.test((refusal as Error).message)) {
      throw refusal;
    }
  }
}

/** Under which name the official plugin makes objects that must not be there yet. */
const creator = "pulumi-kubernetes";

/** Gives the fields that were set when the object was made to the name under which they are applied from now on. */
async function takeOver(cluster: Cluster, live: Properties, manager: string): Promise<void> {
  const fields = items(at(live, "metadata", "managedFields") ?? []);
  const isMade = (one: Properties): boolean =>
    one.manager === creator && one.operation === "Update" && !one.subresource;
  const isApplied = fields.some((one) => one.manager === manager && one.operation === "Apply");
  if (isApplied || !fields.some(isMade)) return;
  await cluster.setManagers(
    live,
    fields.map((one) => (isMade(one) ? { ...one, manager, operation: "Apply" } : one)),
  );
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
