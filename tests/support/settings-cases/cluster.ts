import { compactTime } from "../../../components/settings/times";
import { idIn, subscriptionId } from "../sample";
import type { Cases, Refused } from "../stack";

export const clusterCases: Cases = {
  refused: [
    ...[
      ["controlPlaneCount", "three", "expected a number"],
      ["controlPlaneCount", "", "controlPlaneCount is not set, expected a number"],
      ["osDiskSizeGb", "64 GB", "expected a number"],
      ["osDiskSizeGb", [64], 'osDiskSizeGb is "[64]", expected a number'],
      ["diskDriver", "yes", "expected true or false (pulumi config set diskDriver true)"],
      ["cloudProvider", "off", "expected true or false (pulumi config set cloudProvider false)"],
      ["protect", { on: true }, "expected true or false"],
      ["storageClasses", "", "storageClasses is not set, expected true or false"],
      ["zones", "2", "zones is 2, expected a list; take the value away"],
      ["apiExtraSans", "api.example", "config set --path 'apiExtraSans[0]' api.example (pulumi"],
      ["workerPools", "two", 'workerPools is "two", expected a list of pools'],
      ["kubeadm", "--v=2", 'kubeadm is "--v=2", expected values by name'],
      ["kubeadm", ["--v=2"], 'kubeadm is ["--v=2"], expected values by name'],
    ].map(([key, value, says]): Refused => [
      `${JSON.stringify(value)} for ${key}`,
      { [String(key)]: value },
      String(says),
    ]),
    ["no region", { location: "" }, "location is not set"],
    ["a region's long name", { location: "West Europe" }, "config set location westeurope"],
    [
      "a region without zones",
      { location: "westus" },
      'location is "westus", expected a region with availability zones',
    ],
    ["no zones", { zones: [] }, "zones[0] is not set"],
    ["a fourth zone", { zones: ["1", "4"] }, 'zones[1] is "4"'],
    ["a zone twice", { zones: ["1", "2", "1"] }, 'zones[2] is "1", expected no zone twice'],
    ["zones that YAML took for numbers", { zones: ["1", 2] }, "zones[1] is 2, expected text"],
    ["a map for a list", { zones: { a: 1 } }, "expected a list"],
    ["a hole in a list", { zones: ["1", null] }, "zones[1] is not set"],
    ["capital letters in the cluster's name", { clusterName: "Prod" }, 'clusterName is "Prod"'],
    [
      "a cluster's name from which machines get names too long for hosts",
      { clusterName: "a".repeat(41) },
      "3 to 40",
    ],
    ["a name too short for Azure's identities", { clusterName: "ab" }, "3 to 40"],
    ["a name from a digit", { clusterName: "1st" }, "from a letter"],
    ["a name to a dash", { clusterName: "prod-" }, "to a letter or digit"],
    [
      "a name whose balancer the cloud provider would adopt",
      { clusterName: "team-internal" },
      "another ending than -internal",
    ],
    ["a trademark in the name", { clusterName: "my-windows" }, "without microsoft"],
    ["a name from login", { clusterName: "login-team" }, "without microsoft"],
    [
      "an even control plane",
      { controlPlaneCount: 2 },
      "controlPlaneCount is 2, expected 1, 3 or 5",
    ],
    ["seven control planes", { controlPlaneCount: 7 }, "1, 3 or 5"],
    ["no control plane", { controlPlaneCount: 0 }, "1, 3 or 5"],
    ["an unknown egress", { egress: "no" }, "config set egress zonal"],
    ["an unknown disk", { osDiskSku: "Premium_ZRS" }, "one of Premium_LRS, StandardSSD_LRS"],
    ["a key that is no number", { encryptionKeyGeneration: "new" }, "encryptionKeyGeneration is"],
    ["half a key", { encryptionKeyGeneration: 1.5 }, "0 to 9999"],
    ["no CA", { caGeneration: 0 }, "1 to 9999"],
    ["no key of service accounts", { serviceAccountKeyGeneration: 0 }, "1 to 9999"],
    ["a drain without an end", { drainMinutes: 0 }, "1 to 1440"],
    ["a disk smaller than the image", { osDiskSizeGb: 29 }, "30 to 4095"],
    ["a disk larger than Azure boots from", { osDiskSizeGb: 4096 }, "30 to 4095"],
    ["an unknown runtime", { containerRuntime: "cri-o" }, "one of docker, cri-dockerd, containerd"],
    ["an unknown proxy mode", { proxyMode: "ebpf" }, "one of ipvs, nftables, iptables"],
    ["an unknown scheduler", { proxyScheduler: "random" }, "one of rr, wrr"],
    ["an unknown pod network", { cni: "cilium" }, "one of canal, flannel, none"],
    ["a version with a v", { kubernetesVersion: "v1.37.0" }, 'kubernetesVersion is "v1.37.0"'],
    ["a patch that no minor ever had", { kubernetesVersion: "1.37.999" }, "with a z up to 25"],
    [
      "a patch with a zero before it",
      { kubernetesVersion: "1.37.03" },
      'kubernetesVersion is "1.37.03"',
    ],
    ["another minor", { kubernetesVersion: "1.35.9" }, "a published version 1.37.z or 1.36.z"],
    ["half a version", { kubernetesVersion: "1.37" }, "a published version 1.37.z"],
    ["whatever image is newest", { imageVersion: "latest" }, 'imageVersion is "latest"'],
    ["an image of another Ubuntu", { imageVersion: "22.04.202601010" }, "Ubuntu 24.04"],
    [
      "a setting that nobody reads",
      { controlPlaneCounts: 3 },
      "controlPlaneCounts is not a known name, expected another; did you mean " +
        "controlPlaneCount?",
    ],
    ["a folder that is not there", { mirror: "/nowhere/at/all" }, 'mirror is "/nowhere/at/all"'],
    ["a relative folder", { mirror: "components" }, "an absolute path"],
    ["a mirror by FTP", { mirror: "ftp://mirror.example" }, "http:// or https://"],
    ...[
      "https://mirror.example/a b",
      "https://mirror .example",
      "https://mirror.example/$HOME",
      "https://",
    ].map((mirror): Refused => [
      `the mirror ${mirror}`,
      { mirror },
      "no spaces or signs that need quoting",
    ]),
    ["a mirror with a query", { mirror: "https://mirror.example?a=b" }, "http:// or https://"],
    [
      "a mirror with a password",
      { mirror: "https://me:hush@mirror.example" },
      "mirror holds a user's name",
    ],
    [
      "a token sent in clear",
      { resourceManagerEndpoint: "http://management.example" },
      "the access token travels",
    ],
    [
      "a consent to lose any cluster",
      { reinitialize: "true" },
      "the id of the initialization that may be lost",
    ],
    [
      "a check that is skipped for more than a day",
      { skipHealthCheckUntil: compactTime(Date.now() + 25 * 3_600_000) },
      "within the next day",
    ],
    [
      "a time that YAML reads as a date",
      { skipHealthCheckUntil: "2026-11-23T18:00:00Z" },
      "such as 20261123T180000Z",
    ],
    ["an endpoint that is no address", { resourceManagerEndpoint: "azure" }, "an https:// address"],
  ],
  accepted: [
    ["a region that no table knows", { location: "newregion3" }],
    ["one zone", { zones: ["2"] }],
    ["five control planes", { controlPlaneCount: 5 }],
    ["a name of 40 characters", { clusterName: "a".repeat(40) }],
    ["a name with a trademark's first letters inside", { clusterName: "my-login-xbox" }],
    ["Secrets in clear", { encryptionKeyGeneration: 0 }],
    ["a day for a drain", { drainMinutes: 1440 }],
    ["the smallest disk", { osDiskSizeGb: 30 }],
    ["the largest disk", { osDiskSizeGb: 4095 }],
    ["another patch of the minor", { kubernetesVersion: "1.37.0" }],
    ["an older image", { imageVersion: "24.04.202501010" }],
    ["a mirror", { mirror: "http://mirror.example:8080/base" }],
    ["a mirror by its address", { mirror: "https://[fd00::1]:8443/k8s/~a%20b/" }],
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
      "a resource group by its id",
      {
        resourceGroup: `/subscriptions/${subscriptionId}/resourceGroups/platform`,
      },
      "not its id (pulumi config set resourceGroup platform)",
    ],
    [
      "a resource group whose name ends with a full stop",
      { resourceGroup: "platform." },
      "the name of a resource group",
    ],
    ["a resource group whose name is too long", { resourceGroup: "a".repeat(91) }, "the name of"],
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
    ["tags that are no map", { tags: "cost=1" }, 'tags is "cost=1", expected values by name'],
    ["a tag that is a list", { tags: { cost: ["1"] } }, "tags.cost is"],
    ["a tag without a name", { tags: { "": "x" } }, "a name of 1 to 512 characters"],
    [
      "a tag's name that is too long for the storage account of an issuer",
      { tags: { ["x".repeat(129)]: "y" }, machineIdentity: false },
      "a name of 1 to 128 characters",
    ],
    ["a tag's name with a slash", { tags: { "firm's/center": "1" } }, "without < > % & \\ ? /"],
    [
      "a name that Azure keeps",
      { tags: { AzureOwner: "me" } },
      "none of microsoft, azure and windows",
    ],
    ["a name of this program", { tags: { "Zoned-Drained": "x" } }, "does not begin with zoned-"],
    ["a name in two spellings", { tags: { owner: "a", Owner: "b" } }, "each name once"],
    ["a tag too long", { tags: { owner: "x".repeat(257) } }, "is 257 characters long"],
    ["a comma in a tag", { tags: { owner: "a,b" } }, "a value without a comma"],
    ["an equals sign in a tag's name", { tags: { "a=b": "c" } }, "a name without a comma or ="],
    ["more tags than Azure leaves room for", { tags: many }, "has 31 tags, expected at most 30"],
    [
      "more tags than a private DNS zone takes",
      { ...privately, tags: first(16) },
      "has 16 tags that a private DNS zone takes, expected at most 15",
    ],
    [
      "more than one takes in a group of others",
      { ...privately, resourceGroup: "platform", tags: first(15) },
      "has 15 tags that a private DNS zone takes, expected at most 14",
    ],
  ],
  accepted: [
    ["tags", { tags: { costCenter: "4711", "the owner": "team=platform", empty: "" } }],
    ["a tag's long name, where there is no storage account", { tags: { ["x".repeat(512)]: "y" } }],
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
    ["a container alone", { etcdBackups: container }, "expected values by name"],
    [
      "a container by its address",
      { etcdBackups: { container: "https://ours.blob.core.windows.net/etcd" } },
      "Azure's id of a blob container",
    ],
    [
      "a container that goes with the cluster",
      { clusterName: "mine", etcdBackups: { container: containerIn("Mine") } },
      "in another resource group than mine",
    ],
    [
      "a name that nobody reads",
      { etcdBackups: { container, interval: "1h" } },
      "one of container, every, endpoint",
    ],
    ["a snapshot a minute", { etcdBackups: { every: "1m" } }, "5m to 24h"],
    ["a snapshot a week", { etcdBackups: { container, every: "7d" } }, "5m to 24h"],
    [
      "an endpoint that is no address",
      { etcdBackups: { container, endpoint: "ours.blob" } },
      "the address of the account's Blob service",
    ],
    [
      "an endpoint that tokens would reach in clear",
      { etcdBackups: { container, endpoint: "http://ours.blob.core.windows.net" } },
      "an https:// address, since your access token and the machines' travel there",
    ],
    [
      "an endpoint without a container",
      { etcdBackups: { every: "1h", endpoint: "https://ours.example" } },
      "etcdBackups.container beside it",
    ],
    [
      "a date to restore from",
      { etcdBackups: { container }, restoreFrom: "yesterday" },
      "empty, latest, or the name of a snapshot",
    ],
    ["a snapshot from nowhere", { restoreFrom: "latest" }, "etcdBackups.container beside it"],
    [
      "a snapshot from a disk that is lost",
      { etcdBackups: { every: "1h" }, restoreFrom: "latest" },
      "etcdBackups.container beside it",
    ],
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
    ["reboots at any time", { reboots: "always" }, "expected days, from and to"],
    [
      "a window without days",
      { reboots: { from: "02:00", to: "05:00" } },
      "a day beside from and to",
    ],
    [
      "a day that is none",
      { reboots: { ...window, days: ["tue", "Thursday"] } },
      'reboots.days[1] is "Thursday", expected one of mon, tue, wed, thu, fri, sat, sun',
    ],
    [
      "a window that never begins",
      { reboots: { days: ["tue"], to: "05:00" } },
      "reboots.from is not set, expected a time of day in UTC",
    ],
    ["a time that is none", { reboots: { ...window, to: "25:00" } }, "a time of day in UTC"],
    [
      "a window over midnight",
      { reboots: { ...window, from: "23:00", to: "02:00" } },
      "at least an hour before 02:00 on the same day",
    ],
    [
      "a window too short for a machine",
      { reboots: { ...window, to: "02:30" } },
      "reboots.from 01:30",
    ],
    ["a name that nobody reads", { reboots: { ...window, zone: "UTC" } }, "one of days, from, to"],
  ],
  accepted: [["reboots in two nights of the week", { reboots: window }]],
};
