import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { parse, parseAllDocuments, stringify } from "yaml";

import { cipherSuites } from "../../../components/kubeadm/api-server-security";
import { coreDnsPatch } from "../../../components/kubeadm/core-dns";
import { proxyModules } from "../../../components/kubeadm/kube-proxy";
import {
  clusterConfigurationOf,
  configurationOf,
  discoveryKubeconfig,
  kubeadmFiles,
  KubeadmMachine,
  KubeadmSettings,
  roomOf,
} from "../../../components/kubeadm/kubeadm";
import { machinesOf } from "../../../components/settings/topology";
import { minors } from "../../../components/versions";
import { specOf, validSettings } from "../../support/sample";
import { people } from "../../support/settings-cases/entra";
import { everyField } from "../../support/settings-cases/kube-proxy";
import { testFolder } from "../../support/test-folder";
import { built, output, run } from "../../support/tools";

const apiName = "zoned-test-1a2b3c.westeurope.cloudapp.azure.com";

const controlPlane = machinesOf(validSettings)[0]!;
const worker = machinesOf(validSettings).find(({ role }) => role === "worker")!;
const taint = { key: "dedicated", value: "yes", effect: "NoSchedule" as const };

const files = (settings: KubeadmSettings = validSettings, machine: KubeadmMachine = controlPlane) =>
  new Map(kubeadmFiles(specOf(settings), machine).map((file) => [file.path, file]));

const objects = (settings?: KubeadmSettings, machine?: KubeadmMachine) =>
  [...files(settings, machine).values()]
    .filter(({ path }) => /\/kubeadm-.*\.yaml$/.test(path))
    .flatMap(({ content }) => parseAllDocuments(content).map((document) => document.toJS()));

const object = (kind: string, settings?: KubeadmSettings, machine?: KubeadmMachine) =>
  objects(settings, machine).find((one) => one.kind === kind);

const cluster = (change: Partial<typeof validSettings> = {}) =>
  object("ClusterConfiguration", { ...validSettings, ...change });

/** Settings in which an operator has changed this of kubeadm's. */
const withKubeadm = (change: Partial<KubeadmSettings["kubeadm"]>) => ({
  ...validSettings,
  kubeadm: { ...validSettings.kubeadm, ...change },
});

interface Named {
  readonly name: string;
  readonly value: string;
}
const valuesIn = (all: readonly Named[], name: string) =>
  all.filter((one) => one.name === name).map(({ value }) => value);

const extras: KubeadmSettings["kubeadm"] = {
  apiServerExtraArgs: { "goaway-chance": "0", "audit-log-maxage": "7" },
  controllerManagerExtraArgs: { "leader-elect-lease-duration": "120s" },
  schedulerExtraArgs: { "leader-elect-lease-duration": "120s" },
  etcdExtraArgs: { "heartbeat-interval": "500", "unsafe-no-fsync": "true" },
  kubeletExtraArgs: { "node-status-update-frequency": "20s" },
  ignorePreflightErrors: ["NumCPU", "Mem"],
  timeouts: { controlPlaneComponentHealthCheck: "10m0s", etcdAPICall: "15m0s" },
  patches: { "kube-apiserver+strategic.yaml": "metadata:\n  labels: { patched: yes }\n" },
};

