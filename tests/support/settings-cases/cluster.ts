import { compactTime } from "../../../components/settings/times";
import { idIn, subscriptionId } from "../sample";
import type { Cases, Refused } from "../stack";

export const clusterCases: Cases = {
  refused: [
    [{ controlPlaneCount: "three" }, "expected a number"],
    [{ controlPlaneCount: "" }, "controlPlaneCount is not set, expected a number"],
    [{ osDiskSizeGb: "64 GB" }, "expected a number"],
    [{ osDiskSizeGb: [64] }, 'osDiskSizeGb is "[64]", expected a number'],
    [{ diskDriver: "yes" }, "expected true or false (pulumi config set diskDriver true)"],
    [{ cloudProvider: "off" }, "expected true or false (pulumi config set cloudProvider false)"],
    [{ protect: { on: true } }, "expected true or false"],
    [{ storageClasses: "" }, "storageClasses is not set, expected true or false"],
    [{ zones: "2" }, "zones is 2, expected a list; take the value away"],
    [{ apiExtraSans: "api.example" }, "config set --path 'apiExtraSans[0]' api.example (pulumi"],
    [{ workerPools: "two" }, 'workerPools is "two", expected a list of pools'],
    [{ kubeadm: "--v=2" }, 'kubeadm is "--v=2", expected values by name'],
    [{ kubeadm: ["--v=2"] }, 'kubeadm is ["--v=2"], expected values by name'],
    [{ location: "" }, "location is not set"],
    [{ location: "West Europe" }, "config set location westeurope"],
    [{ location: "westus" }, 'location is "westus", expected a region with availability zones'],
    [{ zones: [] }, "zones[0] is not set"],
    [{ zones: ["1", "4"] }, 'zones[1] is "4"'],
    [{ zones: ["1", "2", "1"] }, 'zones[2] is "1", expected no zone twice'],
    [{ zones: ["1", 2] }, "zones[1] is 2, expected text"],
    [{ zones: { a: 1 } }, "expected a list"],
    [{ zones: ["1", null] }, "zones[1] is not set"],
    [{ clusterName: "Prod" }, 'clusterName is "Prod"'],
    [{ clusterName: "a".repeat(41) }, "3 to 40"],
    [{ clusterName: "ab" }, "3 to 40"],
    [{ clusterName: "1st" }, "from a letter"],
    [{ clusterName: "prod-" }, "to a letter or digit"],
    [{ clusterName: "team-internal" }, "another ending than -internal"],
    [{ clusterName: "my-windows" }, "without microsoft"],
    [{ clusterName: "login-team" }, "without microsoft"],
    [{ controlPlaneCount: 2 }, "controlPlaneCount is 2, expected 1, 3 or 5"],
    [{ controlPlaneCount: 7 }, "1, 3 or 5"],
    [{ controlPlaneCount: "0x3" }, "expected a number"],
    [{ controlPlaneCount: 0 }, "1, 3 or 5"],
    [{ egress: "no" }, "config set egress zonal"],
    [{ osDiskSku: "Premium_ZRS" }, "one of Premium_LRS, StandardSSD_LRS"],
    [{ osDiskSku: "standardssd_lrs" }, "config set osDiskSku StandardSSD_LRS"],
    [{ cni: "Flannel" }, "config set cni flannel"],
    [{ encryptionKeyGeneration: "new" }, "encryptionKeyGeneration is"],
    [{ encryptionKeyGeneration: 1.5 }, "0 to 9999"],
    [{ caGeneration: 0 }, "1 to 9999"],
    [{ serviceAccountKeyGeneration: 0 }, "1 to 9999"],
    [{ drainMinutes: 0 }, "1 to 1440"],
    [{ osDiskSizeGb: 29 }, "30 to 4095"],
    [{ osDiskSizeGb: 4096 }, "30 to 4095"],
    [{ containerRuntime: "cri-o" }, "one of docker, cri-dockerd, containerd"],
    [{ proxyMode: "ebpf" }, "one of ipvs, nftables, iptables"],
    [{ proxyScheduler: "random" }, "one of rr, wrr"],
    [{ cni: "cilium" }, "one of canal, flannel, none"],
    [{ kubernetesVersion: "v1.37.0" }, 'kubernetesVersion is "v1.37.0"'],
    [{ kubernetesVersion: "1.37.999" }, "with a z up to 25"],
    [{ kubernetesVersion: "1.37.03" }, 'kubernetesVersion is "1.37.03"'],
    [{ kubernetesVersion: "1.35.9" }, "a published version 1.37.z or 1.36.z"],
    [{ kubernetesVersion: "1.37" }, "a published version 1.37.z"],
    [{ imageVersion: "latest" }, 'imageVersion is "latest"'],
    [{ imageVersion: "22.04.202601010" }, "Ubuntu 24.04"],
    [
      { controlPlaneCounts: 3 },
      "controlPlaneCounts is not a known name, expected another; did you mean " +
        "controlPlaneCount?",
    ],
    [{ mirror: "/nowhere/at/all" }, 'mirror is "/nowhere/at/all"'],
    [{ mirror: "components" }, "an absolute path"],
    [{ mirror: "ftp://mirror.example" }, "http:// or https://"],
    ...[
      "https://mirror.example/a b",
      "https://mirror .example",
      "https://mirror.example/$HOME",
      "https://",
      "HTTP://10.0.0.4:8080",
      "http://[fd00::4]:8080",
    ].map((mirror): Refused => [{ mirror }, "no spaces or signs that need quoting"]),
    [{ mirror: "https://mirror.example?a=b" }, "http:// or https://"],
    [{ mirror: "https://me:hush@mirror.example" }, "mirror holds a user's name"],
    [{ resourceManagerEndpoint: "http://management.example" }, "the access token travels"],
    [{ reinitialize: "true" }, "the id of the initialization that may be lost"],
    [{ skipHealthCheckUntil: compactTime(Date.now() + 25 * 3_600_000) }, "within the next day"],
    [{ skipHealthCheckUntil: "2026-11-23T18:00:00Z" }, "such as 20261123T180000Z"],
    [{ resourceManagerEndpoint: "azure" }, "an https:// address"],
    ...["https://Management.usgovcloudapi.net", "https://management.usgovcloudapi.net/x?a=b"].map(
      (resourceManagerEndpoint): Refused => [
        { resourceManagerEndpoint },
        "config set resourceManagerEndpoint https://management.usgovcloudapi.net)",
      ],
    ),
  ],
  accepted: [
    ["a region that no table knows", { location: "newregion3" }],
    ["one with a name that every object of JavaScript has", { location: "constructor" }],
    ["one zone", { zones: ["2"] }],
    ["five control planes", { controlPlaneCount: 5 }],
    ["a name of 40 characters", { clusterName: "a".repeat(40) }],
    ["a name with a trademark's first letters inside", { clusterName: "my-login-xbox" }],
    ["Secrets in clear", { encryptionKeyGeneration: 0 }],
    ["a day for a drain", { drainMinutes: 1440 }],
    ["the smallest disk", { osDiskSizeGb: 30 }],
    ["the largest disk", { osDiskSizeGb: 4095 }],
    ["another patch of the minor", { kubernetesVersion: "1.37.0" }],
    ["the latest patch that a minor may have", { kubernetesVersion: "1.37.25" }],
    ["an older image", { imageVersion: "24.04.202501010" }],
    ["a mirror", { mirror: "http://mirror.example:8080/base" }],
    ["a mirror by its address", { mirror: "https://10.0.0.4:8443/k8s/~a%20b/" }],
    ["a patch to come", { kubernetesVersion: "1.37.17" }],
    ["a folder of manifests", { mirror: __dirname }],
    ["this machine's own Resource Manager", { resourceManagerEndpoint: "http://127.0.0.1:1234" }],
    [
      "a consent, and a time that is over",
      { reinitialize: "1-20261123T174128Z", skipHealthCheckUntil: "20261123T174128Z" },
    ],
    ["every proxy mode", { proxyMode: "nftables", proxyScheduler: "mh" }],
  ],
};

