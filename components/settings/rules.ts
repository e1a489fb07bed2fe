import { minorOf, minors, versions } from "../versions";
import { compactTime, mostDrainMinutes, parseCompactTime } from "./times";
import { findings, inItsCase, nearest, Problem, wants } from "./problem";
import { accessProblems, apiProblems, sshKeyProblems } from "./rules/access";
import {
  autoRepairProblems,
  machineIdentityProblems,
  workloadIdentityProblems,
} from "./rules/identities";
import {
  diskEncryptionSetProblems,
  existingIdentityProblems,
  galleryImageProblems,
  nodeSubnetProblems,
} from "./rules/ids-of-others";
import { entraProblems } from "./rules/entra";
import { etcdBackupProblems } from "./rules/etcd-backups";
import { httpProxyProblems } from "./rules/http-proxy";
import { kubeadmProblems } from "./rules/kubeadm";
import { kubeProxyProblems } from "./rules/kube-proxy";
import { registryCredentialProblems, registryProblems } from "./rules/registries";
import { nameProblems, resourceGroupProblems, tagProblems } from "./rules/names";
import { osDiskSizes, osDiskSkus, sizeProblems } from "./rules/sizes";
import { poolProblems } from "./rules/pools";
import { rangeProblems } from "./rules/ranges";
import { Settings, weekdays } from "./settings";
import { sourceProblems } from "./sources";

interface Rule {
  readonly key: keyof Settings;
  readonly holds: boolean;
  readonly expected: string;
  readonly better: string | number;
}

type Choice =
  | "egress"
  | "apiAccess"
  | "osDiskSku"
  | "containerRuntime"
  | "proxyMode"
  | "proxyScheduler"
  | "cni";

/** What can be chosen, the default first. */
const choices: Readonly<Record<Choice, readonly string[]>> = {
  egress: ["zonal", "single", "none"],
  apiAccess: ["public", "private"],
  osDiskSku: osDiskSkus,
  containerRuntime: ["docker", "cri-dockerd", "containerd"],
  proxyMode: ["ipvs", "nftables", "iptables"],
  proxyScheduler: "rr wrr lc wlc lblc lblcr dh sh sed nq fo ovf mh".split(" "),
  cni: ["canal", "flannel", "none"],
};

/** No minor of Kubernetes has had so many in its life. */
const mostPatches = 25;

const oneDay = 24 * 3_600_000;

const ubuntu = versions.ubuntuImage.split(".").slice(0, 2).join(".");

const within = (
  settings: Settings,
  key:
    | "osDiskSizeGb"
    | "drainMinutes"
    | "encryptionKeyGeneration"
    | "caGeneration"
    | "serviceAccountKeyGeneration",
  least: number,
  most: number,
  why: string,
  better: number,
): Rule => ({
  key,
  holds: Number.isInteger(settings[key]) && settings[key] >= least && settings[key] <= most,
  expected: `${least} to ${most}, ${why}`,
  better,
});