describe("the real kubeadm", () => {
  const folder = testFolder();

  const proxies = [
    ["ipvs", "rr"],
    ["ipvs", "mh"],
    ["nftables", ""],
    ["iptables", ""],
  ] as const;
  /** Each value beside each of every other setting, not all with all: kubeadm starts for each file. */
  const variants = (["docker", "cri-dockerd", "containerd"] as const).flatMap(
    (containerRuntime, turn) =>
      proxies.map(([proxyMode, proxyScheduler], index) => ({
        ...validSettings,
        apiExtraSans: ["kubernetes.example.com", "192.0.2.7"],
        containerRuntime,
        kubeadm: (turn + index) % 2 === 0 ? validSettings.kubeadm : extras,
        controlPlaneCount: (turn + (index >> 1)) % 2 === 0 ? 1 : 3,
        proxyMode,
        proxyScheduler,
      })),
  );
  const machines = [
    controlPlane,
    { ...controlPlane, taints: [taint] },
    worker,
    { ...worker, taints: [taint] },
  ];
  const configurations = (kind: string) => [
    ...new Set(
      variants.flatMap((settings) =>
        machines.map(
          (machine) => files(settings, machine).get(`/etc/zoned/kubeadm-${kind}.yaml`)?.content,
        ),
      ),
    ),
  ];

  it.each(["init", "join", "reset", "upgrade"])(
    "accepts every %s configuration that settings can produce",
    (kind) => {
      const discovery = join(folder, "discovery.conf");
      writeFileSync(
        discovery,
        discoveryKubeconfig(apiName, "a certificate", "abcdef.0123456789abcdef"),
      );

      const texts = configurations(kind).filter((text) => text !== undefined);
      expect(texts.length).toBeGreaterThan(1);
      for (const text of texts) {
        const path = join(folder, `${kind}.yaml`);
        writeFileSync(path, text.replace("/etc/zoned/discovery.conf", discovery));
        expect(output(built("kubeadm"), ["config", "validate", "--config", path])).toContain("ok");
      }
    },
  );

  it("knows every field of kube-proxy's configuration that an operator may set", async () => {
    const settings = { ...validSettings, kubeProxy: everyField() };
    const path = join(folder, "kube-proxy.yaml");
    const validate = (text: string) => {
      writeFileSync(path, text);
      return run(built("kubeadm"), ["config", "validate", "--config", path]);
    };
    const text = files(settings).get("/etc/zoned/kubeadm-init.yaml")!.content;

    // kubeadm 1.37 warns of the mode.
    expect(
      (await validate(text)).stderr.replace(/^W.*"ipvs" which has been deprecated.*\n$/, ""),
    ).toBe("");
    expect((await validate(text.replace("oomScoreAdj", "oomScore"))).stderr).toContain("oomScore");
  });

  it.each([
    ["kube-apiserver", "apiServer", "--help", "Usage:"],
    ["kube-controller-manager", "controllerManager", "--help", "Usage:"],
    ["kube-scheduler", "scheduler", "--help", "Usage:"],
    ["etcd", "etcd", "--version", "etcd Version"],
  ])("configures %s with arguments that it knows", (program, part, last, says) => {
    const { local, extraArgs = local.extraArgs } = cluster({ kubeadm: extras })[part];

    const flags = (extraArgs as Named[]).map(({ name, value }) => `--${name}=${value}`);

    expect(flags.length).toBeGreaterThan(1);
    expect(output(built(program), [...flags, last])).toContain(says);
  });
});

