import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { Certificates } from "../../../../components/certificates";
import { CloudConfig } from "../../../../components/add-ons/cloud-provider/cloud-config";
import { DiskDriver } from "../../../../components/add-ons/cloud-provider/disk-driver";
import type { ServiceAccountLogin } from "../../../../components/add-ons/workload-identity";
import { manifests } from "../../../../components/versions";
import { dependenciesOf, Recorder, revealed, valueOf } from "../../../support/record";
import { firstKeys, validSettings } from "../../../support/sample";
import { itWith } from "../../../support/unless";
import { StorageClasses } from "../../../../components/add-ons/cloud-provider/storage-classes";
import { diskClasses, type DiskEncryptionSet } from "../../../../components/azure/disk-classes";

async function build(
  texts: ReadonlyMap<string, string>,
  change: Partial<typeof validSettings> = {},
  login?: ServiceAccountLogin,
) {
  const recorder = await Recorder.start();
  const resourceGroup = new ResourceGroup("cluster");
  const settings = { ...validSettings, ...change };
  const cloudConfig = new CloudConfig("cloud-config", {
    resourceGroup,
    settings,
    tenantId: "tenant",
    subscriptionId: "subscription",
    credential: { clientId: pulumi.output("client"), clientSecret: pulumi.secret("hush") },
    certificates: new Certificates("pki", firstKeys),
  });
  new DiskDriver(
    "disk-driver",
    {
      ...{ settings, manifests: texts, cloudConfig, login },
      apiServer: { name: "api.example", port: 6443 },
    },
    { transformations: [recorder.watch] },
  );
  return { recorder, cloudConfig };
}

const claim = (words: string, test: Parameters<typeof itWith>[2]) =>
  itWith(manifests.diskDriver, words, test);

const controller = async (recorder: Recorder) =>
  (await recorder.object("Deployment", "csi-azuredisk-controller")).inputs.spec;

/** The driver's own container in a pod. */
const driverIn = ({ containers }: { readonly containers: readonly any[] }) =>
  containers.find(({ name }) => name === "azuredisk");

const repels = (key: string) => ({ key, operator: "Exists", effect: "NoSchedule" });

