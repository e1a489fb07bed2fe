import { ResourceGroup } from "@pulumi/azure-native/resources";
import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import { AddOns } from "../../../components/add-ons/add-ons";
import { NodeAddOns } from "../../../components/add-ons/node-add-ons";
import { nodeImages } from "../../../components/add-ons/node-images";
import { diskClasses } from "../../../components/azure/disk-classes";
import { manifests } from "../../../components/versions";
import { checked } from "../../../tools/local-azure/plugins/kubernetes/check";
import { dependenciesOf, Recorder, revealed } from "../../support/record";
import { validSettings, subscriptionId } from "../../support/sample";
import { people } from "../../support/settings-cases/entra";
import { itWith } from "../../support/unless";

const without = {
  cni: "none",
  cloudProvider: false,
  diskDriver: false,
  storageClasses: false,
} as const;

interface Change {
  readonly settings?: Partial<typeof validSettings>;
  readonly manifests?: ReadonlyMap<string, string>;
  readonly runs?: Readonly<Record<string, string>>;
  readonly apiName?: string;
  readonly initialized?: boolean;
}

async function build(given: Change) {
  const {
    settings: change = {},
    manifests: texts = new Map(),
    runs = { a: "1", b: "1" },
    apiName = "api.example",
  } = given;
  const recorder = await Recorder.start({
    filledIn: {
      "tls:index/privateKey:PrivateKey": { privateKeyPem: "a key" },
      "tls:index/certRequest:CertRequest": { certRequestPem: "a request" },
      "tls:index/locallySignedCert:LocallySignedCert": { certPem: "a certificate" },
    },
  });
  const resourceGroup = new ResourceGroup("cluster");
  const provider = new Provider("kubernetes", { kubeconfig: "{}" });
  const join = (of: string) => new pulumi.ComponentResource("test:index:Join", `${of}-join`);
  const [controlPlaneJoin, second, third] = [join("first"), join("second"), join("third")];
  const workerJoin = join("worker");
  const settings = { ...validSettings, cni: "flannel" as const, diskDriver: false, ...change };
  const shared = {
    resourceGroup,
    settings,
    manifests: texts,
    apiServer: { name: apiName, port: 6443 },
    machineRecords: new Map(
      Object.entries(runs).map(([name, bootstrapRequestedAt]) => [name, { bootstrapRequestedAt }]),
    ),
  };
  const opts = { provider, transformations: [recorder.watch] };
  const nodeAddOns = new NodeAddOns("node-add-ons", shared, opts);
  const addOns = new AddOns(
    "add-ons",
    {
      ...shared,
      tenantId: "tenant",
      subscriptionId,
      credential: { clientId: pulumi.output("client") },
      workloadIdentities: { clients: {} },
      federation: { isUsed: false },
      certificates: {
        cluster: {
          cert: pulumi.output("a CA"),
          trusted: pulumi.output("all CAs"),
          key: pulumi.secret("its key"),
        },
      },
      initialization: { id: "1-then", exists: given.initialized ?? false },
      diskClasses: diskClasses(settings.zones),
      nodeAddOns,
      kubeconfig: pulumi.secret("k"),
      controlPlaneJoins: [controlPlaneJoin, second, third],
      joins: [controlPlaneJoin, second, third, workerJoin],
    },
    opts,
  );
  return { recorder, controlPlaneJoin, second, third, workerJoin, nodeAddOns, addOns };
}

/** What the rehearsal's plugin has against the objects. */
const refusals = async (recorder: Recorder) => {
  const request = { olds: {}, signal: new AbortController().signal };
  return (await recorder.objects()).flatMap(
    ({ name, type, inputs }) =>
      checked({ ...request, urn: name, type, news: revealed(inputs) }).failures ?? [],
  );
};