describe("a list of the operator's", () => {
  const valuesOf = (component: keyof KubeadmSettings["kubeadm"], name: string, value: string) => {
    const settings = withKubeadm({ [component]: { [name]: value } });
    const { apiServer, controllerManager, etcd } = cluster(settings);
    const lists: Record<string, Named[]> = {
      apiServerExtraArgs: apiServer.extraArgs,
      controllerManagerExtraArgs: controllerManager.extraArgs,
      etcdExtraArgs: etcd.local.extraArgs,
      kubeletExtraArgs: object("InitConfiguration", settings).nodeRegistration.kubeletExtraArgs,
    };
    return valuesIn(lists[component]!, name);
  };
  const issuer = "https://kubernetes.default.svc.cluster.local";

  const [apiServer, manager] = ["apiServerExtraArgs", "controllerManagerExtraArgs"] as const;
  const [etcd, kubelet] = ["etcdExtraArgs", "kubeletExtraArgs"] as const;
  const [admission, metrics] = ["enable-admission-plugins", "listen-metrics-urls"];
  const ours = "NodeRestriction,DenyServiceExternalIPs";
  it.each([
    [apiServer, admission, "AlwaysPullImages", `${ours},AlwaysPullImages`],
    [apiServer, admission, "NodeRestriction", ours],
    [apiServer, "api-audiences", "vault", `${issuer},vault`],
    [apiServer, "kubelet-preferred-address-types", "Hostname", "Hostname,InternalIP,ExternalIP"],
    [apiServer, "requestheader-allowed-names", "mine", "front-proxy-client,mine"],
    [manager, "controllers", "*,-ttl", "*,-ttl,bootstrapsigner,tokencleaner"],
    [manager, "controllers", "-tokencleaner", "-tokencleaner,*,bootstrapsigner"],
    [etcd, "feature-gates", "A=true", "InitialCorruptCheck=true,A=true"],
    [etcd, "feature-gates", "InitialCorruptCheck=false", "InitialCorruptCheck=false"],
    [etcd, metrics, "http://172.16.1.4:2381", "http://127.0.0.1:2381,http://172.16.1.4:2381"],
    [etcd, metrics, "http://0.0.0.0:2381", "http://0.0.0.0:2381"],
    [kubelet, "system-reserved", "cpu=100m", "memory=256Mi,cpu=100m"],
    [kubelet, "system-reserved", "memory=1Gi", "memory=1Gi"],
    // It says what may be at most.
    [apiServer, "tls-cipher-suites", cipherSuites[1]!, cipherSuites[1]!],
  ] as const)(
    "is merged with what the cluster needs: %s %s %s",
    (component, name, value, merged) => {
      expect(valuesOf(component, name, value)).toEqual([merged]);
    },
  );

  it.each([
    ["as they are planned, whatever value an operator has set", ["https://a.example", issuer], []],
    [
      "and where the keys of the first one are, if this program publishes them",
      ["https://oidc.example/issuer", issuer],
      ["https://oidc.example/issuer/openid/v1/jwks"],
    ],
  ] as const)("API servers are told the issuers of tokens %s", (_, tokenIssuers, keys) => {
    const extra = { "service-account-issuer": "https://b.example" };
    const [init] = kubeadmFiles(
      specOf(withKubeadm({ apiServerExtraArgs: extra }), { tokenIssuers }),
      controlPlane,
    ).filter(({ path }) => path.endsWith("/kubeadm-init.yaml"));
    const flags: Named[] = parseAllDocuments(init!.content)
      .map((document) => document.toJS())
      .find(({ kind }) => kind === "ClusterConfiguration").apiServer.extraArgs;

    expect(valuesIn(flags, "service-account-issuer")).toEqual(tokenIssuers);
    expect(valuesIn(flags, "service-account-jwks-uri")).toEqual(keys);
  });

  const argumentOf = (name: string, settings: Partial<typeof validSettings>) =>
    valuesIn(cluster(settings).apiServer.extraArgs, name)[0];

  it("denies external IPs of Services, by which pods could take what machines send to Azure, unless an operator allows them", () => {
    const plugins = (apiServerExtraArgs: Record<string, string>) =>
      argumentOf("enable-admission-plugins", withKubeadm({ apiServerExtraArgs }));
    const off = { "disable-admission-plugins": "DenyServiceExternalIPs,PodSecurity" };

    expect(plugins({})).toBe("NodeRestriction,DenyServiceExternalIPs");
    expect(plugins(off)).toBe("NodeRestriction");
    expect(plugins({ ...off, "enable-admission-plugins": "AlwaysPullImages" })).toBe(
      "NodeRestriction,AlwaysPullImages",
    );
  });

  it.each([
    ["docker" as const, {}, undefined],
    ["cri-dockerd" as const, {}, "ExtendWebSocketsToKubelet=false"],
    [
      "cri-dockerd" as const,
      { "feature-gates": "A=true" },
      "ExtendWebSocketsToKubelet=false,A=true",
    ],
    [
      "cri-dockerd" as const,
      { "feature-gates": "ExtendWebSocketsToKubelet=true" },
      "ExtendWebSocketsToKubelet=true",
    ],
  ])(
    "keeps kubectl exec with %s, and an operator's gates: %j",
    (containerRuntime, apiServerExtraArgs, gates) => {
      const settings = { ...withKubeadm({ apiServerExtraArgs }), containerRuntime };
      expect(argumentOf("feature-gates", settings)).toBe(gates);
    },
  );
});

it("gives the API its name, and no address, in endpoint and certificate", () => {
  const { controlPlaneEndpoint, apiServer } = cluster({ apiExtraSans: ["kubernetes.example.com"] });

  expect(controlPlaneEndpoint).toBe(`${apiName}:6443`);
  expect(apiServer.certSANs).toEqual([apiName, "kubernetes.example.com"]);
});

it("tells a kubelet how many pods its machine takes where its pool says so, and no other", () => {
  const flagsOf = (machine: KubeadmMachine) =>
    object("JoinConfiguration", validSettings, machine).nodeRegistration.kubeletExtraArgs;

  expect(flagsOf({ ...worker, maxPods: 30 })).toContainEqual({ name: "max-pods", value: "30" });
  expect(flagsOf(worker)).not.toContainEqual(expect.objectContaining({ name: "max-pods" }));
});

it.each<[string, boolean, Partial<KubeadmSettings["kubeadm"]>, number?]>([
  ["another number of pods", true, {}, 30],
  ["other reservations", true, { kubeletExtraArgs: { "system-reserved": "cpu=200m" } }],
  ["processors of their own", true, { kubeletExtraArgs: { "cpu-manager-policy": "static" } }],
  ["fewer sysctls", true, { kubeletExtraArgs: { "allowed-unsafe-sysctls": "net.core.somaxconn" } }],
  [
    "less for pods by what it evicts them for",
    true,
    { kubeletExtraArgs: { "experimental-allocatable-ignore-eviction": "true" } },
  ],
  ["a patch of its configuration", true, { patches: { "kubeletconfiguration.json": "{}" } }],
  ["another patch", false, { patches: { "etcd.json": "{}" } }],
  ["more of its log", false, { kubeletExtraArgs: { v: "4" } }],
])("has a kubelet with %s start with its pods gone: %s", (_, isOther, kubeadm, maxPods = 110) => {
  const before = roomOf(validSettings, 110);

  const after = roomOf(withKubeadm(kubeadm), maxPods);

  expect(after !== before).toBe(isOther);
});