describe("DiskDriver", () => {
  claim("logs in as its service account where that is wanted", async (texts) => {
    const login = {
      ...{ tenantId: "the-tenant", clientId: "the-client" },
      resourceManagerEndpoint: "https://management.azure.com",
    };
    const podOf = async (by?: ServiceAccountLogin) =>
      (await controller((await build(texts, {}, by)).recorder)).template.spec;
    const pod = await podOf(login);

    const { env } = pod.containers.find(({ name }: { name: string }) => name === "azuredisk");
    expect(env).toContainEqual({ name: "AZURE_CLIENT_ID", value: "the-client" });
    expect(JSON.stringify(pod.volumes)).toContain('"audience":"api://AzureADTokenExchange"');
    expect(JSON.stringify(await podOf())).not.toMatch(/AZURE_CLIENT_ID|AzureADTokenExchange/);
  });

  claim(
    "reaches Azure through the proxy, whose CA the machine trusts, and the API without",
    async (texts) => {
      const httpProxy = { http: "", https: "http://proxy.example:3128", noProxy: [], ca: "a CA" };
      const { recorder } = await build(texts, { httpProxy });

      const { spec } = (await controller(recorder)).template;
      const { env, volumeMounts } = driverIn(spec);

      expect(env).toContainEqual({ name: "HTTPS_PROXY", value: httpProxy.https });
      expect(env).toContainEqual({
        name: "NO_PROXY",
        value: expect.stringMatching(/,api\.example$/),
      });
      expect(spec.volumes).toContainEqual({
        name: "certificates",
        hostPath: { path: "/etc/ssl", type: "Directory" },
      });
      expect(volumeMounts).toContainEqual({
        name: "certificates",
        mountPath: "/etc/ssl",
        readOnly: true,
      });
      const { recorder: without } = await build(texts);
      expect(JSON.stringify(await controller(without))).not.toMatch(/PROXY|certificates/);
    },
  );

  claim("takes a proxy's password from the Secret alone", async (texts) => {
    const https = "http://me:hush@proxy.example:3128";
    const { recorder } = await build(texts, {
      httpProxy: { http: "", https, noProxy: [], ca: "" },
    });

    const spec = await controller(recorder);

    expect(JSON.stringify(spec)).not.toContain("hush");
    const { env } = driverIn(spec.template.spec);
    expect(env).toContainEqual({
      name: "HTTPS_PROXY",
      valueFrom: { secretKeyRef: { name: "azure-cloud-provider", key: "HTTPS_PROXY" } },
    });
  });

  const role = "node-role.kubernetes.io/control-plane";
  for (const [words, kind, name, path, expected] of [
    [
      "runs its controller only where the identity is",
      ...["Deployment", "csi-azuredisk-controller", "template.spec.nodeSelector"],
      { "kubernetes.io/os": "linux", [role]: "" },
    ],
    [
      "runs its controller also before machines are initialized",
      ...["Deployment", "csi-azuredisk-controller", "template.spec.tolerations"],
      expect.arrayContaining([role, "node.cloudprovider.kubernetes.io/uninitialized"].map(repels)),
    ],
    [
      "can be rolled out where every control plane has one already",
      ...["Deployment", "csi-azuredisk-controller", "strategy.rollingUpdate"],
      { maxSurge: 0, maxUnavailable: 1 },
    ],
    [
      "runs the snapshot controller also where only tainted control planes are",
      ...["Deployment", "csi-snapshot-controller", "template.spec.tolerations"],
      expect.arrayContaining([repels(role)]),
    ],
    [
      "runs its node half everywhere",
      ...["DaemonSet", "csi-azuredisk-node", "template.spec.tolerations"],
      [{ operator: "Exists" }],
    ],
  ] as [string, string, string, string, object][]) {
    claim(words, async (texts) => {
      const { recorder } = await build(texts);

      expect((await recorder.object(kind, name)).inputs.spec).toHaveProperty(path, expected);
    });
  }

  claim("has one controller on one control plane, and two on more", async (texts) => {
    for (const [controlPlaneCount, replicas] of [
      [1, 1],
      [3, 2],
    ]) {
      const { recorder } = await build(texts, { controlPlaneCount });
      expect((await controller(recorder)).replicas).toBe(replicas);
    }
  });

  claim(
    "starts its controller again when azure.json changes, and after there is one",
    async (texts) => {
      const { recorder, cloudConfig } = await build(texts);

      const { annotations } = (await controller(recorder)).template.metadata;

      expect(annotations).toEqual({ "zoned/cloud-config": await valueOf(cloudConfig.digest) });
      const account = await recorder.object("ServiceAccount", "csi-azuredisk-controller-sa");
      expect(await dependenciesOf(account)).toContain(cloudConfig);
    },
  );

  for (const [kind, name] of [
    ["Deployment", "csi-azuredisk-controller"],
    ["DaemonSet", "csi-azuredisk-node"],
  ] as const) {
    claim(`keeps the folder of the cluster's keys from its ${kind}`, async (texts) => {
      const { recorder } = await build(texts);

      const { inputs } = await recorder.object(kind, name);

      const { volumes, containers } = inputs.spec.template.spec;
      expect(JSON.stringify(volumes)).not.toContain("/etc/kubernetes");
      const declared = volumes.map((volume: any) => volume.name);
      for (const mount of containers.flatMap(({ volumeMounts }: any) => volumeMounts)) {
        expect(declared).toContain(mount.name);
      }
    });

    claim(
      `asks the API by its name for what its ${kind} knows of Azure, and not by an address of kube-proxy's`,
      async (texts) => {
        const { recorder } = await build(texts);

        const { inputs } = await recorder.object(kind, name);

        const { env } = driverIn(inputs.spec.template.spec);
        expect(env).toEqual(
          expect.arrayContaining([
            expect.objectContaining({ name: "CSI_ENDPOINT" }),
            { name: "KUBERNETES_SERVICE_HOST", value: "api.example" },
            { name: "KUBERNETES_SERVICE_PORT", value: "6443" },
          ]),
        );
      },
    );
  }

  claim(
    "may read one Secret and no other, and on machines one without a credential",
    async (texts) => {
      const { recorder } = await build(texts);

      const roles = await recorder.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole");

      const readers = roles.flatMap(({ inputs }) =>
        inputs.rules
          .filter(({ resources }: any) => resources.includes("secrets"))
          .map(({ verbs, resourceNames }: any) => [inputs.metadata.name, verbs, resourceNames]),
      );
      expect(Object.fromEntries(readers.map(([name, ...rest]) => [name, rest]))).toEqual({
        "azuredisk-external-snapshotter-role": [["get"], ["azure-cloud-provider"]],
        "csi-azuredisk-controller-secret-role": [["get"], ["azure-cloud-provider"]],
        "csi-azuredisk-node-role": [["get"], ["azure-disk-node"]],
      });
    },
  );

  claim("knows on every machine where it is, and no credential", async (texts) => {
    const https = "http://me:hush@proxy.example:3128";
    const { recorder } = await build(texts, {
      httpProxy: { http: "", https, noProxy: [], ca: "" },
    });

    const secret = await recorder.object("Secret", "azure-disk-node");
    const daemonSet = await recorder.object("DaemonSet", "csi-azuredisk-node");

    const data = revealed(secret.inputs.data);
    expect([secret.inputs.metadata.namespace, Object.keys(data)]).toEqual([
      "kube-system",
      ["cloud-config"],
    ]);
    const text = Buffer.from(data["cloud-config"], "base64").toString();
    expect(text).not.toMatch(/hush|aad|userAssignedIdentityID/);
    expect(JSON.parse(text)).toMatchObject({
      location: "westeurope",
      vmType: "standard",
      useInstanceMetadata: true,
      useManagedIdentityExtension: true,
    });
    const { args } = driverIn(daemonSet.inputs.spec.template.spec);
    expect(args).toContain("--cloud-config-secret-name=azure-disk-node");
    const account = await recorder.object("ServiceAccount", "csi-azuredisk-node-sa");
    expect(await dependenciesOf(daemonSet)).toContain(account.resource);
    expect(await dependenciesOf(account)).toContain(secret.resource);
    expect(JSON.stringify(await controller(recorder))).not.toContain("cloud-config-secret-name");
  });

  claim("keeps a snapshot while its provisioner makes a volume of it", async (texts) => {
    const { recorder } = await build(texts);

    const { inputs } = await recorder.object("ClusterRole", "azuredisk-external-provisioner-role");

    const verbs = inputs.rules
      .filter(({ resources }: any) => resources.includes("volumesnapshots"))
      .flatMap((rule: any) => rule.verbs);
    expect(verbs).toEqual(expect.arrayContaining(["get", "list", "watch", "update"]));
  });

  claim("has its definitions before anything that looks for them", async (texts) => {
    const { recorder } = await build(texts);

    const definitions = (
      await recorder.of("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition")
    ).map(({ resource }) => resource);
    expect(definitions).toHaveLength(3);
    for (const [kind, name] of [
      ["ServiceAccount", "csi-snapshot-controller-sa"],
      ["VolumeSnapshotClass", "azure-disk"],
    ] as const) {
      const waits = await dependenciesOf(await recorder.object(kind, name));
      expect(waits).toEqual(expect.arrayContaining(definitions));
    }
    const account = await recorder.object("ServiceAccount", "csi-snapshot-controller-sa");
    const running = await recorder.object("Deployment", "csi-snapshot-controller");
    expect(await dependenciesOf(running)).toContain(account.resource);
  });

  claim(
    "spreads the controllers over zones and machines, as far as there are any",
    async (texts) => {
      const { recorder } = await build(texts);

      for (const name of ["csi-snapshot-controller", "csi-azuredisk-controller"]) {
        const { selector, template } = (await recorder.object("Deployment", name)).inputs.spec;
        expect(template.spec.topologySpreadConstraints).toEqual(
          ["topology.kubernetes.io/zone", "kubernetes.io/hostname"].map((topologyKey) =>
            expect.objectContaining({
              ...{ topologyKey, labelSelector: selector, whenUnsatisfiable: "ScheduleAnyway" },
            }),
          ),
        );
      }
    },
  );

  claim("makes snapshots of its own disks by default", async (texts) => {
    const { recorder } = await build(texts);

    const { inputs } = await recorder.object("VolumeSnapshotClass", "azure-disk");

    expect(inputs).toMatchObject({
      metadata: { annotations: { "snapshot.storage.kubernetes.io/is-default-class": "true" } },
      driver: "disk.csi.azure.com",
      deletionPolicy: "Delete",
      parameters: { incremental: "true" },
    });
    const driver = await recorder.object("CSIDriver", inputs.driver);
    expect(driver.inputs.spec.attachRequired).toBe(true);
  });

  claim("tags snapshots as all that the stack makes", async (texts) => {
    const change = { tags: { costCenter: "4711" }, resourceGroup: "platform" };
    const { recorder } = await build(texts, change);

    const { inputs } = await recorder.object("VolumeSnapshotClass", "azure-disk");

    expect(inputs.parameters).toEqual({
      incremental: "true",
      tags: "costCenter=4711,zoned-stack=organization/zoned/test",
    });
  });

  claim(
    "leaves snapshots where they are when it is taken away, and nothing else",
    async (texts) => {
      const { recorder } = await build(texts);

      const kept = (await recorder.objects()).filter(({ opts }) => opts.retainOnDelete);

      expect(kept.map(({ inputs }) => `${inputs.kind} ${inputs.spec.names.kind}`).sort()).toEqual(
        ["VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent"].map(
          (kind) => `CustomResourceDefinition ${kind}`,
        ),
      );
    },
  );
});

