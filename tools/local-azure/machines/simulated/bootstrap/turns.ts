import { setTimeout as wait } from "node:timers/promises";

import { turnsName } from "../../../../../components/cluster/turns";
import type { Payload } from "../../../../../components/machine/payload";
import { type Api, ApiError, type Body } from "../api";

const path = `/api/v1/namespaces/kube-system/configmaps/${turnsName}`;
const pollMs = 500;

/** Nothing in a cluster of before, in which a kubelet may not read it either. */
const turnsOf = (kubelet: Api): Promise<Body | undefined> =>
  kubelet.find(path).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  });

const downFor = (value: string | undefined): string => (value ?? "").split(" ")[0]!;

/** Notes that an update takes this machine down, once no other one is down for something else. */
export async function awaitTurn(
  kubelet: Api,
  { machine, drainMinutes }: Payload,
  patience: number,
): Promise<void> {
  for (const end = Date.now() + patience; ; await wait(pollMs)) {
    const turns = await turnsOf(kubelet);
    if (turns === undefined) return;
    const other = Object.entries((turns["data"] ?? {}) as Record<string, string>).find(
      ([name, value]) =>
        name !== machine &&
        downFor(value) !== "update" &&
        Date.parse(value.split(" ")[1] ?? "") > Date.now(),
    );
    if (other === undefined) {
      const until = new Date(Date.now() + (drainMinutes + 30) * 60_000).toISOString();
      const data = { [machine]: `update ${until.replace(/\.\d+/, "")}` };
      await kubelet.patch(path, { data });
      return;
    }
    if (Date.now() > end) {
      const [name, value] = other;
      throw new Error(
        `this machine was not touched, since only one may be down: ${name} is down for ${downFor(value)}`,
      );
    }
  }
}

/** Takes back what an update has noted of this machine. */
export async function endTurn(kubelet: Api, { machine }: Payload): Promise<void> {
  const turns = await turnsOf(kubelet);
  if (downFor(turns?.["data"]?.[machine]) === "update") {
    await kubelet.patch(path, { data: { [machine]: null } });
  }
}