it("leaves nodes to the external cloud provider and gives each its own address", () => {
  for (const kind of ["InitConfiguration", "JoinConfiguration"]) {
    expect(object(kind).nodeRegistration).toMatchObject({
      name: controlPlane.name,
      kubeletExtraArgs: [
        { name: "cloud-provider", value: "external" },
        { name: "node-ip", value: controlPlane.address },
      ],
    });
  }
  expect(cluster().controllerManager.extraArgs).toContainEqual({
    name: "cloud-provider",
    value: "external",
  });
});

it("lets control planes take pods by an empty list of taints, not by a list left out", () => {
  expect(object("InitConfiguration").nodeRegistration.taints).toEqual([]);
  expect(object("JoinConfiguration").nodeRegistration.taints).toEqual([]);
});

it("taints a node as its machine's plan says", () => {
  const { nodeRegistration } = object("JoinConfiguration", validSettings, {
    ...worker,
    taints: [taint],
  });

  expect(nodeRegistration.taints).toEqual([taint]);
});

it("joins only control planes as control planes", () => {
  expect(object("JoinConfiguration").controlPlane.localAPIEndpoint.advertiseAddress).toBe(
    controlPlane.address,
  );
  expect(object("JoinConfiguration", validSettings, worker)).not.toHaveProperty("controlPlane");
});

it("gives no worker the configuration to initialize a cluster with", () => {
  expect(files(validSettings, worker).has("/etc/zoned/kubeadm-init.yaml")).toBe(false);
});

it("lets the token that kubeadm insists on making end at once", () => {
  expect(object("InitConfiguration").bootstrapTokens).toEqual([
    expect.objectContaining({ ttl: "1m0s" }),
  ]);
});

it.each([
  { containerRuntime: "docker" as const, socket: "unix:///run/containerd/containerd.sock" },
  { containerRuntime: "containerd" as const, socket: "unix:///run/containerd/containerd.sock" },
  { containerRuntime: "cri-dockerd" as const, socket: "unix:///run/cri-dockerd.sock" },
])("names the kubelet's socket under $containerRuntime", ({ containerRuntime, socket }) => {
  const settings = { ...validSettings, containerRuntime };

  expect(object("InitConfiguration", settings).nodeRegistration.criSocket).toBe(socket);
  expect(object("JoinConfiguration", settings).nodeRegistration.criSocket).toBe(socket);
  expect(object("ResetConfiguration", settings).criSocket).toBe(socket);
});

it.each([
  { mode: "ipvs" as const, scheduler: "wlc", modules: ["ip_vs", "ip_vs_wlc", "nf_conntrack"] },
  { mode: "nftables" as const, scheduler: "rr", modules: ["nf_tables", "nf_conntrack"] },
  { mode: "iptables" as const, scheduler: "rr", modules: ["nf_conntrack"] },
])("sets kube-proxy to $mode and has its modules loaded", ({ mode, scheduler, modules }) => {
  const settings = { ...validSettings, proxyMode: mode, proxyScheduler: scheduler };

  expect(object("KubeProxyConfiguration", settings)).toMatchObject({
    mode,
    clusterCIDR: validSettings.podCidr,
    ...(mode === "ipvs" && { ipvs: { scheduler } }),
  });
  expect(proxyModules(settings)).toEqual(modules);
});

it("names etcd's version where kubeadm's own is too old for the next minor, and elsewhere leaves it to kubeadm", () => {
  const tagOf = (minor: string | undefined) =>
    cluster({ kubernetesVersion: `${minor}.0` }).etcd.local.imageTag;

  expect(tagOf("1.36")).toMatch(/^3\.6\.(1[1-9]|[2-9]\d)-\d+$/);
  expect(tagOf(minors.find(({ minor }) => minor !== "1.36")?.minor)).toBeUndefined();
});

it("gives Services and pods the ranges of the settings", () => {
  const settings = { ...validSettings, podCidr: "10.8.0.0/14", serviceCidr: "10.32.0.0/16" };

  expect(object("ClusterConfiguration", settings).networking).toEqual({
    podSubnet: "10.8.0.0/14",
    serviceSubnet: "10.32.0.0/16",
  });
});

