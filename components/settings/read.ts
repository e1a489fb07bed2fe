import { entry, found, Problem, toRemove, toSet, unknownNames, wants } from "./problem";
import type {
  Entra,
  EtcdBackups,
  GivenRole,
  HttpProxy,
  KubeadmExtras,
  LocalDisk,
  OsDiskSku,
  Reboots,
  RegistryCredential,
  Spot,
  Taint,
  WorkerPool,
  WorkloadIdentity,
} from "./settings";

/** Takes what is wrong with lists and maps, which Pulumi's schema does not type to the end. */
type Report = Problem[];

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A number; 1 in place of what is none, so that nothing else is said about it. */
export function readNumber(key: string, text: string, problems: Report): number {
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  problems.push({ key, is: found(text), expected: "a number", fix: toRemove(key) });
  return 1;
}

export function readBoolean(key: string, text: string, problems: Report): boolean {
  if (text === "true" || text === "false") return text === "true";
  const meant = !/^(no?|f|off|false|0)$/i.test(text);
  problems.push(wants(key, text, "true or false", meant));
  return meant;
}

/** What `pulumi config set --path` or a stack's file has put together; else the text as it is. */
export function readJson(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return text;
  }
}

/** A list of texts, such as zones. */
export function readTexts(key: string, raw: unknown, problems: Report): string[] {
  if (!Array.isArray(raw)) {
    const isSingle = ["string", "number", "boolean"].includes(typeof raw);
    problems.push({
      key,
      is: found(raw),
      expected: isSingle
        ? `a list; take the value away, then add each entry: ${toSet(`${key}[0]`, String(raw))}`
        : "a list",
      fix: toRemove(key),
    });
    return [];
  }
  raw.forEach((item, index) => {
    if (typeof item === "string") return;
    const at = `${key}[${index}]`;
    problems.push(
      typeof item === "number" || typeof item === "boolean"
        ? wants(at, item, "text, which Pulumi keeps with --type string", String(item))
        : { key: at, is: found(item), expected: "text", fix: toRemove(at) },
    );
  });
  return raw.map((item) => String(item ?? ""));
}

/**
 * Text by name. `pulumi config set --path` turns "true" and "1" into other types, which are meant
 * as text here.
 */
function readTextByName(key: string, raw: unknown, problems: Report): Record<string, string> {
  if (raw === undefined) return {};
  if (!isRecord(raw)) {
    problems.push({ key, is: found(raw), expected: "values by name", fix: toRemove(key) });
    return {};
  }
  return Object.fromEntries(
    Object.entries(raw).flatMap(([name, value]) => {
      if (["string", "number", "boolean"].includes(typeof value)) return [[name, String(value)]];
      const at = entry(key, name);
      problems.push({ key: at, is: found(value), expected: "one value", fix: toRemove(at) });
      return [];
    }),
  );
}

function readTaints(key: string, raw: unknown, problems: Report): Taint[] {
  if (raw === undefined) return [];
  if (!Array.isArray(raw)) {
    problems.push({
      key,
      is: found(raw),
      expected: "a list of key, value and effect",
      fix: toRemove(key),
    });
    return [];
  }
  return raw.map((item: unknown, index): Taint => {
    const at = `${key}[${index}]`;
    problems.push(
      ...unknownNames(at, Object.keys(isRecord(item) ? item : {}), ["key", "value", "effect"]),
    );
    const { key: name = "", value, effect = "" } = readTextByName(at, item, problems);
    return {
      key: name,
      ...(value === undefined ? {} : { value }),
      effect: effect as Taint["effect"],
    };
  });
}

/** A list of maps; an entry that is none counts as empty. */
function readMaps(
  key: string,
  raw: unknown,
  what: string,
  problems: Report,
): { readonly at: string; readonly given: Record<string, unknown> }[] {
  if (!Array.isArray(raw)) {
    problems.push({ key, is: found(raw), expected: `a list of ${what}`, fix: toRemove(key) });
    return [];
  }
  return raw.map((one: unknown, index) => {
    const at = `${key}[${index}]`;
    if (isRecord(one)) return { at, given: one };
    const expected = `values by name, in a list of ${what}`;
    problems.push({ key: at, is: found(one), expected, fix: toRemove(at) });
    return { at, given: {} };
  });
}

/** What a pool may say. */
const poolNames = [
  ...["name", "count", "size", "zones", "labels", "taints"],
  ...["osDiskSku", "osDiskSizeGb", "ephemeralOsDisk", "maxPods", "spot", "maxUnavailable"],
];

function readSpot(key: string, raw: unknown, problems: Report): Spot | undefined {
  if (raw === undefined) return undefined;
  const given = readTextByName(key, raw, problems);
  problems.push(...unknownNames(key, Object.keys(given), ["evictionPolicy", "maxPrice"]));
  const { evictionPolicy = "", maxPrice } = given;
  return {
    evictionPolicy: evictionPolicy as Spot["evictionPolicy"],
    // What is no price is refused as it was given.
    ...(maxPrice !== undefined && {
      maxPrice: Number(maxPrice) || (maxPrice as unknown as number),
    }),
  };
}

