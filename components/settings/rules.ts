import type { Settings } from "../settings";
import { kubernetesMinor, versions } from "../versions";
import { compactTime, parseCompactTime } from "../compact-time";
import { accessProblems } from "./access";
import { isDuration } from "./duration";
import { kubeadmProblems } from "./kubeadm";
import { nameProblems } from "./names";
import { poolProblems } from "./pools";
import { Problem, wants } from "./problem";
import { rangeProblems } from "./ranges";
import { sizeProblems } from "./sizes";
import { sourceProblems } from "./sources";
import { sshKeyProblems } from "./ssh-key";

interface Rule {
  readonly key: keyof Settings;
  readonly holds: boolean;
  readonly expected: string;
  readonly better: string | number;
}

type Choice = "egress" | "osDiskSku" | "containerRuntime" | "proxyMode" | "proxyScheduler" | "cni";

/** What can be chosen, the default first. */
const choices: Readonly<Record<Choice, readonly string[]>> = {
  egress: ["zonal", "single"],
  osDiskSku: ["Premium_LRS", "StandardSSD_LRS"],
  containerRuntime: ["docker", "cri-dockerd", "containerd"],
  proxyMode: ["ipvs", "nftables", "iptables"],
  proxyScheduler: "rr wrr lc wlc lblc lblcr dh sh sed nq fo ovf mh".split(" "),
  cni: ["canal", "flannel", "none"],
};

/** No minor of Kubernetes has had so many in its life. */
const mostPatches = 25;

const minorOf = (version: string): number => Number(version.split(".")[1]);

const oneDay = 24 * 3_600_000;

const ubuntu = versions.ubuntuImage.split(".").slice(0, 2).join(".");

const single = (settings: Settings): Rule[] => [
  ...Object.entries(choices).map(([name, known]) => ({
    key: name as Choice,
    holds: known.includes(settings[name as Choice]),
    expected: `one of ${known.join(", ")}`,
    better: known[0]!,
  })),
  {
    key: "controlPlaneCount",
    holds: [1, 3, 5].includes(settings.controlPlaneCount),
    expected: "1, 3 or 5, so that etcd keeps its majority when one member is lost",
    better: 3,
  },
  {
    key: "osDiskSizeGb",
    holds:
      Number.isInteger(settings.osDiskSizeGb) &&
      settings.osDiskSizeGb >= 30 &&
      settings.osDiskSizeGb <= 4095,
    expected: "30 to 4095, from what the image needs to what Azure boots from",
    better: 64,
  },
  {
    key: "kubernetesVersion",
    holds:
      /^\d+\.\d+\.(0|[1-9]\d*)$/.test(settings.kubernetesVersion) &&
      settings.kubernetesVersion.startsWith(`${kubernetesMinor}.`) &&
      Number(settings.kubernetesVersion.split(".")[2]) <= mostPatches,
    expected:
      `a version ${kubernetesMinor}.z that was published, with a z up to ${mostPatches}, ` +
      "since everything else in this release was chosen for that minor",
    better: versions.kubernetes,
  },
  {
    key: "imageVersion",
    holds: new RegExp(`^${ubuntu.replace(".", "\\.")}\\.\\d{9,}$`).test(settings.imageVersion),
    expected:
      `the exact version of an Ubuntu ${ubuntu} image, since "latest" would differ ` +
      "from machine to machine",
    better: versions.ubuntuImage,
  },
  {
    key: "proxyMode",
    holds: settings.proxyMode !== "ipvs" || !(minorOf(settings.kubernetesVersion) >= 40),
    expected: "nftables or iptables, since kube-proxy of this Kubernetes ends at once in IPVS mode",
    better: "nftables",
  },
  {
    key: "proxySyncPeriod",
    // In place of 0 kube-proxy takes its default.
    holds:
      settings.proxySyncPeriod === "" ||
      (isDuration(settings.proxySyncPeriod) && /[1-9]/.test(settings.proxySyncPeriod)),
    expected: "empty, or a duration of more than nothing, such as 30s or 15m",
    better: "30s",
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
    holds: /^$|^\d+-\d{8}T\d{6}Z$/.test(settings.reinitialize),
    expected:
      "empty, or the id of the initialization that may be lost, as the message that asks for it prints it",
    better: "",
  },
];

/** Everything wrong with the settings at once, so that one edit can mend them all. */
export const problems = (settings: Settings): Problem[] => [
  ...single(settings)
    .filter(({ holds }) => !holds)
    .map(({ key, expected, better }) => wants(key, settings[key], expected, better)),
  ...nameProblems(settings),
  ...rangeProblems(settings),
  ...accessProblems(settings),
  ...sshKeyProblems(settings.sshPublicKey),
  ...sizeProblems(settings),
  ...poolProblems(settings),
  ...kubeadmProblems(settings.kubeadm),
  ...sourceProblems(settings),
];