it("has kubelets prove themselves by the cluster's CA, and API servers verify it", () => {
  const { tlsCertFile, tlsPrivateKeyFile } = object("KubeletConfiguration");
  expect([tlsCertFile, tlsPrivateKeyFile]).toEqual([
    "/var/lib/kubelet/pki/serving.crt",
    "/var/lib/kubelet/pki/serving.key",
  ]);
  const argument = {
    name: "kubelet-certificate-authority",
    value: "/etc/kubernetes/pki/ca.crt",
  };
  expect(cluster().apiServer.extraArgs).toContainEqual(argument);
});

it.each([
  ["run with systemd's cgroups", { cgroupDriver: "systemd" }],
  ["run also where only version 1 of these is", { failCgroupV1: false }],
  ["renew their certificates, which end after a year", { rotateCertificates: true }],
  ["confine pods", { seccompDefault: true }],
  [
    // Ubuntu's own drop-in for logind grants no more than 30 s.
    "end pods in order",
    { shutdownGracePeriod: "30s", shutdownGracePeriodCriticalPods: "10s" },
  ],
  ["keep memory for the machine", { systemReserved: { memory: "256Mi" } }],
  ["agree on the API server's suites", { tlsCipherSuites: [...cipherSuites] }],
])("has kubelets that %s", (_, expected) => {
  expect(object("KubeletConfiguration")).toMatchObject(expected);
});

it("has kubeadm make keys of the one algorithm, and shows nobody profiles", () => {
  expect(cluster().encryptionAlgorithm).toBe("RSA-2048");
  for (const part of ["apiServer", "controllerManager", "scheduler"]) {
    expect(cluster()[part].extraArgs).toContainEqual({ name: "profiling", value: "false" });
  }
});

it("gives each component its own arguments", () => {
  const { apiServer, controllerManager, scheduler, etcd } = cluster(
    withKubeadm({
      apiServerExtraArgs: { mine: "API server" },
      controllerManagerExtraArgs: { mine: "manager" },
      schedulerExtraArgs: { mine: "scheduler" },
      etcdExtraArgs: { mine: "etcd" },
    }),
  );

  expect(
    [apiServer, controllerManager, scheduler, etcd.local].map(({ extraArgs }) =>
      valuesIn(extraArgs, "mine"),
    ),
  ).toEqual([["API server"], ["manager"], ["scheduler"], ["etcd"]]);
});

it.each(["all", "All"])("names no check beside %s, which kubeadm refuses", (all) => {
  const kubeadm = { ...extras, ignorePreflightErrors: [all] };
  const { apply, node } = object("UpgradeConfiguration", { ...validSettings, kubeadm });

  expect([apply, node].map((one) => one.ignorePreflightErrors)).toEqual([[all], [all]]);
});

it("upgrades members without a Job, and leaves kube-proxy as this program has patched it", () => {
  const kubeadm = { ...extras, ignorePreflightErrors: ["Mem"] };
  const { apply, node, timeouts } = object("UpgradeConfiguration", { ...validSettings, kubeadm });
  const both = {
    ignorePreflightErrors: ["CreateJob", "Mem"],
    skipPhases: ["addon/kube-proxy"],
    patches: { directory: "/etc/zoned/patches" },
  };

  expect(apply).toEqual({ kubernetesVersion: `v${validSettings.kubernetesVersion}`, ...both });
  expect(node).toEqual(both);
  expect(timeouts).toEqual(extras.timeouts);
});

it("resets a machine without a question", () => {
  expect(object("ResetConfiguration").force).toBe(true);
});

it("patches CoreDNS by control planes alone, unless the operator patches it", () => {
  const name = "corednsdeployment+strategic.yaml";
  const patchOf = (...args: Parameters<typeof files>) =>
    files(...args).get(`/etc/zoned/patches/${name}`)?.content;

  expect(patchOf()).toContain("topologySpreadConstraints");
  expect(patchOf(validSettings, worker)).toBeUndefined();
  expect(patchOf(withKubeadm({ patches: { [name]: "spec: {}" } }))).toBe("spec: {}");
});

