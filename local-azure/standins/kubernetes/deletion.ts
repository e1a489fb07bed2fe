import { Properties } from "../protocol/values";
import { Refused } from "./client";
import { Cluster } from "./cluster";
import { UnknownKind } from "./discovery";
import { annotation, at, items, text, titleOf } from "./objects";
import { awaited } from "./waiting";

/** Of these, the annotation skipAwait is heeded when they are deleted too. */
const deletedWithoutWaiting = ["DaemonSet", "Deployment", "Job", "Namespace", "Pod", "StatefulSet"];

const propagationPolicies: Readonly<Record<string, string>> = {
  background: "Background",
  orphan: "Orphan",
};

interface Deleting {
  readonly signal: AbortSignal;
  readonly timeoutSeconds: number;
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

const isGone = (error: unknown): boolean =>
  error instanceof UnknownKind || (error instanceof Refused && error.code === 404);

/** Deletes an object and ends when it is gone. */
export async function deleted(
  cluster: Cluster,
  object: Properties,
  inputs: Properties,
  { signal, timeoutSeconds, progress }: Deleting,
): Promise<void> {
  const policy = annotation(inputs, "deletionPropagationPolicy").toLowerCase();
  let before: Properties | undefined;
  try {
    before = await cluster.find(object, signal);
    await cluster.remove(object, propagationPolicies[policy] ?? "Foreground");
  } catch (error) {
    if (isGone(error)) {
      return;
    }
    throw error;
  }
  const skips =
    annotation(inputs, "skipAwait") === "true" && deletedWithoutWaiting.includes(text(object.kind));
  if (skips || !before) {
    return;
  }
  const uid = at(before, "metadata", "uid");
  const gone = {};
  const { flaw } = await awaited(before, {
    // One that was made anew under the same name is another.
    read: async () => {
      const found = await cluster.find(object, signal);
      return found && at(found, "metadata", "uid") === uid ? found : gone;
    },
    judge: (found) => (found === gone ? undefined : heldBy(found)),
    timeoutSeconds,
    signal,
    progress: (why) => progress(why && `waiting for ${titleOf(object)} to go: ${why}`),
  });
  if (flaw !== undefined) {
    throw new Error(`${titleOf(object)} is being deleted, but not gone: ${flaw}`);
  }
}

/** Gives up what a patch set: fields that nobody else manages lose their value. */
export async function relinquished(
  cluster: Cluster,
  object: Properties,
  manager: string,
): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  if (!(await cluster.find(object))) {
    return;
  }
  const { namespace, name } = metadata as Properties;
  const identity = namespace === "" ? { name } : { namespace, name };
  try {
    await cluster.apply({ apiVersion, kind, metadata: identity }, { manager, force: false });
  } catch (error) {
    if (!isGone(error)) {
      throw error;
    }
  }
}
