import * as pulumi from "@pulumi/pulumi";

import { problems } from "../../../components/settings/rules";
import { warnings } from "../../../components/settings/warnings";
import { versions } from "../../../components/versions";
import { idIn, validSettings } from "../../support/sample";
import { access, complaints, declared, settingsWith, Values } from "../../support/stack";

describe("settings read", () => {
  const identityId = idIn(
    "identities",
    "Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes",
  );
  const registries = [idIn("images", "Microsoft.ContainerRegistry/registries/ourimages")];
  const kubeletIdentityId = idIn(
    "identities",
    "Microsoft.ManagedIdentity/userAssignedIdentities/kubelets",
  );
  const image = idIn("images", "Microsoft.Compute/galleries/zoned/images/node/versions/1.0.0");
  const diskEncryptionSetId = idIn("keys", "Microsoft.Compute/diskEncryptionSets/kubernetes");
  const subnet = (name: string) =>
    idIn("network", `Microsoft.Network/virtualNetworks/spoke/subnets/${name}`);
  const stack: Values = { location: "westeurope", ...access };

  beforeEach(() => {
    jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
  });

  it("takes an application whose secret is encrypted, and keeps it a secret", async () => {
    const clientId = "5f0b7d9e-8c1a-4a53-9d0e-2f6c3b1a7e88";
    const { servicePrincipal } = settingsWith(
      { ...stack, servicePrincipalClientId: clientId, servicePrincipalClientSecret: "hush" },
      ["servicePrincipalClientSecret"],
    );
    expect(servicePrincipal?.clientId).toBe(clientId);
    expect(await pulumi.isSecret(servicePrincipal!.clientSecret)).toBe(true);
  });

  it.each(["", "my-app"])("refuses %j for the id of an application", (servicePrincipalClientId) => {
    const principal = { servicePrincipalClientId, servicePrincipalClientSecret: "hush" };
    expect(complaints({ ...stack, ...principal }, ["servicePrincipalClientSecret"])).toEqual([
      expect.stringMatching(
        /^servicePrincipalClientId is .*, expected the application's client id/,
      ),
    ]);
  });

  it("refuses an identity beside an application, of which only one can log in", () => {
    const clientId = "5f0b7d9e-8c1a-4a53-9d0e-2f6c3b1a7e88";
    const principal = { servicePrincipalClientId: clientId, servicePrincipalClientSecret: "hush" };
    expect(
      complaints({ ...stack, ...principal, identityId }, ["servicePrincipalClientSecret"]),
    ).toEqual([
      expect.stringMatching(
        /^identityId is set beside servicePrincipalClientId.*config rm identityId/,
      ),
    ]);
  });

  it("fills in what depends on the stack, the release or other settings", () => {
    expect(settingsWith({ ...stack, zones: ["2", "3"] })).toMatchObject({
      clusterName: `zoned-${pulumi.getStack()}`,
      kubernetesVersion: versions.kubernetes,
      imageVersion: "",
      workerPools: [
        {
          name: "workers",
          count: 2,
          size: "Standard_D2s_v5",
          zones: ["2", "3"],
          labels: {},
          taints: [],
          osDiskSku: "Premium_LRS",
          osDiskSizeGb: 64,
          maxUnavailable: 1,
        },
      ],
      servicePrincipal: undefined,
    });
  });

  it("reads every setting that Pulumi.yaml declares, under its own name", () => {
    const given: Values = {
      ...stack,
      clusterName: "other",
      resourceGroup: "platform",
      zones: ["1", "2"],
      networkCidr: "10.8.0.0/16",
      podCidr: "10.16.0.0/16",
      serviceCidr: "10.32.0.0/16",
      nodeSubnets: [],
      egress: "single",
      apiAccess: "private",
      apiName: "api.zoned.example",
      apiProxy: "http://proxy.example:3128",
      sshAccessCidrs: ["10.0.0.0/8"],
      apiExtraSans: ["api.example"],
      adminUsername: "jane",
      imageVersion: "24.04.202501010",
      image,
      kubernetesVersion: "1.36.0",
      controlPlaneCount: 5,
      controlPlaneSize: "Standard_D8s_v5",
      schedulableControlPlanes: false,
      workerPools: [
        {
          name: "gpu",
          count: 1,
          size: "Standard_NC6s_v3",
          zones: ["2"],
          labels: { a: "b" },
          osDiskSku: "Premium_LRS",
          osDiskSizeGb: 256,
          ephemeralOsDisk: "NvmeDisk",
          maxPods: 30,
          spot: { evictionPolicy: "Delete", maxPrice: 0.05 },
          maxUnavailable: 1,
          taints: [{ key: "a", value: "b", effect: "NoExecute" }],
        },
      ],
      osDiskSku: "StandardSSD_LRS",
      osDiskSizeGb: 128,
      encryptionAtHost: true,
      diskEncryptionSetId,
      drainMinutes: 30,
      encryptionKeyGeneration: 2,
      caGeneration: 3,
      serviceAccountKeyGeneration: 4,
      containerRuntime: "containerd",
      proxyMode: "nftables",
      proxyScheduler: "sh",
      kubeProxy: { ipvs: { syncPeriod: "1h30m" }, oomScoreAdj: -998 },
      cni: "flannel",
      cloudProvider: false,
      diskDriver: false,
      storageClasses: false,
      metricsServer: true,
      identityId,
      machineIdentity: true,
      registries,
      kubeletIdentityId,
      registryCredentials: { "ghcr.io": { username: "robot", password: "1" } },
      autoRepair: true,
      reboots: { days: ["tue", "sat"], from: "02:00", to: "05:00" },
      entra: {
        ...{ tenant: "", issuer: "https://login.example", application: "kubernetes" },
        ...{ admins: ["admins"], usernameClaim: "email", groupsClaim: "roles", ca: "" },
      },
      kubeadm: {
        apiServerExtraArgs: { v: "1" },
        controllerManagerExtraArgs: { v: "2" },
        schedulerExtraArgs: { v: "3" },
        etcdExtraArgs: { "snapshot-count": "4" },
        kubeletExtraArgs: { v: "5" },
        ignorePreflightErrors: ["NumCPU"],
        timeouts: { discovery: "6m" },
        patches: { "etcd.yaml": "{}" },
      },
      etcdBackups: {
        container:
          "/subscriptions/1/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
        every: "30m",
        endpoint: "https://ours.privatelink.example",
      },
      mirror: "https://mirror.example",
      httpProxy: { http: "", https: "http://proxy.example:3128", noProxy: [".example"], ca: "" },
      tags: { costCenter: "4711" },
      resourceManagerEndpoint: "https://management.example",
      protect: true,
      reinitialize: "1-20261123T174128Z",
      restoreFrom: "latest",
      workloadIdentities: [
        {
          ...{ namespace: "shop", serviceAccount: "app", identityId: "" },
          roles: [{ role: "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", scope: "/subscriptions/shop" }],
        },
      ],
      skipHealthCheckUntil: "20261123T180000Z",
    };
    expect(settingsWith(given, ["registryCredentials"])).toEqual({
      ...given,
      servicePrincipal: undefined,
    });
    // Not beside a private API.
    const nodeSubnets = [subnet("1"), subnet("2")];
    const publicly = { ...given, apiAccess: "public", apiName: "", nodeSubnets };
    expect(settingsWith(publicly, ["registryCredentials"])).toMatchObject({ nodeSubnets });
    const principal = ["servicePrincipalClientId", "servicePrincipalClientSecret"];
    expect([...Object.keys(given), ...principal].sort()).toEqual(Object.keys(declared).sort());
  });

  it("gives a pool the stack's disk, unless it names its own", () => {
    const workerPools = [
      { name: "a", count: 1 },
      { name: "b", count: 1, osDiskSku: "Premium_LRS", osDiskSizeGb: 256 },
    ];
    const disks = { osDiskSku: "StandardSSD_LRS", osDiskSizeGb: 128 };
    expect(settingsWith({ ...stack, ...disks, workerPools }).workerPools).toMatchObject([
      disks,
      { osDiskSku: "Premium_LRS", osDiskSizeGb: 256 },
    ]);
  });

  it("composes addresses with an endpoint that ends in a slash", () => {
    const { resourceManagerEndpoint } = settingsWith({
      ...stack,
      resourceManagerEndpoint: "https://management.example/",
    });
    expect(resourceManagerEndpoint).toBe("https://management.example");
  });

  it("saves etcd every hour where nothing else is said", () => {
    const container =
      "/subscriptions/1/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd";
    const { etcdBackups } = settingsWith({ ...stack, etcdBackups: { container } });
    expect(etcdBackups?.every).toBe("1h");
  });
});

