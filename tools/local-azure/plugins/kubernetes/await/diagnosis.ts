import { Properties } from "../../protocol/values";
import { Client } from "../api/client";
import { at, items, nameOf, namespaceOf, text } from "../objects";

const sentence = (...parts: readonly string[]): string =>
  parts.filter((part) => part !== "").join(": ");

function containerProblems(pod: Properties): string[] {
  const statuses = ["initContainerStatuses", "containerStatuses"].flatMap((key) =>
    items(at(pod, "status", key)),
  );
  return statuses.flatMap((status) => {
    const waiting = at(status, "state", "waiting");
    const ended = at(status, "state", "terminated");
    const before = at(status, "lastState", "terminated");
    const exit = at(ended ?? before, "exitCode");
    if (status.ready === true || (exit === 0 && waiting === undefined)) {
      return [];
    }
    const last = typeof exit === "number" && exit !== 0 ? `last exit code ${exit}` : "";
    const why = sentence(text(at(waiting, "reason")), text(at(waiting, "message")));
    return [
      `container ${text(status.name)}: ${[why, last].filter(Boolean).join(", ") || "not ready"}`,
    ];
  });
}

/** Undefined for a pod that is as it should be. */
export function podProblem(pod: Properties): string | undefined {
  const conditions = items(at(pod, "status", "conditions"));
  const phase = text(at(pod, "status", "phase"));
  const isReady = conditions.some(({ type, status }) => type === "Ready" && status === "True");
  if (isReady || phase === "Succeeded") {
    return undefined;
  }
  const unplaced = conditions.find(
    ({ type, status }) => type === "PodScheduled" && status === "False",
  );
  const node = text(at(pod, "spec", "nodeName"));
  const why = unplaced
    ? [sentence(text(unplaced.reason), text(unplaced.message))]
    : containerProblems(pod);
  const place = node === "" ? "" : ` on node ${node}`;
  return `pod ${nameOf(pod)}${place}: ${[phase, ...why].filter(Boolean).join("; ")}`;
}

const shownPods = 5;
const shownEvents = 3;

/** The reasons why an object does not become ready, from its pods and the last events. */
export async function diagnosis(client: Client, object: Properties): Promise<string[]> {
  const namespace = namespaceOf(object);
  if (namespace === "") {
    return [];
  }
  const list = async (plural: string, query: Record<string, string>) =>
    items(
      (
        await client.request({
          method: "GET",
          path: `/api/v1/namespaces/${namespace}/${plural}`,
          query,
        })
      ).items,
    );
  const events = async (name: string, kind: string) =>
    (
      await list("events", {
        fieldSelector: `involvedObject.name=${name},involvedObject.kind=${kind}`,
      })
    )
      .filter(({ type }) => type === "Warning")
      .sort((a, b) =>
        text(a.lastTimestamp ?? a.eventTime).localeCompare(text(b.lastTimestamp ?? b.eventTime)),
      )
      .slice(-shownEvents)
      .map((event) =>
        sentence(`event on ${kind.toLowerCase()} ${name}`, text(event.reason), text(event.message)),
      );
  try {
    const labels = at(object, "spec", "selector", "matchLabels");
    const selector = Object.entries((labels ?? {}) as Properties)
      .map(([key, value]) => `${key}=${text(value)}`)
      .join(",");
    const pods = selector === "" ? [] : await list("pods", { labelSelector: selector });
    const unready = pods.filter((pod) => podProblem(pod) !== undefined);
    const shown = unready.slice(0, shownPods);
    const more = unready.length - shown.length;
    return [
      ...shown.flatMap((pod) => podProblem(pod) ?? []),
      ...(more > 0 ? [`and ${more} more pods that are not ready`] : []),
      ...(shown[0] ? await events(nameOf(shown[0]), "Pod") : []),
      ...(await events(nameOf(object), text(object.kind))),
    ];
  } catch {
    // The reasons are a help only; the error is reported without them too.
    return [];
  }
}
