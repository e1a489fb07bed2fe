import { Properties } from "../../protocol/values";
import { DynamicClient, isMissing } from "../api/dynamic-client";
import { annotation, at, items, text, titleOf } from "../objects";
import { awaited } from "../await/readiness";

/** For these kinds, the annotation skipAwait holds for deletion too. */
const deletedWithoutWaiting = ["DaemonSet", "Deployment", "Namespace"];

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

/** Deletes an object and ends when it is gone. */
export async function deleted(
  cluster: DynamicClient,
  object: Properties,
  inputs: Properties,
  { signal, timeoutSeconds, progress }: Deleting,
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
  const before = skips ? undefined : await cluster.find(object, signal);
  if (!before) {
    return;
  }
  const uid = at(before, "metadata", "uid");
  const gone = {};
  const { problem } = await awaited(before, {
    // One that was made anew under the same name is another.
    read: async () => {
      const found = await cluster.find(object, signal);
      return found && at(found, "metadata", "uid") === uid ? found : gone;
    },
    rule: async (found) => (found === gone ? undefined : heldBy(found)),
    timeoutSeconds,
    signal,
    progress: (why) => progress(why && `waiting for ${titleOf(object)} to go: ${why}`),
  });
  if (problem !== undefined) {
    throw new Error(`${titleOf(object)} is being deleted, but not gone: ${problem}`);
  }
}