/** Of every DaemonSet's containers but kube-proxy's, whose image kubeadm pulls, in the order of their names. */
async function daemonSetImages(recorder: Recorder): Promise<string[]> {
  interface Pod {
    readonly initContainers?: readonly { readonly image?: string }[];
    readonly containers?: readonly { readonly image?: string }[];
  }
  const pods = (await recorder.objects())
    .filter(({ inputs }) => inputs.kind === "DaemonSet" && inputs.metadata.name !== "kube-proxy")
    .map(({ inputs }) => inputs.spec?.template?.spec as Pod | undefined);
  const images = pods.flatMap((pod) => [
    ...(pod?.initContainers ?? []),
    ...(pod?.containers ?? []),
  ]);
  return [...new Set(images.flatMap(({ image = [] }) => image))].sort();
}

const names = async (recorder: Recorder) =>
  (await recorder.objects()).map(({ inputs }) => `${inputs.kind} ${inputs.metadata.name}`);

const weekly = { days: ["tue"], from: "02:00", to: "05:00" } as const;

itWith(
  [...manifests.canal, ...manifests.diskDriver],
  "an image has to have every image of what runs on every machine, whatever the settings",
  async (texts) => {
    const all = { cni: "canal", diskDriver: true, cloudProvider: true, reboots: weekly } as const;
    const scenes: readonly [Partial<typeof validSettings>, number][] = [
      [all, 8],
      [{ ...all, diskDriver: false, reboots: undefined }, 4],
      [{ ...all, cni: "flannel", cloudProvider: false }, 5],
      [without, 0],
    ];
    for (const [settings, count] of scenes) {
      const { recorder } = await build({ settings, manifests: texts });

      const images = await daemonSetImages(recorder);

      expect(images).toHaveLength(count);
      expect(nodeImages({ ...validSettings, ...settings }, texts).sort()).toEqual(images);
    }
  },
);

