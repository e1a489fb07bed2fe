import { setTimeout as pause } from "node:timers/promises";

import { retryTransient } from "./drain";
import { ApiError, KubernetesApi } from "./kubernetes-api";

/**
 * Name of the ConfigMap that says which machines are down, or about to be: a machine, what takes it down,
 * and when that is forgotten. Events of Azure, kured, renewals of certificates and updates all ask here.
 */
export const turnsName = "zoned-maintenance";

/** Annotation of it: the cluster's machines, so that one that leaves is known to be made anew or not. */
export const machinesMark = "zoned/machines";

/** Annotation of it: between two steps of an update no machine has its turn, and none is repaired. */
export const repairsWait = "zoned/repairs-wait-until";

/** Annotation of a Node that its machine has cordoned for an event of Azure. */
export const eventCordon = "zoned/cordoned-for-maintenance";

const path = `/api/v1/namespaces/kube-system/configmaps/${turnsName}`;

const pollMilliseconds = 5000;

/** As after kured: longer than a machine takes to be made anew, for one that does not come back. */
const backMinutes = 30;

/** Longer than there is between two steps of an update. */
const waitMinutes = 15;

/** Machines of an update follow each other as Pulumi has it, and wait for no other one of it. */
const update = "update";

interface Turn {
  readonly api: KubernetesApi;
  readonly machine: string;
  /** How long another machine may be waited for, and this one be drained. */
  readonly minutes: number;
}

/**
 * Notes that an update takes this machine down, once no machine is down for another reason.
 *
 * @throws Error that names such a machine after `minutes`
 */
export async function takeTurn({ api, machine, minutes }: Turn): Promise<void> {
  for (const end = Date.now() + minutes * 60_000; ; await pause(pollMilliseconds)) {
    const others = await changed(api, machine, minutes + backMinutes);
    if (others.length === 0) return;
    if (Date.now() > end) {
      throw new Error(
        `${machine} was not touched, since only one machine may be down, and it has waited for ${minutes} minutes (drainMinutes): ` +
          `${others.join("; ")}. Run pulumi up again when that is back: kubectl --namespace kube-system get configmap ${turnsName} --output yaml`,
      );
    }
  }
}

/** By the API server's time, for machines judge it by their own, and the operator's clock may be off. */
const inMinutes = ({ now }: KubernetesApi, minutes: number): string =>
  new Date(now + minutes * 60_000).toISOString().replace(/\.\d+/, "");

/** Takes back what an update has noted of this machine. */
export const endTurn = ({ api, machine }: Turn): Promise<unknown> => changed(api, machine, null);

/** The same of a machine that has left for good, and that no bootstrap step of its own will say to be back. */
export async function endTurnIfGone(turn: Turn): Promise<void> {
  const turns = await retryTransient(() => turn.api.find(path));
  const machines = turns?.metadata.annotations?.[machinesMark]?.split(" ");
  if (machines !== undefined && !machines.includes(turn.machine)) await endTurn(turn);
}

/** Whether a line is a machine's own, or that of what repairs it. */
export const isOwnTurn = (machine: string, line: string): boolean =>
  line === machine || line === `repair.${machine}`;

/**
 * Says that an update takes a machine down for some minutes, or by null takes that back; or returns who is
 * down. Whoever writes meanwhile makes it ask again.
 */
async function changed(
  api: KubernetesApi,
  machine: string,
  minutes: number | null,
): Promise<readonly string[]> {
  for (;;) {
    const turns = await retryTransient(() => api.find(path));
    // A cluster of before gets it by the update that is under way.
    if (turns === undefined) return [];
    const { data = {}, metadata } = turns;
    const others = Object.entries(data).flatMap(([name, text]) => {
      const [by, until = ""] = text.split(" ");
      const isOther = !isOwnTurn(machine, name) && by !== update && Date.parse(until) > api.now;
      return isOther ? [`${name} is down for ${by}, at most until ${until}`] : [];
    });
    if (minutes !== null && others.length > 0) return others;
    if (minutes === null && !data[machine]?.startsWith(`${update} `)) return [];
    try {
      const { resourceVersion } = metadata;
      const value = minutes === null ? null : `${update} ${inMinutes(api, minutes)}`;
      const annotations = { [repairsWait]: inMinutes(api, waitMinutes) };
      await retryTransient(() =>
        api.merge(path, { metadata: { resourceVersion, annotations }, data: { [machine]: value } }),
      );
      return [];
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error;
    }
  }
}