describe("StorageClasses", () => {
  async function build(
    change: Partial<typeof validSettings> = {},
    diskEncryptionSet?: DiskEncryptionSet,
  ) {
    const recorder = await Recorder.start();
    const settings = { ...validSettings, ...change };
    new StorageClasses(
      "storage-classes",
      { settings, diskClasses: diskClasses(settings.zones), diskEncryptionSet },
      { transformations: [recorder.watch] },
    );
    const classes = await recorder.of("kubernetes:storage.k8s.io/v1:StorageClass");
    return { classes };
  }

  const isDefault = "storageclass.kubernetes.io/is-default-class";

  it("has exactly one default, of a kind that every size of machine takes", async () => {
    const { classes } = await build();

    const defaults = classes.filter(
      ({ inputs }) => inputs.metadata.annotations[isDefault] === "true",
    );

    expect(defaults.map(({ inputs }) => inputs.parameters.skuName)).toEqual(["StandardSSD_LRS"]);
    expect(defaults[0]!.inputs).not.toHaveProperty("allowedTopologies");
  });

  it("allows just one zone in a class of a zone, for each zone of the settings", async () => {
    const { classes } = await build({ zones: ["1", "3"], location: "eastus2" });

    const ofZones = classes.filter(({ inputs }) => inputs.allowedTopologies !== undefined);

    expect(
      ofZones.map(({ inputs }) => [
        inputs.metadata.name,
        inputs.parameters.skuName,
        inputs.allowedTopologies,
      ]),
    ).toEqual(
      [
        ["standard-ssd-zone-1", "StandardSSD_LRS", "eastus2-1"],
        ["standard-ssd-zone-3", "StandardSSD_LRS", "eastus2-3"],
        ["premium-ssd-zone-1", "Premium_LRS", "eastus2-1"],
        ["premium-ssd-zone-3", "Premium_LRS", "eastus2-3"],
      ].map(([name, sku, zone]) => [
        name,
        sku,
        [{ matchLabelExpressions: [{ key: "topology.disk.csi.azure.com/zone", values: [zone] }] }],
      ]),
    );
  });

  it("offers disks that outlive a zone, wherever their pod goes", async () => {
    const { classes } = await build();

    const redundant = classes.filter(({ inputs }) => inputs.parameters.skuName.endsWith("_ZRS"));

    expect(redundant.map(({ inputs }) => inputs.metadata.name)).toEqual([
      "standard-ssd-zrs",
      "premium-ssd-zrs",
    ]);
    expect(redundant.every(({ inputs }) => inputs.allowedTopologies === undefined)).toBe(true);
  });

  it("makes a disk only once a pod wants it, by the disk driver, and lets it grow", async () => {
    const { classes } = await build();

    for (const { inputs } of classes) {
      expect(inputs).toMatchObject({
        provisioner: "disk.csi.azure.com",
        volumeBindingMode: "WaitForFirstConsumer",
        allowVolumeExpansion: true,
        reclaimPolicy: "Delete",
      });
    }
  });

  it("has the disk driver tag every disk that it makes", async () => {
    const { classes } = await build({ tags: { owner: "a=b", cost: "1" } });

    for (const { inputs } of classes) expect(inputs.parameters.tags).toBe("owner=a=b,cost=1");
    const { classes: untagged } = await build();
    for (const { inputs } of untagged) expect(inputs.parameters).not.toHaveProperty("tags");
  });

  it("has the disk driver encrypt every disk by the set, in the set's way", async () => {
    const encryptionType = "EncryptionAtRestWithPlatformAndCustomerKeys";
    const { classes } = await build({}, { id: "/ids/set", encryptionType });

    for (const { inputs } of classes) {
      expect(inputs.parameters).toEqual({
        skuName: expect.any(String),
        diskEncryptionSetID: "/ids/set",
        diskEncryptionType: encryptionType,
      });
    }
    const { classes: others } = await build();
    for (const { inputs } of others) expect(Object.keys(inputs.parameters)).toEqual(["skuName"]);
  });
});