/** What others have in the group that the cluster is in. */
const theirs = {
  identityId: idIn("mine", "Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes"),
  nodeSubnets: [idIn("mine", "Microsoft.Network/virtualNetworks/spoke/subnets/nodes")],
  etcdBackups: {
    container: idIn(
      "mine",
      "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
    ),
  },
};

export const resourceGroupCases: Cases = {
  refused: [
    [
      {
        resourceGroup: `/subscriptions/${subscriptionId}/resourceGroups/platform`,
      },
      "not its id (pulumi config set resourceGroup platform)",
    ],
    [{ resourceGroup: "platform." }, "the name of a resource group"],
    [{ resourceGroup: "a".repeat(91) }, "the name of"],
  ],
  accepted: [
    ["a resource group of others", { resourceGroup: "RG-Platform_(prod).1" }],
    ["what others have in it, too", { clusterName: "mine", resourceGroup: "mine", ...theirs }],
  ],
};

const privately = { apiAccess: "private", apiAccessCidrs: [] };
const first = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`tag-${n}`, "x"]));
const many = Object.fromEntries(Array.from({ length: 31 }, (_, n) => [`tag-${n}`, "x"]));

export const tagCases: Cases = {
  refused: [
    [{ tags: "cost=1" }, 'tags is "cost=1", expected values by name'],
    [{ tags: { cost: ["1"] } }, "tags.cost is"],
    [{ tags: { "": "x" } }, "a name of 1 to 512 characters"],
    [{ tags: { ["x".repeat(129)]: "y" }, machineIdentity: false }, "a name of 1 to 128 characters"],
    [{ tags: { "firm's/center": "1" } }, "without < > % & \\ ? /"],
    [{ tags: { AzureOwner: "me" } }, "none of microsoft, azure and windows"],
    [{ tags: { "Zoned-Drained": "x" } }, "does not begin with zoned-"],
    [{ tags: { owner: "a", Owner: "b" } }, "each name once"],
    [{ tags: { owner: "x".repeat(257) } }, "is 257 characters long"],
    [{ tags: { owner: "a,b" } }, "a value without a comma"],
    [{ tags: { "a=b": "c" } }, "a name without a comma or ="],
    [{ tags: many }, "has 31 tags, expected at most 30"],
    [
      { ...privately, tags: first(16) },
      "has 16 tags that a private DNS zone takes, expected at most 15",
    ],
    [
      { ...privately, resourceGroup: "platform", tags: first(15) },
      "has 15 tags that a private DNS zone takes, expected at most 14",
    ],
  ],
  accepted: [
    ["tags", { tags: { costCenter: "4711", "the owner": "team=platform", empty: "" } }],
    ["a tag's long name, where there is no storage account", { tags: { ["x".repeat(512)]: "y" } }],
    ["a tag's longest text", { tags: { owner: "x".repeat(256) } }],
    ["a number as a tag", { tags: { costCenter: 4711 } }],
    ["as many tags as a private DNS zone takes", { ...privately, tags: first(15) }],
    ["others that it leaves out", { ...privately, tags: { ...first(15), "the owner": "me" } }],
    ["more where there is none", { ...privately, apiName: "api.zoned.example", tags: first(16) }],
    ["more of a public API", { tags: first(16) }],
  ],
};