describe("the hash over what a member is configured with", () => {
  const of = (machine: KubeadmMachine, change: Partial<typeof validSettings> = {}) =>
    configurationOf(specOf({ ...validSettings, ...change }), machine);
  const changes: [string, Partial<typeof validSettings>, "all" | "control planes"][] = [
    ["version", { kubernetesVersion: "1.36.99" }, "all"],
    ["runtime", { containerRuntime: "cri-dockerd" }, "all"],
    ["patch", withKubeadm({ patches: extras.patches }), "all"],
    ["argument of kubelets", withKubeadm({ kubeletExtraArgs: { v: "3" } }), "all"],
    ["argument of etcd", withKubeadm({ etcdExtraArgs: { v: "3" } }), "control planes"],
    ["name of the API", { apiExtraSans: ["kubernetes.example.com"] }, "control planes"],
    ["issuer of people's tokens", { entra: people }, "control planes"],
    ["range of Services", { serviceCidr: "10.32.0.0/16" }, "control planes"],
  ];

  it.each(changes)("is another one with another %s", (_, change, whose) => {
    expect(of(controlPlane, change)).not.toBe(of(controlPlane));
    if (whose === "all") expect(of(worker, change)).not.toBe(of(worker));
    else expect(of(worker, change)).toBe(of(worker));
  });

  it("stays when what changes reaches no living member: its taints, kube-proxy's mode, an add-on", () => {
    expect(of({ ...worker, taints: [taint] })).toBe(of(worker));
    for (const change of [
      { proxyMode: "nftables" },
      { cni: "flannel" },
      { diskDriver: false },
    ] as const) {
      expect(of(controlPlane, change)).toBe(of(controlPlane));
    }
  });

  it("is the cluster's alone in the part that the first control plane gives to the others", () => {
    const whole = (change: Partial<typeof validSettings> = {}) =>
      clusterConfigurationOf(specOf({ ...validSettings, ...change }));

    expect(whole({ apiExtraSans: ["kubernetes.example.com"] })).not.toBe(whole());
    expect(whole(withKubeadm({ kubeletExtraArgs: { v: "3" } }))).toBe(whole());
  });
});

describe("the proxy of API servers", () => {
  const proxy = "http://proxy.example:3128";
  const httpProxy = { http: proxy, https: proxy, noProxy: [".example.com"], ca: "" };
  const variables = (change: Partial<typeof validSettings>) => cluster(change).apiServer.extraEnvs;

  it("is the one of machines, where people's issuer is asked by it", () => {
    expect(variables({ entra: people, httpProxy })).toEqual([
      { name: "HTTPS_PROXY", value: proxy },
      {
        name: "NO_PROXY",
        value: expect.stringMatching(/172\.16\.0\.0\/16.*\.svc.*\.example\.com/),
      },
    ]);
  });

  it("starts them anew for another CA of its own, unless the issuer has one", () => {
    const certificate = (ca: string, issuerCa = "") =>
      variables({ entra: { ...people, ca: issuerCa }, httpProxy: { ...httpProxy, ca } }).slice(2);
    const [one, other] = [certificate("one"), certificate("other")];

    expect(one).toEqual([{ name: "ZONED_PROXY_CA", value: expect.stringMatching(/^\w{16}$/) }]);
    expect(other).not.toEqual(one);
    expect(certificate("one", "the issuer's")).toEqual([]);
    expect(certificate("")).toEqual([]);
  });

  it.each<[string, Partial<typeof validSettings>]>([
    ["nobody's tokens are admitted", { httpProxy }],
    ["machines have none", { entra: people }],
    ["theirs is for http alone", { entra: people, httpProxy: { ...httpProxy, https: "" } }],
    [
      "the issuer is reached without it",
      { entra: people, httpProxy: { ...httpProxy, noProxy: [".microsoftonline.com"] } },
    ],
  ])("is none where %s", (_, change) => {
    expect(variables(change)).toBeUndefined();
  });
});

it("has clients of several API servers come back to another one now and then", () => {
  const argumentsOf = (controlPlaneCount: number) =>
    cluster({ controlPlaneCount }).apiServer.extraArgs;

  expect(argumentsOf(3)).toContainEqual({ name: "goaway-chance", value: "0.001" });
  expect(argumentsOf(1)).not.toContainEqual(expect.objectContaining({ name: "goaway-chance" }));
});

it("lets the operator's arguments replace this program's, each in its place", () => {
  const { apiServer, etcd } = cluster({ kubeadm: extras });
  const flags = ["profiling", "goaway-chance", "audit-log-maxage"];

  expect(flags.map((flag) => valuesIn(apiServer.extraArgs, flag))).toEqual([
    ...[["false"], ["0"], ["7"]],
  ]);
  expect(etcd.local.extraArgs).toEqual([
    // 8 GiB, the most that etcd's makers advise.
    { name: "quota-backend-bytes", value: "8589934592" },
    { name: "heartbeat-interval", value: "500" },
    { name: "unsafe-no-fsync", value: "true" },
  ]);
});

it("encrypts Secrets, unless the operator has a configuration of their own for that", () => {
  const own = { "encryption-provider-config": "/etc/kubernetes/pki/kms.yaml" };
  const of = (apiServerExtraArgs: Record<string, string>) => {
    const { extraArgs, extraVolumes } = cluster(withKubeadm({ apiServerExtraArgs })).apiServer;
    return {
      flags: extraArgs.filter(({ name }: { name: string }) => name.startsWith("encryption")),
      volume: extraVolumes.some(({ name }: { name: string }) => name === "zoned-encryption"),
    };
  };

  expect(of({})).toEqual({
    flags: [
      { name: "encryption-provider-config", value: "/etc/zoned/encryption/secrets.yaml" },
      { name: "encryption-provider-config-automatic-reload", value: "true" },
    ],
    volume: true,
  });
  expect(of(own)).toEqual({
    flags: [{ name: "encryption-provider-config", value: "/etc/kubernetes/pki/kms.yaml" }],
    volume: false,
  });
});

