import { meant } from "../problem";
import type { Component, Settings } from "../settings";
import { entriesOf, goBoolean, goDuration, goNumber, pairOf } from "./argument-types";
import { type KnownArguments, programs } from "./known-arguments";

/** What a value is checked with. */
interface Given {
  readonly component: Component;
  readonly name: string;
  readonly cni: Settings["cni"];
  readonly known: KnownArguments;
  /** All arguments of the component, the operator's only. */
  readonly extra: Readonly<Record<string, string>>;
}

/** What was expected where the program ends at once with a value. */
type Check = (value: string, given: Given) => string | undefined;

const unknown = (
  program: string,
  names: readonly string[],
  known: readonly string[],
  what: string,
): string | undefined => {
  const wrong = names.filter((name) => !known.includes(name));
  if (wrong.length === 0) return undefined;
  const better = wrong.map((name) =>
    [`${name} is none`, meant(name, known)].filter((words) => words !== "").join(", "),
  );
  return `${what} of this ${program}: ${better.join("; ")}`;
};

/** A list whose entries the program knows. */
const listOf =
  (values: string, what: string): Check =>
  (value, given) =>
    unknown(programs[given.component], entriesOf(value), given.known.values[values] ?? [], what);

const oneOf =
  (...known: string[]): Check =>
  (value) =>
    known.includes(value) ? undefined : `one of ${known.filter(Boolean).join(", ")}`;

const between =
  (least: number, most: number): Check =>
  (value) =>
    goNumber(value) >= least && goNumber(value) <= most
      ? undefined
      : most === Infinity
        ? `a number from ${least}`
        : `a number from ${least} to ${most}`;

const fromZero = between(0, Infinity);

/** Of every machine: a control plane's kubelet reserves no CPU else. */
const reservesCpu = (extra: Given["extra"]): boolean =>
  extra["reserved-cpus"] !== undefined || reserves("cpu", extra["system-reserved"]);

const reserves = (resource: string, value = ""): boolean =>
  entriesOf(value).some((pair) => pairOf(pair)[0] === resource);

const notNegative: Check = (value) =>
  goDuration(value)! >= 0 ? undefined : "a duration that is not negative";

const positive: Check = (value) =>
  goDuration(value)! > 0 ? undefined : "a duration longer than 0";

/** What was expected of gates, each as in a=true, where the program ends at once with them. */
export function wrongGates(
  value: string,
  { featureGates: known, dependencies, flags }: KnownArguments,
  program: string,
): string | undefined {
  // Programs with versions to emulate say whose gate it is, and of those here all are kube's.
  const isOfAPart = flags["feature-gates"] === "colonSeparatedMultimapStringString";
  const gates = entriesOf(value).map((pair) => {
    const [name, is] = pairOf(pair);
    return [isOfAPart ? name.replace(/^kube:/, "") : name, is] as const;
  });
  const none = unknown(
    program,
    gates.map(([name]) => name),
    Object.keys(known),
    "feature gates",
  );
  if (none !== undefined) return none;
  const bare = gates.filter(([, is]) => is === undefined || goBoolean(is) === undefined);
  if (bare.length > 0) return `true or false for ${bare.map(([name]) => name).join(", ")}`;
  const wanted = new Map(gates.map(([name, is]) => [name, goBoolean(is!)!]));
  const isOn = (name: string): boolean => wanted.get(name) ?? known[name]?.split(" ")[1] === "true";
  const fixed = [...wanted].filter(([name, on]) => {
    const [stage, is, locked] = known[name]!.split(" ");
    return stage === "PRE-ALPHA" || (locked !== undefined && String(on) !== is);
  });
  if (fixed.length > 0) {
    const words = fixed.map(([name]) => `${name}, which can only be ${known[name]!.split(" ")[1]}`);
    return `gates that can be changed, without ${words.join("; ")}`;
  }
  // All alpha or beta gates at once bring along what they depend on.
  if (wanted.has("AllAlpha") || wanted.has("AllBeta")) return undefined;
  const lacking = Object.entries(dependencies).flatMap(([name, needed]) => {
    const off = needed.filter((one) => !isOn(one));
    return isOn(name) && off.length > 0 ? [`${off.join(", ")} on for ${name}`] : [];
  });
  return lacking.length > 0 ? lacking.join("; ") : undefined;
}

const featureGates: Check = (value, { known, component }) =>
  wrongGates(value, known, programs[component]);