const containerIn = (group: string): string =>
  idIn(group, "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd");
const container = containerIn("backups");

export const etcdBackupCases: Cases = {
  refused: [
    [{ etcdBackups: container }, "expected values by name"],
    [
      { etcdBackups: { container: "https://ours.blob.core.windows.net/etcd" } },
      "Azure's id of a blob container",
    ],
    [
      { clusterName: "mine", etcdBackups: { container: containerIn("Mine") } },
      "in another resource group than mine",
    ],
    [{ etcdBackups: { container, interval: "1h" } }, "one of container, every, endpoint"],
    [{ etcdBackups: { every: "1m" } }, "5m to 24h"],
    [{ etcdBackups: { container, every: "7d" } }, "5m to 24h"],
    [
      { etcdBackups: { container, endpoint: "ours.blob" } },
      "the address of the account's Blob service",
    ],
    [
      { etcdBackups: { container, endpoint: "http://ours.blob.core.windows.net" } },
      "an https:// address, since your access token and the machines' travel there",
    ],
    [
      { etcdBackups: { every: "1h", endpoint: "https://ours.example" } },
      "etcdBackups.container beside it",
    ],
    [
      { etcdBackups: { container }, restoreFrom: "yesterday" },
      "empty, latest, or the name of a snapshot",
    ],
    [
      { restoreFrom: "yesterday" },
      "etcdBackups.container beside it, where the snapshot is (pulumi config rm restoreFrom)",
    ],
    [{ restoreFrom: "latest" }, "etcdBackups.container beside it"],
    [{ etcdBackups: { every: "1h" }, restoreFrom: "latest" }, "etcdBackups.container beside it"],
  ],
  accepted: [
    ["a container", { etcdBackups: { container } }],
    ["a folder of the control plane", { etcdBackups: { every: "24h" } }],
    [
      "a container behind an address of its own",
      { etcdBackups: { container, every: "5m", endpoint: "https://10.0.0.4:10000/ours" } },
    ],
    [
      "a container that is reached in clear beside a Resource Manager on this machine",
      {
        etcdBackups: { container, endpoint: "http://10.0.0.4:10000/ours" },
        resourceManagerEndpoint: "http://127.0.0.1:8080",
      },
    ],
    [
      "a snapshot by name",
      { etcdBackups: { container }, restoreFrom: "20261123T174128Z-51234.db" },
    ],
    [
      "a cluster that may be lost once more",
      { reinitialize: "1-20261123T174128Z-20261124T080000Z" },
    ],
  ],
};

const window = { days: ["tue", "thu"], from: "02:00", to: "05:00" };

export const rebootCases: Cases = {
  refused: [
    [{ reboots: "always" }, "expected days, from and to"],
    [{ reboots: { from: "02:00", to: "05:00" } }, "a day beside from and to"],
    [
      { reboots: { ...window, days: ["tue", "Thursday"] } },
      "expected one of mon, tue, wed, thu, fri, sat, sun (pulumi config set --path 'reboots.days[1]' thu)",
    ],
    [
      { reboots: { days: ["tue"], to: "05:00" } },
      "reboots.from is not set, expected a time of day in UTC",
    ],
    [{ reboots: { ...window, to: "25:00" } }, "a time of day in UTC"],
    [
      { reboots: { ...window, from: "23:00", to: "02:00" } },
      "at least an hour before 02:00 on the same day",
    ],
    [{ reboots: { ...window, to: "02:30" } }, "reboots.from 01:30"],
    [{ reboots: { ...window, zone: "UTC" } }, "one of days, from, to"],
  ],
  accepted: [["reboots in two nights of the week", { reboots: window }]],
};
