import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import { CreateRequest, EngineLog, UpdateRequest } from "../protocol/protocol";
import { isProperties, Properties, Unready, Value } from "../protocol/values";
import { DynamicClient, isMissing, Refused, Unreachable } from "./api";
import {
  annotation,
  at,
  bodyOf,
  idOf,
  isSecret,
  items,
  kindOfType,
  managerKey,
  marked,
  nameOf,
  stateOf,
  text,
  titleOf,
  without,
} from "./objects";

export interface Context {
  readonly cluster: DynamicClient;
  readonly engine: EngineLog;
}

interface Created {
  readonly id: string;
  readonly state: Properties;
}

/** Applies an object, whether or not there is one. */
export async function created(context: Context, request: CreateRequest): Promise<Created> {
  const { cluster, engine } = context;
  const { urn, inputs, signal } = request;
  const body = bodyOf(inputs);
  const manager = managerOf({});
  const live = await cluster
    .retryWhileMissing(
      () => cluster.apply(body, { manager, force: true }),
      signal,
      (why) => engine.progress(urn, why),
    )
    .catch((error: unknown) => {
      throw explained(error, body, "created");
    });
  return { id: idOf(live), state: stateOf(live, manager) };
}

/** The state that a create would lead to, from a dry run; the inputs where there can be none. */
export async function previewed(context: Context, request: CreateRequest): Promise<Properties> {
  const { inputs } = request;
  const body = bodyOf(inputs);
  const manager = managerOf({});
  try {
    const live = await dryRunApply(context, body, manager);
    return stateOf(without(live, "status"), manager);
  } catch (error) {
    if (isUndecided(error)) return marked(inputs);
    throw explained(error, body, "created");
  }
}

/**
 * Whether a preview cannot know what the server would do: what the object needs may be created
 * before it, what is in its place may be deleted before it, and a dry run may be forbidden.
 */
const isUndecided = (error: unknown): boolean =>
  error instanceof Refused && [403, 404].includes(error.code);

/** An object whose fixed fields change is replaced, so its dry run is made under another name. */
async function dryRunApply({ cluster }: Context, body: Properties, manager: string) {
  const how = { manager, force: true, dryRun: true };
  try {
    return await cluster.apply(body, how);
  } catch (error) {
    if (!(error instanceof Refused) || !error.message.includes("field is immutable")) throw error;
    const name = `${nameOf(body)}-${randomBytes(3).toString("hex")}`;
    return cluster.apply({ ...body, metadata: { ...(body.metadata as Properties), name } }, how);
  }
}

/** Applies the new inputs of an object; in a preview, returns what the object would become. */
export async function updated(context: Context, request: UpdateRequest): Promise<Properties> {
  const { cluster } = context;
  const { state, news, preview, signal } = request;
  const body = bodyOf(news);
  const manager = managerOf(state);
  const before = await cluster.find(body, signal).catch((error: unknown) => {
    throw explained(error, body, "updated");
  });
  if (!before) {
    throw new Error(
      `${titleOf(body)} does not exist in the cluster any more; run "pulumi up --refresh" to create it again`,
    );
  }
  try {
    return stateOf(await changed(context, request, before, manager), manager);
  } catch (error) {
    if (preview && error instanceof Refused && error.code === 403) return marked(news);
    const reason = explained(error, body, "updated") as Error;
    const live = preview ? undefined : await cluster.find(body).catch(() => undefined);
    throw live
      ? new Unready(idOf(live), stateOf(live, manager), marked(news), [reason.message])
      : reason;
  }
}

async function changed(
  context: Context,
  { type, news, preview }: UpdateRequest,
  before: Properties,
  manager: string,
): Promise<Properties> {
  const { cluster } = context;
  const body = bodyOf(news);
  const dryRun = preview;
  if (text(news.kind) === "CustomResourceDefinition") {
    return cluster.replace(body, { manager, dryRun, like: before });
  }
  if (!preview && !kindOfType(type).isPatch) await adoptFields(cluster, before, manager);
  return cluster.apply(body, { manager, force: true, dryRun });
}

/**
 * The field manager of a resource. As with the official plugin, it is a random one whenever the
 * state has none: who creates an object again meets the fields of who created it before.
 */
export const managerOf = (state: Properties): string =>
  text(state[managerKey]) || `pulumi-kubernetes-${randomBytes(4).toString("hex")}`;

/**
 * Managers whose fields an update makes its own, by the beginning of the name, and operation: kubectl
 * is another one for each of its commands. What the inputs do not have of these fields, it takes
 * away.
 */
const clientSide: readonly (readonly [name: string, operation: string])[] = [
  ["kubectl", "Apply"],
  ["kubectl", "Update"],
  ["before-first-apply", "Update"],
  ["pulumi-kubernetes", "Update"],
  ["pulumi-resource-kubernetes", "Update"],
];

const isClientSide = ({ manager, operation, subresource }: Properties): boolean =>
  !subresource &&
  clientSide.some(([name, how]) => text(manager).startsWith(name) && operation === how);

/** Gives the fields of client-side managers to the manager that applies from now on. */
async function adoptFields(
  cluster: DynamicClient,
  live: Properties,
  manager: string,
): Promise<void> {
  const fields = items(at(live, "metadata", "managedFields"));
  const isOwn = (entry: Properties): boolean =>
    entry.manager === manager && entry.operation === "Apply" && !entry.subresource;
  const adopted = fields.filter(isClientSide);
  if (adopted.length === 0) return;
  const own = [...fields.filter(isOwn), ...adopted].reduce((all, entry) => ({
    ...all,
    fieldsV1: union(all.fieldsV1, entry.fieldsV1),
  }));
  await cluster.setManagers(live, [
    ...fields.filter((entry) => !isOwn(entry) && !isClientSide(entry)),
    { ...own, manager, operation: "Apply" },
  ]);
}