it("configures control planes anew for other keys of Secrets, without touching what the cluster shares", () => {
  const of = (machine: KubeadmMachine, keys: number[]) =>
    configurationOf(
      specOf(validSettings, { encryptionKeys: { keys, rewritten: true, past: [] } }),
      machine,
    );

  expect(of(controlPlane, [1, 2])).not.toBe(of(controlPlane, [1]));
  expect(of(controlPlane, [2, 1])).not.toBe(of(controlPlane, [1, 2]));
  expect(of(worker, [1, 2])).toBe(of(worker, [1]));
});

it.each(["InitConfiguration", "JoinConfiguration"])(
  "passes time-outs and patches on in %s",
  (kind) => {
    const settings = { ...validSettings, kubeadm: extras };

    expect(object(kind, settings)).toMatchObject({
      timeouts: extras.timeouts,
      patches: { directory: "/etc/zoned/patches" },
    });
    expect(
      files(settings).get("/etc/zoned/patches/kube-apiserver+strategic.yaml")?.content,
    ).toContain("patched");
  },
);

it.each(["InitConfiguration", "JoinConfiguration"])(
  "leaves kubeadm's checks as they are in %s, but for those that are to be ignored",
  (kind) => {
    const ignored = (kubeadm: KubeadmSettings["kubeadm"]) =>
      object(kind, { ...validSettings, kubeadm }).nodeRegistration.ignorePreflightErrors;

    expect(ignored(validSettings.kubeadm)).toBeUndefined();
    expect(ignored(extras)).toEqual(["Mem", "NumCPU"]);
  },
);

it("renders the same bytes whatever order the settings come in", () => {
  const reversed = (values: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(values).reverse());
  const shuffled = Object.fromEntries(
    Object.entries(extras).map(([key, values]) => [
      key,
      Array.isArray(values) ? [...values].reverse() : reversed(values),
    ]),
  ) as unknown as typeof extras;

  expect([...files({ ...validSettings, kubeadm: shuffled })]).toEqual([
    ...files({ ...validSettings, kubeadm: extras }),
  ]);
});

it("shows no file of its own to other users of the machine", () => {
  expect([...new Set([...files().values()].map(({ mode }) => mode))]).toEqual(["0600"]);
});

it("tells a worker where the API is, whom to trust, and its own token", () => {
  const kubeconfig = parse(
    discoveryKubeconfig(apiName, "a certificate", "abcdef.0123456789abcdef"),
  );

  expect(kubeconfig.clusters[0].cluster.server).toBe(`https://${apiName}:6443`);
  expect(atob(kubeconfig.clusters[0].cluster["certificate-authority-data"])).toBe("a certificate");
  expect(kubeconfig.users[0].user).toEqual({ token: "abcdef.0123456789abcdef" });
});

describe("CoreDNS", () => {
  const pool = { ...validSettings.workerPools[0]!, taints: [], zones: ["1"], count: 1 };
  const constraints = (settings: Partial<typeof validSettings>) => {
    const patch = coreDnsPatch({
      ...validSettings,
      controlPlaneCount: 1,
      schedulableControlPlanes: false,
      workerPools: [pool],
      ...settings,
    });
    const { topologySpreadConstraints = [] } =
      patch === undefined ? {} : parse(patch).spec.template.spec;
    return topologySpreadConstraints as { topologyKey: string; minDomains: number }[];
  };
  const spread = (settings: Partial<typeof validSettings>) =>
    constraints(settings).map(({ topologyKey, minDomains }) => `${minDomains} ${topologyKey}`);
  const zones = "2 topology.kubernetes.io/zone";
  const hosts = "2 kubernetes.io/hostname";

  it("runs in two zones where control planes or workers are in several", () => {
    expect(spread({ controlPlaneCount: 3 })).toEqual([zones, hosts]);
    expect(spread({ workerPools: [{ ...pool, count: 2, zones: ["1", "2"] }] })).toEqual([
      zones,
      hosts,
    ]);
  });

  it("has each pod of a revision wait for a zone that has none, among those that it may run in", () => {
    const each = expect.objectContaining({
      maxSkew: 1,
      whenUnsatisfiable: "DoNotSchedule",
      nodeTaintsPolicy: "Honor",
      labelSelector: { matchLabels: { "k8s-app": "kube-dns" } },
      matchLabelKeys: ["pod-template-hash"],
    });
    expect(constraints({ controlPlaneCount: 3 })).toEqual([each, each]);
  });

  it("runs on two machines where all are in one zone", () => {
    expect(spread({ zones: ["1"] })).toEqual([hosts]);
  });

  it("counts machines whose taint only puts pods off", () => {
    const taints = [{ key: "spot", value: "yes", effect: "PreferNoSchedule" as const }];
    expect(spread({ workerPools: [{ ...pool, taints }] })).toEqual([hosts]);
  });

  it("counts machines that are kept for what the cluster itself needs", () => {
    const taints = [{ key: "CriticalAddonsOnly", effect: "NoSchedule" as const }];
    expect(spread({ workerPools: [{ ...pool, taints, zones: ["2"] }] })).toEqual([zones, hosts]);
  });

  it("waits for no second machine where there is none that it may run on", () => {
    const taints = [{ key: "dedicated", value: "yes", effect: "NoSchedule" as const }];
    expect(spread({ workerPools: [] })).toEqual([]);
    expect(spread({ workerPools: [{ ...pool, taints }] })).toEqual([]);
  });
});

