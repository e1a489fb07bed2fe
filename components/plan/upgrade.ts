import { AzureState } from "../azure/state";
import { type MachineChange, memberState, PreviousOutputs } from "./machine-changes";
import { Settings } from "../settings/settings";
import { etcdOf, minorFor, minorOf } from "../versions";
import { getEtcdVersions } from "../cluster/etcd-member";
import { withApi } from "../cluster/kubernetes-api";
import { isHealthCheckSkipped } from "../settings/times";
import { isControlPlaneName, type MachinePlan } from "../settings/topology";

const numbersOf = (version: string): [number, number, number] => {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  return [major, minor, patch];
};

/** Whether a version comes after another one. */
function isNewer(version: string, than: string): boolean {
  const [a, b] = [numbersOf(version), numbersOf(than)];
  const at = a.findIndex((number, index) => number !== b[index]);
  return at >= 0 && a[at]! > b[at]!;
}

/** Whether a version is of a minor that comes after another one's. */
export const isNewerMinor = (version: string, than: string): boolean =>
  isNewer(minorOf(version), minorOf(than));

/** Names of machines by the version that each runs, as far as anybody knows. */
function machinesByVersion(
  machines: AzureState["machines"],
  previous: PreviousOutputs | undefined,
  isLeftOut: (name: string) => boolean = () => false,
): Map<string, string[]> {
  const names = new Set([...machines.keys(), ...Object.keys(previous?.machines ?? {})]);
  const byVersion = new Map<string, string[]>();
  for (const name of names) {
    const { kubernetesVersion } = memberState(machines.get(name), previous?.machines[name]);
    if (kubernetesVersion === undefined || isLeftOut(name)) continue;
    byVersion.set(kubernetesVersion, [...(byVersion.get(kubernetesVersion) ?? []), name]);
  }
  return byVersion;
}

/** Whether some machine still runs another minor than the settings name. */
export const isOtherMinor = (
  { kubernetesVersion: wanted }: Pick<Settings, "kubernetesVersion">,
  { machines }: Pick<AzureState, "machines">,
  previous: PreviousOutputs | undefined,
): boolean =>
  [...machinesByVersion(machines, previous).keys()].some(
    (version) => minorOf(version) !== minorOf(wanted),
  );

/** Names of control planes that do not only become another version. */
export interface ControlPlaneChanges {
  /** Made anew in place of those that are no members any more. */
  readonly lost: readonly string[];
  /** Made anew by a change of the settings. */
  readonly replaced: readonly string[];
  readonly removed: readonly string[];
}

const none: ControlPlaneChanges = { lost: [], replaced: [], removed: [] };

/**
 * Why the cluster cannot become the version that the settings name: kubeadm neither skips a minor
 * nor goes back (https://kubernetes.io/releases/version-skew-policy/).
 *
 * One control plane of another version than the others joins only where the upgrade is under way.
 *
 * @param controlPlanes undefined where the cluster is restored: all of them are made anew then, whatever they run
 */
export function upgradeProblems(
  settings: Pick<Settings, "clusterName" | "kubernetesVersion">,
  { machines }: Pick<AzureState, "machines">,
  previous: PreviousOutputs | undefined,
  controlPlanes?: ControlPlaneChanges,
): string[] {
  const { kubernetesVersion: wanted } = settings;
  const { lost, replaced, removed } = controlPlanes ?? none;
  const byVersion = machinesByVersion(
    machines,
    previous,
    (name) => controlPlanes === undefined && isControlPlaneName(settings, name),
  );
  const [wantedMajor, wantedMinor] = numbersOf(wanted);
  const others = [...byVersion].filter(([version]) => version !== wanted);
  // Some of it cannot be taken back any more: what is lost then comes back as the others become.
  const isUnderWay = byVersion.has(wanted);
  const remade = isUnderWay ? replaced : [...lost, ...replaced];
  const behind = removed.filter((name) => others.some(([, members]) => members.includes(name)));
  const first = isUnderWay
    ? "take that change back, and run pulumi up until the upgrade has ended"
    : `pulumi config set kubernetesVersion ${others[0]?.[0]} and pulumi up first`;
  const mixed =
    others.length === 0
      ? []
      : [
          ...(remade.length > 0 ? [`${remade.join(", ")} would be made anew`] : []),
          ...(behind.length > 0
            ? [
                `${behind.join(", ")} would be removed at the end, with API servers that are older than kubelets until then`,
              ]
            : []),
        ].map(
          (does) =>
            `kubernetesVersion changes to ${wanted}, and ${does} in the same update: do one after the other (${first})`,
        );
  const skewed = others.flatMap(([version, members]) => {
    const [major, minor] = numbersOf(version);
    const run = `kubernetesVersion is ${wanted}, and ${members.join(", ")} run ${version}`;
    if (isNewer(version, wanted)) {
      return [
        `${run}; Kubernetes cannot go back to an older version (pulumi config set kubernetesVersion ${version})`,
      ];
    }
    if (wantedMajor !== major || wantedMinor > minor + 1) {
      return [
        `${run}; kubeadm upgrades by one minor at a time: go to ${major}.${minor + 1} first ` +
          `(pulumi config set kubernetesVersion ${major}.${minor + 1}.0, or a later patch of it, by a release of this program that knows it)`,
      ];
    }
    return [];
  });
  return [...skewed, ...mixed];
}

