import type { Cases } from "./case";

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
    ].map(([key, value, says]) => ({
      flaw: `${JSON.stringify(value)} for ${key}`,
      values: { [String(key)]: value },
      says: String(says),
    })),
    { flaw: "no region", values: { location: "" }, says: "location is not set" },
    {
      flaw: "a region's long name",
      values: { location: "West Europe" },
      says: "config set location westeurope",
    },
    {
      flaw: "a region without zones",
      values: { location: "westus" },
      says: 'location is "westus", expected a region with availability zones',
    },
    { flaw: "no zones", values: { zones: [] }, says: "zones[0] is not set" },
    { flaw: "a fourth zone", values: { zones: ["1", "4"] }, says: 'zones[1] is "4"' },
    {
      flaw: "a zone twice",
      values: { zones: ["1", "2", "1"] },
      says: 'zones[2] is "1", expected no zone twice',
    },
    {
      flaw: "zones that YAML took for numbers",
      values: { zones: ["1", 2] },
      says: "zones[1] is 2, expected text",
    },
    { flaw: "a map for a list", values: { zones: { a: 1 } }, says: "expected a list" },
    { flaw: "a hole in a list", values: { zones: ["1", null] }, says: "zones[1] is not set" },
    {
      flaw: "capital letters in the cluster's name",
      values: { clusterName: "Prod" },
      says: 'clusterName is "Prod"',
    },
    {
      flaw: "a cluster's name from which machines get names too long for hosts",
      values: { clusterName: "a".repeat(41) },
      says: "3 to 40",
    },
    {
      flaw: "a name too short for Azure's identities",
      values: { clusterName: "ab" },
      says: "3 to 40",
    },
    { flaw: "a name from a digit", values: { clusterName: "1st" }, says: "from a letter" },
    { flaw: "a name to a dash", values: { clusterName: "prod-" }, says: "to a letter or digit" },
    {
      flaw: "a name whose balancer the cloud provider would adopt",
      values: { clusterName: "team-internal" },
      says: "another ending than -internal",
    },
    {
      flaw: "a trademark in the name",
      values: { clusterName: "my-windows" },
      says: "without microsoft",
    },
    { flaw: "a name from login", values: { clusterName: "login-team" }, says: "without microsoft" },
    {
      flaw: "an even control plane",
      values: { controlPlaneCount: 2 },
      says: "controlPlaneCount is 2, expected 1, 3 or 5",
    },
    { flaw: "seven control planes", values: { controlPlaneCount: 7 }, says: "1, 3 or 5" },
    { flaw: "no control plane", values: { controlPlaneCount: 0 }, says: "1, 3 or 5" },
    { flaw: "an unknown way out", values: { egress: "none" }, says: "config set egress zonal" },
    {
      flaw: "an unknown disk",
      values: { osDiskSku: "Premium_ZRS" },
      says: "one of Premium_LRS, StandardSSD_LRS",
    },
    { flaw: "a disk smaller than the image", values: { osDiskSizeGb: 29 }, says: "30 to 4095" },
    {
      flaw: "a disk larger than Azure boots from",
      values: { osDiskSizeGb: 4096 },
      says: "30 to 4095",
    },
    {
      flaw: "an unknown runtime",
      values: { containerRuntime: "cri-o" },
      says: "one of docker, cri-dockerd, containerd",
    },
    {
      flaw: "an unknown proxy mode",
      values: { proxyMode: "ebpf" },
      says: "one of ipvs, nftables, iptables",
    },
    { flaw: "an unknown scheduler", values: { proxyScheduler: "random" }, says: "one of rr, wrr" },
    {
      flaw: "a time that is no duration",
      values: { proxySyncPeriod: "1 hour" },
      says: 'proxySyncPeriod is "1 hour"',
    },
    {
      flaw: "no time, for which kube-proxy would take its default",
      values: { proxySyncPeriod: "0s" },
      says: "more than nothing",
    },
    {
      flaw: "an unknown pod network",
      values: { cni: "cilium" },
      says: "one of canal, flannel, none",
    },
    {
      flaw: "a version with a v",
      values: { kubernetesVersion: "v1.36.0" },
      says: 'kubernetesVersion is "v1.36.0"',
    },
    {
      flaw: "a patch that no minor ever had",
      values: { kubernetesVersion: "1.36.999" },
      says: "with a z up to 25",
    },
    {
      flaw: "a patch with a zero before it",
      values: { kubernetesVersion: "1.36.03" },
      says: 'kubernetesVersion is "1.36.03"',
    },
    { flaw: "another minor", values: { kubernetesVersion: "1.35.9" }, says: "a version 1.36.z" },
    { flaw: "half a version", values: { kubernetesVersion: "1.36" }, says: "a version 1.36.z" },
    {
      flaw: "whatever image is newest",
      values: { imageVersion: "latest" },
      says: 'imageVersion is "latest"',
    },
    {
      flaw: "an image of another Ubuntu",
      values: { imageVersion: "22.04.202601010" },
      says: "Ubuntu 24.04",
    },
    {
      flaw: "a setting that nobody reads",
      values: { controlPlaneCounts: 3 },
      says:
        "controlPlaneCounts is not a known name, expected another; did you mean " +
        "controlPlaneCount?",
    },
    {
      flaw: "a folder that is not there",
      values: { mirror: "/nowhere/at/all" },
      says: 'mirror is "/nowhere/at/all"',
    },
    { flaw: "a relative folder", values: { mirror: "components" }, says: "an absolute path" },
    {
      flaw: "a mirror by FTP",
      values: { mirror: "ftp://mirror.example" },
      says: "http:// or https://",
    },
    ...["https://mirror.example/a b", "https://mirror .example", "https://mirror.example/$HOME", "https://"].map(
      (mirror) => ({
        flaw: `the mirror ${mirror}`,
        values: { mirror },
        says: "no spaces or signs that need quoting",
      }),
    ),
    {
      flaw: "a mirror with a query",
      values: { mirror: "https://mirror.example?a=b" },
      says: "http:// or https://",
    },
    {
      flaw: "a mirror with a password",
      values: { mirror: "https://me:hush@mirror.example" },
      says: "mirror holds a user's name",
    },
    {
      flaw: "a token sent in clear",
      values: { resourceManagerEndpoint: "http://management.example" },
      says: "the access token travels",
    },
    {
      flaw: "a consent to lose any cluster",
      values: { reinitialize: "true" },
      says: "the id of the initialization that may be lost",
    },
    {
      flaw: "a check that is skipped for years",
      values: { skipHealthCheckUntil: "20990101T000000Z" },
      says: "within the next day",
    },
    {
      flaw: "a time that YAML reads as a date",
      values: { skipHealthCheckUntil: "2026-11-23T18:00:00Z" },
      says: "such as 20261123T180000Z",
    },
    {
      flaw: "an endpoint that is no address",
      values: { resourceManagerEndpoint: "azure" },
      says: "an https:// address",
    },
  ],
  accepted: [
    { merit: "a region that no table knows", values: { location: "newregion3" } },
    { merit: "one zone", values: { zones: ["2"] } },
    { merit: "five control planes", values: { controlPlaneCount: 5 } },
    { merit: "a name of 40 characters", values: { clusterName: "a".repeat(40) } },
    {
      merit: "a name with a trademark's first letters inside",
      values: { clusterName: "my-login-xbox" },
    },
    { merit: "the smallest disk", values: { osDiskSizeGb: 30 } },
    { merit: "the largest disk", values: { osDiskSizeGb: 4095 } },
    { merit: "another patch of the minor", values: { kubernetesVersion: "1.36.0" } },
    { merit: "an older image", values: { imageVersion: "24.04.202501010" } },
    { merit: "a mirror", values: { mirror: "http://mirror.example:8080/base" } },
    { merit: "a mirror by its address", values: { mirror: "https://[fd00::1]:8443/k8s/~a%20b/" } },
    { merit: "a patch to come", values: { kubernetesVersion: "1.36.17" } },
    { merit: "a folder of manifests", values: { mirror: __dirname } },
    {
      merit: "this machine's own Resource Manager",
      values: { resourceManagerEndpoint: "http://127.0.0.1:1234" },
    },
    {
      merit: "a consent, and a time that is over",
      values: { reinitialize: "1-20261123T174128Z", skipHealthCheckUntil: "20261123T174128Z" },
    },
    { merit: "every proxy mode", values: { proxyMode: "nftables", proxyScheduler: "mh" } },
    { merit: "a time in hours and minutes", values: { proxySyncPeriod: "1h30m" } },
  ],
};
