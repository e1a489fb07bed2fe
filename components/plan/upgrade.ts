import { AzureState } from "../azure/state";
import { memberState, PreviousOutputs } from "./machine-changes";
import { Settings } from "../settings/settings";
import { minorOf } from "../versions";

const numbersOf = (version: string): [number, number, number] => {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  return [major, minor, patch];
};

/** Whether a version comes after another one. */
export function isNewer(version: string, than: string): boolean {
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
): Map<string, string[]> {
  const names = new Set([...machines.keys(), ...Object.keys(previous?.machines ?? {})]);
  const byVersion = new Map<string, string[]>();
  for (const name of names) {
    const { kubernetesVersion } = memberState(machines.get(name), previous?.machines[name]);
    if (kubernetesVersion === undefined) continue;
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

/**
 * Why the cluster cannot become the version that the settings name: kubeadm neither skips a minor
 * nor goes back (https://kubernetes.io/releases/version-skew-policy/).
 *
 * One control plane of another version than the others joins only where the upgrade is under way.
 */
export function upgradeProblems(
  { kubernetesVersion: wanted }: Pick<Settings, "kubernetesVersion">,
  { machines }: Pick<AzureState, "machines">,
  previous: PreviousOutputs | undefined,
  { lost, replaced, removed }: ControlPlaneChanges,
): string[] {
  const byVersion = machinesByVersion(machines, previous);
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