const authorizationModes: Check = (value, given) => {
  const modes = entriesOf(value);
  const files = { ABAC: "authorization-policy-file", Webhook: "authorization-webhook-config-file" };
  const missing = Object.entries(files).filter(
    ([mode, file]) => modes.includes(mode) && !given.extra[file],
  );
  return (
    listOf("authorization-mode", "authorization modes")(value, given) ??
    (new Set(modes).size < modes.length ? "each mode once" : undefined) ??
    (missing.length > 0
      ? missing.map(([mode, file]) => `${file} too for ${mode}`).join("; ")
      : undefined)
  );
};

const withMode =
  (mode: string): Check =>
  (_, { extra }) =>
    entriesOf(extra["authorization-mode"] ?? "").includes(mode)
      ? undefined
      : `${mode} in authorization-mode, without which the API server does not start`;

/** They want a file of their own, and end the API server where the one of this program is read. */
const configured = ["EventRateLimit", "ImagePolicyWebhook"];

const enabledPlugins: Check = (value, given) => {
  const plugins = entriesOf(value);
  const off = entriesOf(given.extra["disable-admission-plugins"] ?? "");
  const both = plugins.filter((plugin) => off.includes(plugin));
  const bare = plugins.filter((plugin) => configured.includes(plugin));
  return (
    listOf("admission-plugins", "admission plugins")(value, given) ??
    (both.length > 0 ? `${both.join(", ")} not in disable-admission-plugins too` : undefined) ??
    (bare.length > 0 && given.extra["admission-control-config-file"] === undefined
      ? `admission-control-config-file too, with the configuration that ${bare.join(", ")} wants`
      : undefined)
  );
};

const runtimeConfig: Check = (value, given) => {
  const known = given.known.values["runtime-config"] ?? [];
  const pairs = entriesOf(value).map((pair) => pair.split("=").map((part) => part.trim()));
  const versions = pairs
    .map(([api = ""]) => api.split("/").slice(0, 2).join("/"))
    .filter((api) => !["api/all", "api/ga", "api/beta", "api/alpha", "api/legacy"].includes(api));
  const bare = pairs.filter(([, is]) => is !== undefined && goBoolean(is) === undefined);
  return (
    unknown(programs[given.component], versions, known, "APIs") ??
    (bare.length > 0 ? `true or false for ${bare.map(([api]) => api).join(", ")}` : undefined)
  );
};

const controllers: Check = (value, given) =>
  unknown(
    programs[given.component],
    entriesOf(value)
      .filter((name) => name !== "*")
      .map((name) => name.replace(/^-/, "")),
    given.known.values["controllers"] ?? [],
    "controllers",
  );

/** Names that the kubelet may give its own Node: all but most of Kubernetes' own. */
const nodeLabels: Check = (value, given) => {
  const known = given.known.values["node-labels"] ?? [];
  const isLabel = (text: string): boolean => /^([A-Za-z\d]([\w.-]{0,61}[A-Za-z\d])?)$/.test(text);
  const problems = entriesOf(value).flatMap((pair) => {
    const [name = "", is = ""] = pair.split(/=(.*)/s).map((part) => part.trim());
    const [domain, bare = ""] = name.includes("/") ? name.split(/\/(.*)/s) : ["", name];
    const isOfKubernetes = /(^|\.)(kubernetes|k8s)\.io$/.test(domain!);
    const mayBe = known.some(
      (one) => one === name || domain === one || domain!.endsWith(`.${one}`),
    );
    if (isOfKubernetes && !mayBe) {
      return [
        `${name} not among them, which only the cluster may give (labels of a pool in workerPools)`,
      ];
    }
    const isDomain = domain === "" || /^[a-z\d]([a-z\d.-]{0,251}[a-z\d])?$/.test(domain!);
    if (!isLabel(bare) || !isDomain || (name.includes("/") && domain === ""))
      return [`${name} to be the name of a label`];
    return is === "" || isLabel(is) ? [] : [`the value of ${name} to be a label's`];
  });
  return problems.length > 0 ? problems.join("; ") : undefined;
};

/** A check of several arguments together, which the first of them that is set reports. */
const together = (
  names: readonly string[],
  check: (extra: Given["extra"]) => string | undefined,
): Readonly<Record<string, Check>> => {
  const first: Check = (_, { name, extra }) =>
    names.find((one) => one in extra) === name ? check(extra) : undefined;
  return Object.fromEntries(names.map((name) => [name, first]));
};

/** The leader's lease has to outlive its deadline, and that some more than one try. */
const leaderElection = together(
  ["leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period"],
  (extra) => {
    const length = (name: string, otherwise: string): number =>
      goDuration(extra[`leader-elect-${name}`] ?? otherwise) ?? NaN;
    const lease = length("lease-duration", "15s");
    const deadline = length("renew-deadline", "10s");
    const retry = length("retry-period", "2s");
    if (lease <= 0 || deadline <= 0 || retry <= 0) return "durations longer than 0";
    if (lease <= deadline) return "leader-elect-lease-duration above leader-elect-renew-deadline";
    return deadline <= 1.2 * retry
      ? "leader-elect-renew-deadline above 1.2 times leader-elect-retry-period"
      : undefined;
  },
);

