import { AzureState } from "../azure/state";
import { memberState, Memory } from "./machine-changes";
import { Settings } from "../settings/settings";

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

/**
 * Why the cluster cannot become the version that the settings name: kubeadm neither skips a minor
 * nor goes back (https://kubernetes.io/releases/version-skew-policy/).
 *
 * @param remade control planes that this `up` makes anew: one of another version cannot join
 */
export function upgradeProblems(
  { kubernetesVersion: wanted }: Pick<Settings, "kubernetesVersion">,
  { machines }: Pick<AzureState, "machines">,
  memory: Memory | undefined,
  remade: readonly string[],
): string[] {
  const names = new Set([...machines.keys(), ...Object.keys(memory?.machines ?? {})]);
  const byVersion = new Map<string, string[]>();
  for (const name of names) {
    const { kubernetesVersion } = memberState(machines.get(name), memory?.machines[name]);
    if (kubernetesVersion === undefined) continue;
    byVersion.set(kubernetesVersion, [...(byVersion.get(kubernetesVersion) ?? []), name]);
  }
  const [wantedMajor, wantedMinor] = numbersOf(wanted);
  const others = [...byVersion].filter(([version]) => version !== wanted);
  const mixed =
    others.length > 0 && remade.length > 0
      ? [
          `kubernetesVersion changes to ${wanted}, and ${remade.join(", ")} would be made anew in the same up: do one after the other ` +
            `(pulumi config set kubernetesVersion ${others[0]![0]} and pulumi up first)`,
        ]
      : [];
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