const union = (one: Value, other: Value): Value =>
  isProperties(one) && isProperties(other)
    ? Object.fromEntries(
        Object.keys({ ...one, ...other }).map((key) => [key, union(one[key], other[key])]),
      )
    : (one ?? other);

/**
 * Applies nothing but the name, so that fields without another manager lose their value. An object
 * that does not exist is created by this, as by the official plugin.
 */
export async function relinquished(
  cluster: DynamicClient,
  { apiVersion, kind, metadata }: Properties,
  manager: string,
): Promise<void> {
  const { namespace, name } = metadata as Properties;
  const identity = namespace ? { namespace, name } : { name };
  await cluster.apply({ apiVersion, kind, metadata: identity }, { manager, force: false });
}

/** What the server says about a Secret can quote it. */
function withoutContents(message: string, object: Properties): string {
  if (!isSecret(object)) {
    return message;
  }
  const data = isProperties(object.data) ? Object.values(object.data).map(text) : [];
  const contents = [...data, ...data.map((value) => Buffer.from(value, "base64").toString())];
  // A decoder quotes what lies around its error, and a type error the whole value.
  const cut = message.split(/\.\.\.\||, got |: Invalid value: |Value:/)[0] ?? "";
  return contents
    .filter((value) => value.length > 3)
    .reduce((text, value) => text.replaceAll(value, "[secret]"), cut);
}

/** The server's answer, in terms of the object and of what can be done. */
export function explained(error: unknown, object: Properties, verb: string): unknown {
  if (!(error instanceof Refused)) {
    return error;
  }
  const title = titleOf(object);
  const required = error.causes.find(({ reason }) => reason === "FieldValueRequired");
  if (verb === "relinquished" && required) {
    return new Error(
      `this Patch of ${title} manages a field that the object must have: ${text(required.field)}. ` +
        `Set the resource option retainOnDelete, or let another manager set the field first`,
    );
  }
  const why = withoutContents(error.message, object);
  return new Error(`${title} could not be ${verb}: ${why} (${error.reason || error.code})`);
}

/** For these kinds, the annotation skipAwait holds for deletion too. */
const deletedWithoutWaiting = ["DaemonSet", "Deployment", "Namespace"];

const firstPauseMs = 50;
const longestPauseMs = 1000;
/** Shorter waits are not reported. */
const quietMs = 1000;
const defaultTimeoutSeconds = 600;

interface Deleting {
  readonly signal: AbortSignal;
  /** Of customTimeouts; 0 where there are none. */
  readonly timeoutSeconds: number;
  /** Gets what holds it back when it takes a while, and an empty text when that is over. */
  readonly progress: (why: string) => void;
}

/** What holds back an object that is to go. */
function heldBy(object: Properties): string {
  const finalizers = at(object, "metadata", "finalizers");
  const conditions = items(at(object, "status", "conditions"))
    .filter(({ status, type }) => status === "True" && /Remaining|Failure/.test(text(type)))
    .map(({ message }) => text(message));
  const held =
    Array.isArray(finalizers) && finalizers.length > 0
      ? [`finalizers ${finalizers.join(", ")}`]
      : [];
  return ["it is still there", ...held, ...conditions].join("; ");
}

/** Deletes an object and ends when it is gone. */
export async function deleted(
  cluster: DynamicClient,
  object: Properties,
  inputs: Properties,
  deleting: Deleting,
): Promise<void> {
  try {
    await cluster.remove(object);
  } catch (error) {
    if (isMissing(error)) {
      return;
    }
    throw error;
  }
  const skips =
    annotation(inputs, "skipAwait") === "true" && deletedWithoutWaiting.includes(text(object.kind));
  const before = skips ? undefined : await cluster.find(object, deleting.signal);
  if (before) await gone(cluster, before, deleting);
}

/** The pauses grow, since most are gone at once and some take minutes. */
async function gone(
  cluster: DynamicClient,
  before: Properties,
  { signal, timeoutSeconds, progress }: Deleting,
): Promise<void> {
  const title = titleOf(before);
  const start = Date.now();
  const limit = timeoutSeconds || defaultTimeoutSeconds;
  const failed = (why: string) => new Error(`${title} is being deleted, but not gone: ${why}`);
  let held = heldBy(before);
  let reported = "";
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    if (Date.now() > start + limit * 1000) throw failed(`${held} after ${limit} seconds`);
    if (held !== reported && Date.now() > start + quietMs) {
      progress(`waiting for ${title} to go: ${held}`);
      reported = held;
    }
    try {
      await pause(pauseMs, undefined, { signal });
      const found = await cluster.find(before, signal);
      // One that was made anew under the same name is another.
      if (!found || at(found, "metadata", "uid") !== at(before, "metadata", "uid")) break;
      held = heldBy(found);
    } catch (error) {
      // An API server that restarts in the meantime is back soon.
      if (error instanceof Unreachable && !signal.aborted) continue;
      const why = signal.aborted ? "the run was interrupted" : (error as Error).message;
      throw failed(`${held}, and then ${why}`);
    }
  }
  if (reported !== "") progress("");
}