describe("the add-ons", () => {
  it("are nothing but kube-proxy's configuration, and what says who is down, for those who bring their own", async () => {
    const { recorder } = await build({ settings: without });

    expect((await names(recorder)).sort()).toEqual([
      "ConfigMap kube-proxy",
      expect.stringMatching(/^ConfigMap kube-proxy-\w+$/),
      "ConfigMap zoned-maintenance",
      "DaemonSet kube-proxy",
      "Role zoned-maintenance",
      "RoleBinding zoned-maintenance",
    ]);
  });

  it.each([
    { setting: "cni", leave: { cni: "none" as const }, out: "DaemonSet kube-flannel-ds" },
    {
      setting: "cloudProvider",
      leave: { cloudProvider: false },
      out: "DaemonSet cloud-node-manager",
    },
    {
      setting: "cloudProvider",
      leave: { cloudProvider: false },
      out: "Deployment cloud-controller-manager",
    },
    {
      setting: "cloudProvider",
      leave: { cloudProvider: false },
      out: "Secret azure-cloud-provider",
    },
    {
      setting: "storageClasses",
      leave: { storageClasses: false },
      out: "StorageClass standard-ssd",
    },
  ])("leave out $out by the setting $setting", async ({ leave, out }) => {
    expect(await names((await build({})).recorder)).toContain(out);
    expect(await names((await build({ settings: leave })).recorder)).not.toContain(out);
  });

  itWith(
    manifests.diskDriver,
    "leave out the disk driver by its setting, which needs azure.json too",
    async (texts) => {
      const settings = { ...without, diskDriver: true };

      const objects = await names((await build({ settings, manifests: texts })).recorder);

      expect(objects).toContain("Secret azure-cloud-provider");
      expect(objects).toContain("DaemonSet csi-azuredisk-node");
      expect(await names((await build({ settings: without })).recorder)).not.toContain(
        "DaemonSet csi-azuredisk-node",
      );
    },
  );

  it("are of kinds that the rehearsal's plugin takes, with everything that can be wanted", async () => {
    const settings = { metricsServer: true, cloudProvider: true, reboots: weekly, entra: people };

    expect(await refusals((await build({ settings })).recorder)).toEqual([]);
  });

  itWith(
    [...manifests.canal, ...manifests.diskDriver],
    "let no pod read kubelets' logs, which have their configuration since 1.37, nor reach kubelets through the API",
    async (texts) => {
      const settings = {
        metricsServer: true,
        cloudProvider: true,
        diskDriver: true,
        reboots: weekly,
      };
      const objectsWith = async (cni: "canal" | "flannel") => {
        const { recorder } = await build({ settings: { ...settings, cni }, manifests: texts });
        return (await recorder.objects()).map(({ inputs }) => revealed(inputs));
      };
      const objects = [...(await objectsWith("canal")), ...(await objectsWith("flannel"))];

      const roles = objects.filter(({ kind }) => /^(Cluster)?Role$/.test(kind));
      const granted = roles.flatMap(({ metadata, rules }) =>
        rules.flatMap(({ apiGroups = [], resources = [] }: Record<string, string[]>) =>
          apiGroups.some((one) => ["", "*"].includes(one))
            ? resources.map((resource) => `${metadata.name}: ${resource}`)
            : [],
        ),
      );
      expect(granted).toEqual(
        expect.arrayContaining([
          "calico-node: nodes/status",
          "system:metrics-server: nodes/metrics",
        ]),
      );
      expect(granted.filter((one) => /: (\*|nodes\/\*|.*\/(log|proxy))$/.test(one))).toEqual([]);
      const made = new Set(roles.map(({ metadata }) => metadata.name));
      const others = objects
        .flatMap(({ roleRef }) => roleRef?.name ?? [])
        .filter((name) => !made.has(name));
      expect([...new Set(others)].sort()).toEqual([
        "extension-apiserver-authentication-reader",
        "system:auth-delegator",
      ]);
    },
  );

  itWith(
    [...manifests.canal, ...manifests.diskDriver],
    "let every account that is on all machines write its own Node alone, by a policy that comes first",
    async (texts) => {
      for (const cni of ["canal", "flannel"] as const) {
        const settings = { cloudProvider: true, diskDriver: true, reboots: weekly, cni };
        const { recorder } = await build({ settings, manifests: texts });
        const recorded = await recorder.objects();
        const objects = recorded.map(({ inputs }) => revealed(inputs));

        const policy = await recorder.object("ValidatingAdmissionPolicy", "zoned-own-node");
        const binding = await recorder.object("ValidatingAdmissionPolicyBinding", "zoned-own-node");

        const writers = objects
          .filter(
            ({ kind, rules }) =>
              kind === "ClusterRole" &&
              rules.some(
                ({ resources = [], verbs = [] }: Record<string, string[]>) =>
                  resources.some((one) => /^(\*|nodes(\/status)?)$/.test(one)) &&
                  verbs.some((one) => /^(\*|patch|update)$/.test(one)),
              ),
          )
          .map(({ metadata }) => metadata.name);
        const bound = objects
          .filter(({ roleRef }) => writers.includes(roleRef?.name))
          .flatMap(({ subjects }) => subjects)
          .map(({ namespace, name }) => `${namespace}:${name}`);
        const daemonSets = recorded.filter(
          ({ inputs }) => inputs.kind === "DaemonSet" && inputs.metadata.name !== "kube-proxy",
        );
        const onAll = daemonSets.map(
          ({ inputs: { metadata, spec } }) =>
            `${metadata.namespace}:${spec.template.spec.serviceAccountName}`,
        );
        const accounts = onAll.filter((one) => bound.includes(one)).sort();
        expect(accounts).toHaveLength(4);
        const [{ expression }] = policy.inputs.spec.matchConditions;
        expect(JSON.parse(expression.replace("request.userInfo.username in ", "")).sort()).toEqual(
          accounts.map((one) => `system:serviceaccount:${one}`).sort(),
        );
        const first = daemonSets.filter(({ inputs }) =>
          /^(canal|kube-flannel-ds|cloud-node-manager)$/.test(inputs.metadata.name),
        );
        expect(first).toHaveLength(2);
        for (const one of first) {
          const needed = await dependenciesOf(one);
          const before = await Promise.all(
            recorded
              .filter(({ resource }) => needed.includes(resource!))
              .map((one) => dependenciesOf(one)),
          );
          expect(before.flat()).toContain(binding.resource);
        }
      }
    },
  );

  it("let the groups of admins do everything, and nobody where there are none", async () => {
    const { recorder } = await build({ settings: { entra: people } });
    const nobody = await build({ settings: { entra: { ...people, admins: [] } } });

    const binding = await recorder.object("ClusterRoleBinding", "zoned:login-admins");

    expect(binding.inputs).toMatchObject({
      roleRef: { kind: "ClusterRole", name: "cluster-admin" },
      subjects: people.admins.map((group) => ({ kind: "Group", name: `entra:${group}` })),
    });
    expect(await names(nobody.recorder)).not.toContain("ClusterRoleBinding zoned:login-admins");
  });

  it("have metrics-server where it is wanted, once every kubelet has its certificate", async () => {
    const { recorder, workerJoin } = await build({ settings: { metricsServer: true } });

    const deployment = await recorder.object("Deployment", "metrics-server");

    const [account] = await dependenciesOf(deployment);
    expect(account?.constructor.name).toBe("ServiceAccount");
    const first = await recorder.object("ServiceAccount", "metrics-server");
    expect(first.resource).toBe(account);
    expect(await dependenciesOf(first)).toContain(workerJoin);
    expect(await names((await build({})).recorder)).not.toContain("Deployment metrics-server");
  });

  it("have kured where there is a window for it, once all machines have joined", async () => {
    const { recorder, workerJoin } = await build({ settings: { reboots: weekly } });

    expect(await dependenciesOf(await recorder.object("ServiceAccount", "kured"))).toContain(
      workerJoin,
    );
    expect(await names(recorder)).toContain("DaemonSet kured");
    expect(await names((await build({})).recorder)).not.toContain("DaemonSet kured");
  });

  const controllerWaitsFor = async (initialized: boolean) => {
    const built = await build({ initialized });
    const account = await built.recorder.object("ServiceAccount", "cloud-controller-manager");
    const deployment = await built.recorder.object("Deployment", "cloud-controller-manager");
    expect(await dependenciesOf(deployment)).toContain(account.resource);
    const waited = await dependenciesOf(account);
    const { nodeAddOns, controlPlaneJoin: first, second, third, workerJoin } = built;
    return Object.entries({ nodeAddOns, first, second, third, workerJoin })
      .filter(([, resource]) => waited.includes(resource))
      .map(([name]) => name);
  };

  it("run the cloud controller as soon as there are machines for both of its replicas", async () => {
    expect(await controllerWaitsFor(false)).toEqual(["nodeAddOns", "first", "second"]);
  });

  it("change the cloud controller of a living cluster only when its control planes are whole", async () => {
    expect(await controllerWaitsFor(true)).toEqual(["nodeAddOns", "first", "second", "third"]);
  });
});