const election = together(["election-timeout", "heartbeat-interval"], (extra) => {
  const heartbeat = goNumber(extra["heartbeat-interval"] ?? "100");
  const timeout = goNumber(extra["election-timeout"] ?? "1000");
  if (heartbeat === 0 || timeout === 0) return "a number from 1";
  if (timeout > 50_000) return "election-timeout up to 50000";
  return timeout < 5 * heartbeat
    ? "election-timeout from 5 times heartbeat-interval on"
    : undefined;
});

const compaction: Check = (value) =>
  /^\d+$/.test(value) || goDuration(value) !== undefined
    ? undefined
    : "hours or revisions as a whole number, or a duration such as 30m";

const imageThresholds = together(["image-gc-high-threshold", "image-gc-low-threshold"], (extra) => {
  const low = goNumber(extra["image-gc-low-threshold"] ?? "80");
  const high = goNumber(extra["image-gc-high-threshold"] ?? "85");
  return low >= 0 && low < high && high <= 100
    ? undefined
    : "image-gc-low-threshold from 0, below image-gc-high-threshold up to 100";
});

/**
 * Of the 256 addresses of a node's range its network, its gateway and the last one are no pod's: the
 * CNI plugin host-local has no others to give.
 */
const mostPods = 253;

/** The pods of this program's own DaemonSets, with room for an operator's. */
const leastPods = 10;

export const podsRange = ({ cni }: Pick<Given, "cni">): string =>
  cni === "none"
    ? `${leastPods} or more`
    : `${leastPods} to ${mostPods}, from what the cluster's own pods need to the addresses in a node's /24 of podCidr`;

export const maxPods = (value: string, given: Pick<Given, "cni">): string | undefined =>
  goNumber(value) >= leastPods && (goNumber(value) <= mostPods || given.cni === "none")
    ? undefined
    : podsRange(given);

const openIdConnect = together(
  [
    ...["oidc-issuer-url", "oidc-client-id", "oidc-ca-file", "oidc-groups-claim"],
    ...["oidc-groups-prefix", "oidc-required-claim", "oidc-signing-algs"],
    ...["oidc-username-claim", "oidc-username-prefix"],
  ],
  (extra) => {
    const { "oidc-issuer-url": issuer, "oidc-client-id": client } = extra;
    if (!issuer || !client)
      return "oidc-issuer-url and oidc-client-id too, without which none may be";
    return issuer.startsWith("https://") ? undefined : "an address that begins with https://";
  },
);

const signingAlgorithms = "RS256 RS384 RS512 ES256 ES384 ES512 PS256 PS384 PS512".split(" ");

const everyComponent: Readonly<Record<string, Check>> = {
  "feature-gates": featureGates,
  "log-flush-frequency": positive,
  "logging-format": oneOf("text", "json"),
  "tls-cipher-suites": listOf("tls-cipher-suites", "TLS cipher suites"),
  "tls-min-version": (value, { known }) =>
    value === "" ? undefined : oneOf(...(known.values["tls-min-version"] ?? []))(value, undefined!),
};

const audited = oneOf("batch", "blocking", "blocking-strict");