/** The worker pools, with what a pool that says nothing gets. */
export function readPools(
  raw: unknown,
  defaults: Pick<WorkerPool, "size" | "zones" | "osDiskSku" | "osDiskSizeGb">,
  problems: Report,
): WorkerPool[] {
  const what = "pools, each with name and count";
  return readMaps("workerPools", raw, what, problems).map(({ at, given }, index): WorkerPool => {
    problems.push(...unknownNames(at, Object.keys(given), poolNames));
    const name = given.name;
    if (typeof name !== "string") {
      const better = index === 0 ? "workers" : `pool-${index + 1}`;
      problems.push(
        wants(`${at}.name`, name, "a name, after which its machines are called", better),
      );
    }
    const { count } = given;
    if (typeof count !== "number") {
      problems.push(wants(`${at}.count`, count, "how many machines the pool has", 2));
    }
    const spot = readSpot(`${at}.spot`, given.spot, problems);
    const size = given.size ?? defaults.size;
    if (typeof size !== "string") {
      problems.push(wants(`${at}.size`, size, "the name of a VM size", defaults.size));
    }
    return {
      name: String(name),
      count: Number(count),
      size: String(size),
      zones:
        given.zones === undefined
          ? defaults.zones
          : readTexts(`${at}.zones`, given.zones, problems),
      labels: readTextByName(`${at}.labels`, given.labels, problems),
      taints: readTaints(`${at}.taints`, given.taints, problems),
      osDiskSku: (given.osDiskSku ?? defaults.osDiskSku) as OsDiskSku,
      osDiskSizeGb: (given.osDiskSizeGb ?? defaults.osDiskSizeGb) as number,
      ...(given.ephemeralOsDisk !== undefined && {
        ephemeralOsDisk: given.ephemeralOsDisk as LocalDisk,
      }),
      ...(given.maxPods !== undefined && { maxPods: given.maxPods as number }),
      ...(spot && { spot }),
      maxUnavailable: (given.maxUnavailable ?? 1) as number,
    };
  });
}

/** The service accounts whose pods log in to Azure. */
export function readWorkloadIdentities(raw: unknown = [], problems: Report): WorkloadIdentity[] {
  const what = "namespace and serviceAccount, with identityId or roles";
  return readMaps("workloadIdentities", raw, what, problems).map(({ at, given }) => {
    const { roles = [], ...texts } = given;
    const known = ["namespace", "serviceAccount", "identityId", "roles"];
    problems.push(...unknownNames(at, Object.keys(given), known));
    const {
      namespace = "",
      serviceAccount = "",
      identityId = "",
    } = readTextByName(at, texts, problems);
    return {
      ...{ namespace, serviceAccount, identityId },
      roles: readMaps(`${at}.roles`, roles, "role and scope", problems).map(
        ({ at: place, given: one }): GivenRole => {
          problems.push(...unknownNames(place, Object.keys(one), ["role", "scope"]));
          const { role = "", scope = "" } = readTextByName(place, one, problems);
          return { role, scope };
        },
      ),
    };
  });
}

/** What an operator adds to kube-proxy's configuration. */
export function readKubeProxy(raw: unknown = {}, problems: Report): Record<string, unknown> {
  if (isRecord(raw)) return raw;
  const key = "kubeProxy";
  problems.push({ key, is: found(raw), expected: "values by name", fix: toRemove(key) });
  return {};
}

/** Where etcd is saved; an empty object means nowhere. */
export function readEtcdBackups(raw: unknown, problems: Report): EtcdBackups | undefined {
  const key = "etcdBackups";
  const known = ["container", "every", "endpoint"];
  const given = readTextByName(key, raw, problems);
  problems.push(...unknownNames(key, Object.keys(given), known));
  if (Object.keys(given).length === 0) return undefined;
  const { container, every = "1h", endpoint } = given;
  return {
    every,
    ...(container !== undefined && { container }),
    ...(endpoint !== undefined && { endpoint: endpoint.replace(/\/+$/, "") }),
  };
}

/** Texts by name, all of which are known, and one list among them. */
function readTextsAndList(
  key: string,
  raw: unknown,
  { known, listed }: { readonly known: readonly string[]; readonly listed: string },
  problems: Report,
) {
  const isMap = raw === undefined || isRecord(raw);
  const { [listed]: list = [], ...texts } = (isMap ? raw : {}) ?? {};
  const given = readTextByName(key, isMap ? texts : raw, problems);
  problems.push(...unknownNames(key, Object.keys(given), known));
  return { given, list: readTexts(`${key}.${listed}`, list, problems) };
}