describe("settings warnings", () => {
  const settings = { ...validSettings, proxyMode: "nftables" as const };

  const events = (rate: string) => ({
    kubeadm: { ...validSettings.kubeadm, kubeletExtraArgs: { "event-qps": rate } },
  });

  it("has nothing to say about valid settings", () => {
    expect(warnings(settings)).toEqual([]);
  });

  it.each([
    {
      what: "an API open to everyone",
      change: { apiAccessCidrs: ["0.0.0.0/0"] },
      says: "apiAccessCidrs opens",
    },
    {
      what: "an API open to half of everyone",
      change: { apiAccessCidrs: ["203.0.113.0/24", "128.0.0.0/1"] },
      says: "apiAccessCidrs opens",
    },
    {
      what: "SSH open to everyone",
      change: { sshAccessCidrs: ["0.0.0.0/0"] },
      says: "sshAccessCidrs opens",
    },
    ...(["networkCidr", "podCidr", "serviceCidr"] as const).map((key) => ({
      what: `a public ${key}`,
      change: { [key]: "20.0.0.0/16" },
      says: `${key} 20.0.0.0/16 is not private`,
    })),
    { what: "a stack without pools", change: { workerPools: [] }, says: "no backend" },
    {
      what: "pools without machines",
      change: { workerPools: validSettings.workerPools.map((pool) => ({ ...pool, count: 0 })) },
      says: "no backend",
    },
    {
      what: "three control planes in two zones",
      change: { zones: ["1", "2"] },
      says: "3 control planes over zone 1 and 2",
    },
    {
      what: "repairs of machines that no cloud provider names",
      change: { autoRepair: true, cloudProvider: false },
      says: "autoRepair is true and cloudProvider false",
    },
    {
      what: "IPVS once its end is near",
      change: { kubernetesVersion: "1.39.0", proxyMode: "ipvs" as const },
      says: "gone in 1.43",
    },
    {
      what: "events of kubelets without a limit",
      change: events("0"),
      says: "pulumi config set --path --type string kubeadm.kubeletExtraArgs.event-qps 50",
    },
  ])("warns of $what", ({ change, says }) => {
    expect(warnings({ ...settings, ...change })).toEqual([expect.stringContaining(says)]);
  });

  it.each([
    { what: "a large owner's network", change: { apiAccessCidrs: ["17.0.0.0/8"] } },
    {
      what: "ranges of every private kind",
      change: {
        networkCidr: "192.168.0.0/16",
        podCidr: "100.64.0.0/10",
        serviceCidr: "198.18.0.0/15",
      },
    },
    { what: "one control plane in one zone", change: { controlPlaneCount: 1, zones: ["1"] } },
    { what: "five control planes in three zones", change: { controlPlaneCount: 5 } },
    { what: "a limit of kubelets' events", change: events("5") },
    {
      what: "events of kubelets that take 0 as their default",
      change: { ...events("0"), kubernetesVersion: "1.36.3" },
    },
    {
      what: "nftables after IPVS's end",
      change: { kubernetesVersion: "1.43.0" },
    },
  ])("says nothing of $what", ({ change }) => {
    expect(warnings({ ...settings, ...change })).toEqual([]);
  });

  it("reaches the engine's log, and stops nothing", () => {
    const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
    const settings = settingsWith({
      location: "westeurope",
      ...access,
      apiAccessCidrs: ["0.0.0.0/0"],
    });
    expect(settings.apiAccessCidrs).toEqual(["0.0.0.0/0"]);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("whole internet"));
  });

  it("refuses IPVS where kube-proxy ends at once", () => {
    const messages = problems({ ...validSettings, kubernetesVersion: "1.40.0" }).filter(
      ({ key }) => key === "proxyMode",
    );
    expect(messages).toEqual([
      expect.objectContaining({ fix: "pulumi config set proxyMode nftables" }),
    ]);
  });
});