describe("kube-proxy", () => {
  const waitsForWorkers = async (change: Change) => {
    const { recorder, workerJoin } = await build(change);
    const configMaps = await recorder.of("kubernetes:core/v1:ConfigMap");
    const configMap = configMaps.find(({ name }) => name.startsWith("kube-proxy"))!;
    return (await dependenciesOf(configMap)).includes(workerJoin);
  };

  it("is configured before others join a new cluster, so that theirs start only once", async () => {
    expect(await waitsForWorkers({ settings: { cni: "none" } })).toBe(false);
  });

  it("changes on a living cluster only after every machine was seen to have the modules", async () => {
    expect(await waitsForWorkers({ settings: { cni: "none" }, initialized: true })).toBe(true);
  });
});

describe("the roll-out", () => {
  const rollOut = async (change: Change) => {
    const built = await build(change);
    const all = await built.recorder.of("pulumi-nodejs:dynamic/zoned:RollOut");
    const found = (of: string) => all.find(({ name }) => name === of)!;
    // kube-proxy's mode is awaited by itself before.
    const targets = all
      .filter(({ name }) => name !== "kube-proxy-roll-out")
      .flatMap(({ inputs }) => inputs.targets) as { kind: string; name: string }[];
    return {
      ...built,
      found: found("roll-out"),
      controllers: found("controllers-roll-out"),
      targets,
    };
  };
  const awaitedFor = async (change: Change) => {
    const { found, controllers } = await rollOut(change);
    return [found, controllers].map(({ inputs }) => inputs.awaitedFor as string);
  };

  it("is awaited at the end, for all that runs in the cluster", async () => {
    const { found, targets, workerJoin } = await rollOut({
      settings: { reboots: weekly },
    });

    expect(targets.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      "DaemonSet kube-flannel-ds",
      "DaemonSet cloud-node-manager",
      "DaemonSet kube-proxy",
      "DaemonSet kured",
      "Deployment cloud-controller-manager",
    ]);
    expect(await dependenciesOf(found)).toContain(workerJoin);
  });

  describe.each([
    { cni: "canal" as const, network: ["calico-kube-controllers", "canal"] },
    { cni: "flannel" as const, network: ["kube-flannel-ds"] },
  ])("of a cluster with $cni", ({ cni, network }) => {
    itWith(
      [...manifests.canal, ...manifests.diskDriver],
      "is the one wait, and has the names of all: the provider would wait for machines that are off, dead or leaving",
      async (texts) => {
        const { recorder, targets, addOns } = await rollOut({
          settings: { cni, diskDriver: true, metricsServer: true, reboots: weekly },
          manifests: texts,
        });

        const workloads = (await recorder.objects()).filter(({ inputs }) =>
          ["DaemonSet", "Deployment"].includes(inputs.kind),
        );

        const controllers = ["csi-azuredisk-controller", "csi-snapshot-controller"];
        const onMachines = ["cloud-node-manager", "csi-azuredisk-node", "kube-proxy", "kured"];
        const all = [...network, ...controllers, ...onMachines];
        const expected = [...all, "cloud-controller-manager", "metrics-server"].sort();
        expect(targets.map(({ name }) => name).sort()).toEqual(expected);
        const applied = workloads.map(({ inputs: { kind, metadata } }) => {
          const { namespace, name } = metadata;
          return { kind, namespace, name };
        });
        expect(targets).toEqual(expect.arrayContaining(applied));
        expect([...addOns.workloads].sort()).toEqual(
          applied.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`).sort(),
        );
        expect(applied).toHaveLength(expected.length);
        for (const { inputs } of workloads) {
          expect(inputs.metadata.annotations).toMatchObject({ "pulumi.com/skipAwait": "true" });
        }
      },
    );
  });

  it("knows the administrator's kubeconfig, as a secret", async () => {
    const { found } = await rollOut({});

    expect(Object.keys(found.inputs.kubeconfig)).toContain("value");
  });

  itWith(manifests.diskDriver, "comes after all that it awaits was applied", async (texts) => {
    const { found, controllers } = await rollOut({
      settings: { diskDriver: true },
      manifests: texts,
    });

    for (const one of [found, controllers]) {
      const waitsFor = (await dependenciesOf(one)).map(({ constructor }) => constructor.name);
      expect(waitsFor).toEqual(expect.arrayContaining(["CloudControllerManager", "DiskDriver"]));
    }
  });

  it("is awaited again for another machine or another specification, and else is not", async () => {
    const first = await awaitedFor({});

    expect(await awaitedFor({ runs: { b: "1", a: "1" } })).toEqual(first);
    for (const change of [
      { apiName: "other.example" },
      { settings: { proxyMode: "nftables" as const } },
      // In azure.json, whose hash pods carry: an output.
      { settings: { tags: { team: "platform" } } },
    ]) {
      expect(await awaitedFor(change)).not.toEqual(first);
    }
  });

  it("does not wait again for Deployments where machines alone change, since one may long have been broken", async () => {
    const [onMachines, controllers] = await awaitedFor({});

    const [onOthers, same] = await awaitedFor({ runs: { a: "1", b: "2" } });

    expect(onOthers).not.toBe(onMachines);
    expect(same).toBe(controllers);
  });
});
