import { withApi } from "../cluster/kubernetes-api";
import { containerAddress, listSnapshots, type Snapshot } from "../azure/snapshots";
import type { Initialization } from "./initialization";
import { quoted } from "../settings/problem";
import { compactTime, isHealthCheckSkipped } from "../settings/times";
import type { Settings } from "../settings/settings";
import { etcdOf, minorOf } from "../versions";
import { isNewerMinor } from "./upgrade";

interface SnapshotArgs {
  readonly settings: Pick<
    Settings,
    | "clusterName"
    | "etcdBackups"
    | "kubernetesVersion"
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
    const { snapshots } = listed;
    const found =
      restoreFrom === "latest"
        ? snapshots.at(-1)
        : snapshots.find(({ name }) => name === restoreFrom);
    const names = snapshots.map(({ name }) => name);
    return found === undefined
      ? { problems: [missing(settings, container, names)], warnings: [] }
      : { problems: tooNew(settings, found), warnings: [] };
  }
  const reported = await getReported(restoreFrom, container, kubeconfig);
  if (reported !== undefined) return { problems: tooNew(settings, reported), warnings: [] };
  const unsure = `whether ${restoreFrom === "latest" ? "a snapshot" : `snapshot ${restoreFrom}`} of cluster ${clusterName} is in ${container} is not known: ${listed.unknown}`;
  const isSkipped = isHealthCheckSkipped(settings, now);
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

/** An older etcd cannot read what a newer minor has written. */
function tooNew(
  { kubernetesVersion }: SnapshotArgs["settings"],
  { name, etcd }: Snapshot,
): string[] {
  const own = etcdOf(kubernetesVersion);
  if (etcd === undefined || !isNewerMinor(etcd, own)) return [];
  return [
    `snapshot ${name} is of etcd ${etcd}, and Kubernetes ${kubernetesVersion} runs etcd ${minorOf(own)}, which cannot read it. Nothing was changed; ` +
      "set kubernetesVersion to what the cluster ran then, or name a snapshot from before its upgrade (pulumi config set restoreFrom)",
  ];
}

const waysToKnow = ({ etcdBackups }: SnapshotArgs["settings"], now: string): string =>
  "The control plane is not lost, and would be deleted before anybody looks. To have this login see the container, and run again in some minutes: " +
  `az role assignment create --role "Storage Blob Data Reader" --assignee LOGIN --scope ${quoted(etcdBackups?.container ?? "")}. ` +
  `If you know that it is there: pulumi config set skipHealthCheckUntil ${compactTime(Date.parse(now) + 3_600_000)}, and pulumi up before then`;

/** The last snapshot, if the control planes say of it that it is this one. */
async function getReported(
  wanted: string,
  container: string,
  kubeconfig: string | undefined,
): Promise<Snapshot | undefined> {
  if (kubeconfig === undefined) return undefined;
  const path = "/api/v1/namespaces/kube-system/configmaps/zoned-etcd-snapshot";
  try {
    const answer = await withApi(kubeconfig, (api) => api.get(path));
    const { where, name, etcd } =
      (JSON.parse(answer) as { data?: Record<string, string> }).data ?? {};
    const isThis = where === container && name !== undefined && ["latest", name].includes(wanted);
    return isThis ? { name, etcd } : undefined;
  } catch {
    return undefined;
  }
}
