import { KubernetesApi } from "../cluster/kubernetes-api";
import { containerAddress, listSnapshots } from "../azure/snapshots";
import type { Initialization } from "./initialization";
import { compactTime, parseCompactTime } from "../settings/times";
import type { Settings } from "../settings/settings";

interface SnapshotArgs {
  readonly settings: Pick<
    Settings,
    | "clusterName"
    | "etcdBackups"
    | "resourceManagerEndpoint"
    | "restoreFrom"
    | "skipHealthCheckUntil"
  >;
  readonly initialization: Pick<Initialization, "isRestoring" | "isByChoice">;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

interface Answer {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

const fine: Answer = { problems: [], warnings: [] };

/**
 * Whether the snapshot that this update restores is there: the machine that fetches it is made after those
 * have been deleted that hold the cluster. A cluster that is lost is restored also where nobody can say.
 */
export async function checkSnapshot(args: SnapshotArgs): Promise<Answer> {
  const { settings, initialization, kubeconfig, now } = args;
  if (!initialization.isRestoring) return fine;
  const { clusterName, restoreFrom } = settings;
  const container = containerAddress(settings);
  const listed = await listSnapshots(settings);
  if (listed.unknown === undefined) {
    const { names } = listed;
    const isThere = restoreFrom === "latest" ? names.length > 0 : names.includes(restoreFrom);
    return isThere ? fine : { problems: [missing(settings, container, names)], warnings: [] };
  }
  if (await isReported(restoreFrom, container, kubeconfig)) return fine;
  const unsure = `whether ${restoreFrom === "latest" ? "a snapshot" : `snapshot ${restoreFrom}`} of cluster ${clusterName} is in ${container} is not known: ${listed.unknown}`;
  const isSkipped = parseCompactTime(settings.skipHealthCheckUntil) > Date.parse(now);
  return initialization.isByChoice && !isSkipped
    ? { problems: [`${unsure}. ${waysToKnow(settings, now)}`], warnings: [] }
    : {
        problems: [],
        warnings: [
          `${unsure}. If it is not, the bootstrap step of the first control plane says which there are, ` +
            "and pulumi up goes on when restoreFrom names one of them",
        ],
      };
}

function missing(
  { clusterName, restoreFrom }: SnapshotArgs["settings"],
  container: string,
  names: readonly string[],
): string {
  const newest = names.slice(-5);
  const way =
    newest.length > 0
      ? `name one of them: pulumi config set restoreFrom ${newest.at(-1)}`
      : "look at etcdBackups.container and clusterName, or take restoreFrom back: pulumi config rm restoreFrom";
  return (
    `restoreFrom is ${restoreFrom}, and there is no such snapshot of cluster ${clusterName} in ${container}; ` +
    `the newest are: ${newest.join(", ") || "none"}. Nothing was changed; ${way}`
  );
}

const waysToKnow = ({ etcdBackups }: SnapshotArgs["settings"], now: string): string =>
  "The control plane is not lost, and would be deleted before anybody looks. To have this login see the container, and run again in some minutes: " +
  `az role assignment create --role "Storage Blob Data Reader" --assignee LOGIN --scope ${etcdBackups?.container}. ` +
  `If you know that it is there: pulumi config set skipHealthCheckUntil ${compactTime(Date.parse(now) + 3_600_000)}, and pulumi up before then`;

/** Whether the control planes say of their last snapshot that it is this one. */
async function isReported(
  name: string,
  container: string,
  kubeconfig: string | undefined,
): Promise<boolean> {
  if (kubeconfig === undefined) return false;
  const api = new KubernetesApi(kubeconfig);
  try {
    const path = "/api/v1/namespaces/kube-system/configmaps/zoned-etcd-snapshot";
    const { data = {} } = JSON.parse(await api.get(path)) as { data?: Record<string, string> };
    return (
      data["where"] === container &&
      data["name"] !== undefined &&
      (name === "latest" || data["name"] === name)
    );
  } catch {
    return false;
  } finally {
    await api.close();
  }
}