/** By whose tokens people log in; an empty object means nobody's. */
export function readEntra(raw: unknown, problems: Report): Entra | undefined {
  const listed = "admins";
  const known = ["tenant", "issuer", "application", "usernameClaim", "groupsClaim", "ca", listed];
  const { given, list } = readTextsAndList("entra", raw, { known, listed }, problems);
  if (Object.keys(given).length === 0 && list.length === 0) return undefined;
  const { tenant = "", issuer = "", application = "", ca = "" } = given;
  const { usernameClaim = "", groupsClaim = "" } = given;
  return {
    ...{ tenant, issuer, application, admins: list },
    ...{ usernameClaim, groupsClaim, ca: ca && `${ca.trim()}\n` },
  };
}

/** The proxy on the way to the internet; an empty object means none. */
export function readHttpProxy(raw: unknown, problems: Report): HttpProxy | undefined {
  const key = "httpProxy";
  const own: Report = [];
  const listed = "noProxy";
  const known = ["http", "https", listed, "ca"];
  const { given, list } = readTextsAndList(key, raw, { known, listed }, own);
  // Not repeated: an address with a password may be in another place than it should.
  const hasAddress = own.some((problem) => JSON.stringify(problem).includes("@"));
  problems.push(
    ...(hasAddress
      ? [
          {
            key,
            is: "has an @ where no address belongs",
            expected: "values by name: http, https and ca as text, noProxy as a list",
            fix: toRemove(key),
          },
        ]
      : own),
  );
  if (Object.keys(given).length === 0 && list.length === 0) return undefined;
  const { http = "", https = "", ca = "" } = given;
  return { http, https, noProxy: list, ca: ca && `${ca.trim()}\n` };
}

/** Credentials by registry. What is in a wrong place is not repeated: it may be a password. */
export function readRegistryCredentials(
  raw: unknown,
  problems: Report,
): Record<string, RegistryCredential> {
  const key = "registryCredentials";
  if (raw === undefined) return {};
  const expected = "username and password by registry, such as ghcr.io";
  if (!isRecord(raw)) {
    problems.push({ key, is: "is no map", expected, fix: toRemove(key) });
    return {};
  }
  const isText = (one: unknown) => ["string", "number", "boolean"].includes(typeof one);
  return Object.fromEntries(
    Object.entries(raw).flatMap(([host, value]) => {
      const given = isRecord(value) ? value : {};
      const names = Object.keys(given).sort().join();
      if (names === "password,username" && Object.values(given).every(isText)) {
        const { username, password } = given;
        return [[host, { username: String(username), password: String(password) }]];
      }
      const at = entry(key, host);
      const is = "has something else than username and password";
      problems.push({ key: at, is, expected, fix: toRemove(at) });
      return [];
    }),
  );
}

export const readTags = (raw: unknown, problems: Report): Record<string, string> =>
  readTextByName("tags", raw, problems);

/** When machines may be rebooted; an empty object means never. */
export function readReboots(raw: unknown, problems: Report): Reboots | undefined {
  const key = "reboots";
  if (raw !== undefined && !isRecord(raw)) {
    problems.push({ key, is: found(raw), expected: "days, from and to", fix: toRemove(key) });
  }
  const given = isRecord(raw) ? raw : {};
  problems.push(...unknownNames(key, Object.keys(given), ["days", "from", "to"]));
  if (Object.keys(given).length === 0) return undefined;
  const { days = [], from = "", to = "" } = given;
  return {
    days: readTexts(`${key}.days`, days, problems),
    from: String(from),
    to: String(to),
  };
}

/** What an operator adds to kubeadm's configuration. */
export function readKubeadm(raw: unknown, problems: Report): KubeadmExtras {
  if (raw !== undefined && !isRecord(raw)) {
    const key = "kubeadm";
    problems.push({ key, is: found(raw), expected: "values by name", fix: toRemove(key) });
  }
  const given = isRecord(raw) ? raw : {};
  const read = (name: string): Record<string, string> =>
    readTextByName(`kubeadm.${name}`, given[name], problems);
  const extras: KubeadmExtras = {
    apiServerExtraArgs: read("apiServerExtraArgs"),
    controllerManagerExtraArgs: read("controllerManagerExtraArgs"),
    schedulerExtraArgs: read("schedulerExtraArgs"),
    etcdExtraArgs: read("etcdExtraArgs"),
    kubeletExtraArgs: read("kubeletExtraArgs"),
    ignorePreflightErrors: readTexts(
      "kubeadm.ignorePreflightErrors",
      given["ignorePreflightErrors"] ?? [],
      problems,
    ),
    timeouts: read("timeouts"),
    patches: read("patches"),
  };
  problems.push(...unknownNames("kubeadm", Object.keys(given), Object.keys(extras)));
  return extras;
}