describe("the start of a kubelet", () => {
  /** Files as the real kubeadm writes them for a kubelet, by their names, and what it said. */
  function startKubelet(
    machine: KubeadmMachine,
    holdsKey: boolean,
    patches: Readonly<Record<string, string>> = {},
  ): Record<string, string> {
    const folder = testFolder();
    const [pki, config, dry] = [join(folder, "pki"), join(folder, "it.yaml"), join(folder, "dry")];
    const path = "/etc/zoned/kubeadm-kubelet.yaml";
    const version = `v${validSettings.kubernetesVersion}`;
    const make = ["init", "phase", "certs", "ca", "--kubernetes-version", version];
    output(built("kubeadm"), [...make, "--cert-dir", pki]);
    if (!holdsKey) rmSync(join(pki, "ca.key"));
    mkdirSync(dry);
    mkdirSync(join(folder, "patches"));
    for (const [name, text] of Object.entries(patches))
      writeFileSync(join(folder, "patches", name), text);
    const rendered = kubeadmFiles(specOf(), machine).find((file) => file.path === path);
    const documents = parseAllDocuments(rendered!.content).map(
      (document) => document.toJS() as Record<string, unknown>,
    );
    // Where the file names no folder of certificates, it is the machine's own.
    const here = documents.map((one) =>
      one["kind"] === "ClusterConfiguration" ? { certificatesDir: pki, ...one } : one,
    );
    const text = here.map((one) => stringify(one)).join("---\n");
    writeFileSync(config, text.replace("/etc/zoned/patches", join(folder, "patches")));
    const command = [built("kubeadm"), "init", "phase", "kubelet-start", "--dry-run"];
    output("env", [`KUBEADM_INIT_DRYRUN_DIR=${dry}`, ...command, "--config", config]);
    return Object.fromEntries(
      ["config.yaml", "kubeadm-flags.env"].map((name) => [
        name,
        readFileSync(join(dry, name), "utf8").replaceAll(pki, "/etc/kubernetes/pki"),
      ]),
    );
  }

  it("a worker's kubelet reserves what the operator's patch says, before what its bootstrap step calculates", () => {
    const calculated = '{"kubeReserved": {"cpu": "100m", "memory": "2250Mi"}}';
    const reservedOf = (patches: Record<string, string>) =>
      parse(startKubelet(worker, false, patches)["config.yaml"]!).kubeReserved;
    const ours = { "kubeletconfiguration!reserved.json": calculated };

    expect(reservedOf(ours)).toEqual({ cpu: "100m", memory: "2250Mi" });
    for (const name of ["kubeletconfiguration+merge.yaml", "kubeletconfiguration0.yaml"])
      expect(reservedOf({ ...ours, [name]: "kubeReserved: {memory: 1Gi}" })).toEqual({
        cpu: "100m",
        memory: "1Gi",
      });
  });

  it.each([
    ["a worker's, which has the CA without its key", worker, false],
    ["a control plane's", controlPlane, true],
  ])("%s kubelet is configured anew by the real kubeadm", (_, machine, holdsKey) => {
    const written = startKubelet(machine, holdsKey);

    expect(parse(written["config.yaml"]!)).toMatchObject({
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: "/etc/kubernetes/pki/ca.crt" },
      },
      rotateCertificates: true,
    });
    expect(written["kubeadm-flags.env"]).toContain(`--node-ip=${machine.address}`);
  });
});