const checks: Readonly<Record<Component, Readonly<Record<string, Check>>>> = {
  apiServerExtraArgs: {
    ...everyComponent,
    "audit-log-format": oneOf("json", "legacy"),
    "audit-log-mode": audited,
    "audit-webhook-mode": audited,
    "authorization-mode": authorizationModes,
    "authorization-policy-file": withMode("ABAC"),
    "authorization-webhook-config-file": withMode("Webhook"),
    "disable-admission-plugins": listOf("admission-plugins", "admission plugins"),
    "enable-admission-plugins": enabledPlugins,
    "goaway-chance": between(0, 0.02),
    "livez-grace-period": notNegative,
    "max-mutating-requests-inflight": fromZero,
    "max-requests-inflight": fromZero,
    "min-request-timeout": fromZero,
    ...openIdConnect,
    "oidc-signing-algs": (value, given) =>
      entriesOf(value).every((one) => signingAlgorithms.includes(one))
        ? openIdConnect["oidc-signing-algs"]!(value, given)
        : `a list of ${signingAlgorithms.join(", ")}`,
    "request-timeout": notNegative,
    "runtime-config": runtimeConfig,
    "service-account-issuer": (value) => (value === "" ? "the address of an issuer" : undefined),
    "service-account-jwks-uri": (value) =>
      value.startsWith("https://") ? undefined : "an address that begins with https://",
    "service-account-max-token-expiration": (value) => {
      const length = goDuration(value)!;
      return length === 0 || (length >= 3_600e9 && length <= 2 ** 32 * 1e9)
        ? undefined
        : "a duration from 1h on";
    },
    "shutdown-delay-duration": notNegative,
    "shutdown-watch-termination-grace-period": notNegative,
    "storage-backend": oneOf("", "etcd3"),
    "storage-initialization-timeout": notNegative,
    "storage-media-type": oneOf(
      "application/json",
      "application/yaml",
      "application/vnd.kubernetes.protobuf",
    ),
  },
  controllerManagerExtraArgs: {
    ...everyComponent,
    ...leaderElection,
    controllers,
    "leader-elect-resource-lock": oneOf("leases"),
  },
  schedulerExtraArgs: {
    ...everyComponent,
    ...leaderElection,
    "leader-elect-resource-lock": oneOf("leases"),
  },
  etcdExtraArgs: {
    "auto-compaction-mode": oneOf("periodic", "revision"),
    "auto-compaction-retention": compaction,
    "cipher-suites": listOf("cipher-suites", "TLS cipher suites"),
    "compact-hash-check-time": positive,
    ...election,
    "feature-gates": featureGates,
    "log-format": oneOf("json", "console"),
    "log-level": oneOf("debug", "info", "warn", "error", "panic", "fatal"),
    logger: oneOf("zap"),
    "tls-max-version": oneOf("", "TLS1.2", "TLS1.3"),
    "tls-min-version": oneOf("", "TLS1.2", "TLS1.3"),
    "v2-deprecation": listOf("v2-deprecation", "stages"),
  },
  kubeletExtraArgs: {
    ...everyComponent,
    // What a kubelet says once it has read its configuration, when it has begun to run.
    "cgroups-per-qos": (value) =>
      goBoolean(value) === false ? "true, since pods have their limits by it" : undefined,
    "container-log-max-files": between(2, Infinity),
    "cpu-cfs-quota-period": (value) => {
      const length = goDuration(value)!;
      return length >= 1e6 && length <= 1e9 ? undefined : "a duration from 1ms to 1s";
    },
    "cpu-manager-policy": (value, { extra }) =>
      value !== "static" || reservesCpu(extra)
        ? undefined
        : "cpu in system-reserved too, such as cpu=200m, or reserved-cpus: what is reserved is what pods do not get for themselves",
    "enforce-node-allocatable": (value, { extra }) => {
      const without = ["kube-reserved", "system-reserved"].find(
        (name) => entriesOf(value).includes(name) && extra[`${name}-cgroup`] === undefined,
      );
      return without && `${without}-cgroup too, the cgroup that has what is reserved`;
    },
    "event-burst": fromZero,
    "event-qps": fromZero,
    "hairpin-mode": oneOf("promiscuous-bridge", "hairpin-veth", "none"),
    ...imageThresholds,
    "kube-api-burst": fromZero,
    "kube-api-qps": fromZero,
    "manifest-url-header": (value) =>
      entriesOf(value).every((pair) => pair.includes(":"))
        ? undefined
        : "names with values, such as a:1",
    "max-open-files": fromZero,
    "max-pods": maxPods,
    // It has to add up to all that is reserved, of which a worker calculates its own part (reservations.sh).
    "memory-manager-policy": (value, { extra }) => {
      if (value !== "Static") return undefined;
      if (extra["reserved-memory"] === undefined) {
        return "reserved-memory too: by NUMA node, what kube-reserved, system-reserved and eviction-hard keep, such as 0:memory=1Gi";
      }
      return reserves("memory", extra["kube-reserved"])
        ? undefined
        : "memory in kube-reserved too, since what workers reserve by themselves differs by their sizes, and reserved-memory is one for all";
    },
    "minimum-image-ttl-duration": notNegative,
    "node-labels": nodeLabels,
    "node-status-max-images": between(-1, Infinity),
    "oom-score-adj": between(-1000, 1000),
    "pods-per-core": fromZero,
    port: between(1, 65_535),
    "read-only-port": between(0, 65_535),
    "registry-burst": fromZero,
    "registry-qps": fromZero,
    runonce: (value) => (goBoolean(value) ? "false: no kubelet starts with it" : undefined),
    "topology-manager-policy": oneOf("none", "best-effort", "restricted", "single-numa-node"),
    "topology-manager-scope": oneOf("container", "pod"),
  },
};

/** What was expected of a value that has the right type, and with which the program ends at once. */
export const wrongValue = (value: string, given: Given): string | undefined =>
  checks[given.component][given.name]?.(value, given);
