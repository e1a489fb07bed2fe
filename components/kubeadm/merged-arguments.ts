import { entriesOf, pairOf } from "../settings/rules/argument-types";
import type { Component } from "../settings/settings";

/** Who signs the tokens of service accounts, as kubeadm has it for the domain cluster.local. */
export const serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local";

/** An argument for each: the first signs, and all are believed. An operator's value changes by stages; see plan/federation.ts. */
export const issuerFlag = "service-account-issuer";

/** Where the bootstrap step, and the probe of kubeadm's static pod, ask etcd. */
const etcdMetricsUrl = "http://127.0.0.1:2381";

/** What is kept back of a machine's memory for its system. */
export const reservedMemory = "256Mi";

export type Arguments = Readonly<Record<string, string>>;

type Merge = (operators: string, extra: Arguments) => readonly string[];

const joined = (entries: readonly string[]): readonly string[] => [[...new Set(entries)].join(",")];

/** Ours first: the order means nothing. */
const withOurs =
  (...ours: string[]): Merge =>
  (operators) =>
    joined([...ours, ...entriesOf(operators)]);

/** Theirs first: what comes first is preferred. */
const afterTheirs =
  (...ours: string[]): Merge =>
  (operators) =>
    joined([...entriesOf(operators), ...ours]);

/** Names with values, of which theirs count. */
export const withDefault =
  (name: string, value: string) =>
  (operators: string): readonly string[] => {
    const isTheirs = entriesOf(operators).some((pair) => pairOf(pair)[0] === name);
    return isTheirs ? [operators] : joined([`${name}=${value}`, ...entriesOf(operators)]);
  };

/** A controller that they turn off stays off: of two entries of one name the first counts. */
const withControllers =
  (...ours: string[]): Merge =>
  (operators) => {
    const theirs = entriesOf(operators);
    return joined([...theirs, ...ours.filter((name) => !theirs.includes(`-${name}`))]);
  };

/** etcd cannot listen at an address and at all addresses on the same port. */
const withMetricsUrl: Merge = (operators) =>
  entriesOf(operators).some((url) => /^http:\/\/(0\.0\.0\.0|\[::\])?:2381$/.test(url))
    ? [operators]
    : joined([etcdMetricsUrl, ...entriesOf(operators)]);

/**
 * Beside the default ones. External IPs of a Service would redirect what machines themselves send there: to Azure's agent and
 * DNS at 168.63.129.16, to the metadata service, to other machines (https://github.com/Azure/AKS/pull/5707). Kubernetes has
 * deprecated them, and an operator may take the plugin away.
 */
export function admissionPlugins(extra: Arguments): readonly string[] {
  const off = entriesOf(extra["disable-admission-plugins"] ?? "");
  return ["NodeRestriction", "DenyServiceExternalIPs"].filter((plugin) => !off.includes(plugin));
}

/**
 * Arguments that are lists. kubeadm drops its own value of an argument that an operator sets, so
 * what it sets in cmd/kubeadm/app/phases is said here again, with what this program sets.
 */
const merges: Readonly<Record<Component, Readonly<Record<string, Merge>>>> = {
  apiServerExtraArgs: {
    // Tokens without an audience of their own are for these, and those that are out stay valid.
    "api-audiences": withOurs(serviceAccountIssuer),
    "enable-admission-plugins": (operators, extra) =>
      joined([...admissionPlugins(extra), ...entriesOf(operators)]),
    "kubelet-preferred-address-types": afterTheirs("InternalIP", "ExternalIP", "Hostname"),
    "requestheader-allowed-names": withOurs("front-proxy-client"),
    "requestheader-extra-headers-prefix": withOurs("X-Remote-Extra-"),
    "requestheader-group-headers": withOurs("X-Remote-Group"),
    "requestheader-username-headers": withOurs("X-Remote-User"),
  },
  controllerManagerExtraArgs: {
    controllers: withControllers("*", "bootstrapsigner", "tokencleaner"),
  },
  schedulerExtraArgs: {},
  etcdExtraArgs: {
    "feature-gates": withDefault("InitialCorruptCheck", "true"),
    "listen-metrics-urls": withMetricsUrl,
  },
  kubeletExtraArgs: {
    "system-reserved": withDefault("memory", reservedMemory),
  },
};

/** The values of an argument that an operator sets: more than one where it is given repeatedly. */
export const mergedValues = (
  component: Component,
  name: string,
  value: string,
  extra: Arguments,
): readonly string[] => merges[component][name]?.(value, extra) ?? [value];