const single = (settings: Settings): Rule[] => [
  ...Object.entries(choices).map(([name, known]) => ({
    key: name as Choice,
    holds: known.includes(settings[name as Choice]),
    expected: `one of ${known.join(", ")}`,
    better: inItsCase(settings[name as Choice], known),
  })),
  {
    key: "controlPlaneCount",
    holds: [1, 3, 5].includes(settings.controlPlaneCount),
    expected: "1, 3 or 5, so that etcd keeps its majority when one member is lost",
    better: 3,
  },
  within(settings, "osDiskSizeGb", osDiskSizes.least, osDiskSizes.most, osDiskSizes.why, 64),
  within(settings, "drainMinutes", 1, mostDrainMinutes, "since an update must end", 15),
  within(settings, "encryptionKeyGeneration", 0, 9999, "the number of a key, or 0 for none", 1),
  within(settings, "caGeneration", 1, 9999, "the number of the cluster's CAs", 1),
  within(settings, "serviceAccountKeyGeneration", 1, 9999, "the number of a key", 1),
  {
    key: "kubernetesVersion",
    holds:
      /^\d+\.\d+\.(0|[1-9]\d*)$/.test(settings.kubernetesVersion) &&
      minors.some(({ minor }) => minor === minorOf(settings.kubernetesVersion)) &&
      Number(settings.kubernetesVersion.split(".")[2]) <= mostPatches,
    expected:
      `a published version ${minors.map(({ minor }) => `${minor}.z`).join(" or ")}, with a z up to ${mostPatches}, ` +
      "since everything else in this release was chosen for these minors",
    better: versions.kubernetes,
  },
  {
    key: "imageVersion",
    holds:
      settings.imageVersion === "" ||
      new RegExp(`^${ubuntu.replace(".", "\\.")}\\.\\d{9,}$`).test(settings.imageVersion),
    expected:
      `the exact version of an Ubuntu ${ubuntu} image, since "latest" would differ ` +
      "from machine to machine",
    better: versions.ubuntuImage,
  },
  {
    key: "proxyMode",
    holds:
      settings.proxyMode !== "ipvs" || !(Number(settings.kubernetesVersion.split(".")[1]) >= 40),
    expected: "nftables or iptables, since kube-proxy of this Kubernetes ends at once in IPVS mode",
    better: "nftables",
  },
  {
    key: "skipHealthCheckUntil",
    holds:
      settings.skipHealthCheckUntil === "" ||
      parseCompactTime(settings.skipHealthCheckUntil) < Date.now() + oneDay,
    expected:
      "empty, or a time in UTC within the next day, such as 20261123T180000Z, since a cluster that is never asked is lost one day",
    better: compactTime(Date.now() + oneDay / 24),
  },
  {
    key: "reinitialize",
    holds: /^$|^\d+(-\d{8}T\d{6}Z){1,2}$/.test(settings.reinitialize),
    expected:
      "empty, or the id of the initialization that may be lost, as the message that asks for it prints it",
    better: "",
  },
];

/** Everything wrong with the settings at once, so that one edit can fix them all. */
export const problems = (settings: Settings): Problem[] => [
  ...single(settings)
    .filter(({ holds }) => !holds)
    .map(({ key, expected, better }) => wants(key, settings[key], expected, better)),
  ...nameProblems(settings),
  ...resourceGroupProblems(settings),
  ...rangeProblems(settings),
  ...nodeSubnetProblems(settings),
  ...accessProblems(settings),
  ...apiProblems(settings),
  ...sshKeyProblems(settings.sshPublicKey),
  ...sizeProblems(settings),
  ...poolProblems(settings),
  ...kubeadmProblems(settings),
  ...kubeProxyProblems(settings),
  ...diskEncryptionSetProblems(settings),
  ...galleryImageProblems(settings),
  ...existingIdentityProblems(settings),
  ...machineIdentityProblems(settings),
  ...autoRepairProblems(settings),
  ...registryCredentialProblems(settings),
  ...registryProblems(settings),
  ...workloadIdentityProblems(settings),
  ...entraProblems(settings),
  ...etcdBackupProblems(settings),
  ...rebootProblems(settings),
  ...httpProxyProblems(settings),
  ...tagProblems(settings),
  ...sourceProblems(settings),
];

const minutesOf = (time: string): number => {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(time) ?? [];
  return Number(hours) * 60 + Number(minutes);
};

/** What is wrong with when machines may be rebooted. */
function rebootProblems({ reboots }: Settings): Problem[] {
  if (reboots === undefined) return [];
  const { days, from, to } = reboots;
  const [begin, end] = [minutesOf(from), minutesOf(to)];
  const clock = "a time of day in UTC, as 24 hours and minutes";
  return findings(
    days.length === 0 &&
      wants("reboots.days[0]", undefined, "a day beside from and to, such as tue", "tue"),
    ...days.map(
      (day, index) =>
        !(weekdays as readonly string[]).includes(day) &&
        wants(
          `reboots.days[${index}]`,
          day,
          `one of ${weekdays.join(", ")}`,
          nearest(day, weekdays),
        ),
    ),
    Number.isNaN(begin) && wants("reboots.from", from, clock, "02:00"),
    Number.isNaN(end) && wants("reboots.to", to, clock, "05:00"),
    // Not so where one of them is no time.
    end - begin < 60 &&
      wants(
        "reboots.from",
        from,
        `at least an hour before ${to} on the same day, since each machine takes some minutes and the next one waits`,
        timeOf(Math.max(0, end - 60)),
      ),
  );
}

const timeOf = (minutes: number): string =>
  [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0")).join(":");