interface EtcdVersionArgs {
  readonly settings: Pick<Settings, "kubernetesVersion" | "skipHealthCheckUntil">;
  readonly changes: readonly MachineChange[];
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  readonly previous: PreviousOutputs | undefined;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/**
 * Why etcd must not become another minor with Kubernetes. kubeadm starts the etcd of its own minor
 * beside whatever members there are, and leaves a newer one as it is, with its flags and certificates.
 * Asked is where this update upgrades to another minor, or takes back an upgrade that has failed.
 *
 * Where the operator has the health check skipped, nobody is asked.
 */
export async function etcdVersionProblems(args: EtcdVersionArgs): Promise<string[]> {
  const { settings, kubeconfig, now } = args;
  const question = upgradeQuestion(args) ?? returnQuestion(args);
  if (question === undefined || kubeconfig === undefined) return [];
  if (isHealthCheckSkipped(settings, now)) return [];
  const { wants, members, problemWith } = question;
  return withApi(kubeconfig, async (api) => {
    const urls = members.map(({ address }) => `https://${address}:2379`);
    const versions = await getEtcdVersions(api, members[0]!.name, urls);
    const problem = problemWith(
      members.map(({ name }, index) => ({ name, version: versions[index]! })),
    );
    return problem === undefined ? [] : [`${wants}, and ${problem}`];
  }).catch(({ message }: Error) => [
    `${wants}, and nobody knows which version the members have: ${message}. ` +
      "Nothing was changed; see that every control plane runs and is well (npm run doctor), then run pulumi up again",
  ]);
}

interface Question {
  /** What the settings want and why that matters. */
  readonly wants: string;
  readonly members: readonly MachinePlan[];
  readonly problemWith: (said: readonly Reported[]) => string | undefined;
}

/** What a member says of itself. */
interface Reported {
  readonly name: string;
  readonly version: string;
}

const list = (said: readonly Reported[]): string =>
  said.map(({ name, version }) => `${name} reports ${version}`).join(", ");

/** Asks those that this update upgrades to another minor, resized or not, if its etcd wants something of members. */
function upgradeQuestion(args: EtcdVersionArgs): Question | undefined {
  const { settings, changes, controlPlanes, azure, previous } = args;
  const { kubernetesVersion } = settings;
  const { etcdBefore } = minorFor(kubernetesVersion);
  const versionOf = ({ name }: MachinePlan): string =>
    memberState(azure.machines.get(name), previous?.machines[name]).kubernetesVersion ??
    kubernetesVersion;
  const members = controlPlanes.filter(
    (one) =>
      isNewerMinor(kubernetesVersion, versionOf(one)) &&
      changes.some(({ machine, action }) => machine === one.name && action !== "replace"),
  );
  const [first] = members;
  if (etcdBefore === undefined || first === undefined) return undefined;
  return {
    wants: `kubernetesVersion is ${kubernetesVersion}, whose etcd is only compatible with members from ${etcdBefore} on`,
    members,
    problemWith: (said) => {
      const old = said.filter(({ version }) => isNewer(etcdBefore, version));
      if (old.length === 0) return undefined;
      return (
        `${list(old)}. Nothing was changed; with its present version this program upgrades etcd, one member after ` +
        `another: pulumi config set kubernetesVersion ${versionOf(first)}, pulumi up, then upgrade Kubernetes`
      );
    },
  };
}

/**
 * Asks members where the step of one has failed that was to upgrade it to a newer minor. That one may
 * run no pod, so its own step looks (upgrade_kubeadm in cloud-init/bootstrap/upgrade.sh); one that is lost
 * or not made yet does not answer.
 */
function returnQuestion(args: EtcdVersionArgs): Question | undefined {
  const { settings, controlPlanes, azure } = args;
  const { kubernetesVersion } = settings;
  const etcd = etcdOf(kubernetesVersion);
  const tried = controlPlanes.flatMap(({ name }) => {
    const step = azure.machines.get(name)?.bootstrap;
    const version = step?.state === "Succeeded" ? undefined : step?.kubernetesVersion;
    return version !== undefined && isNewerMinor(version, kubernetesVersion) ? [version] : [];
  });
  const [begun] = tried;
  if (begun === undefined) return undefined;
  const existing = controlPlanes.filter(({ name }) => {
    const machine = azure.machines.get(name);
    return machine?.bootstrap !== undefined && !machine.removedFromEtcd;
  });
  const well = existing.filter(
    ({ name }) => azure.machines.get(name)?.bootstrap?.state === "Succeeded",
  );
  return {
    wants: `kubernetesVersion is ${kubernetesVersion}, whose etcd is ${etcd.split("-")[0]}, after an upgrade to ${begun} that has not ended`,
    members: well.length > 0 ? well : existing,
    problemWith: (said) => {
      const newer = said.filter(({ version }) => isNewerMinor(version, etcd));
      if (newer.length === 0) return undefined;
      return (
        `${list(newer)}: there is no way back, since kubeadm leaves an etcd as it is that is newer than its own, ` +
        "and no later update could configure it. Nothing was changed; " +
        `go on with the upgrade: pulumi config set kubernetesVersion ${begun}, pulumi up`
      );
    },
  };
}
