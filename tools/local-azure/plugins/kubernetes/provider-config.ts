import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";
import { changesBetween } from "../protocol/changes";
import { Change, CheckResult, DiffResult } from "../protocol/protocol";
import { isUnknown, Properties, Value } from "../protocol/values";
import { at, items, text } from "./objects";

/** The settings of a `kubernetes.Provider`, as far as the program uses them. */
export interface Settings {
  readonly kubeconfig: string;
  /** The SDK takes it from PULUMI_K8S_DELETE_UNREACHABLE. */
  readonly deleteUnreachable: boolean;
}

/** Flags come as text. */
const isTrue = (value: unknown): boolean => value === true || value === "true";

export const settingsFrom = (config: Properties): Settings => ({
  kubeconfig: text(config.kubeconfig),
  deleteUnreachable: isTrue(config.deleteUnreachable),
});

/** How this stand-in works, whatever the settings say. */
const always: readonly string[] = ["upsertExistingObjects", "enablePatchForce"];

const officialOnly: readonly string[] = [
  "cluster",
  "context",
  "enableConfigMapMutable",
  "enableSecretMutable",
  "namespace",
  "renderYamlToDirectory",
  "skipUpdateUnreachable",
];

/** Refuses, before anything is planned, what only the official plugin can do. */
export function checkConfig(news: Properties): CheckResult {
  const isOff = (property: string): boolean =>
    text(news[property]) === "false" || news[property] === false;
  const failures = [
    ...officialOnly.filter((property) => Boolean(news[property]) && !isOff(property)),
    ...["enableServerSideApply"].filter(isOff),
    ...always.filter((property) => !isTrue(news[property])),
  ].map((property) => ({
    property,
    reason: always.includes(property)
      ? "this stand-in for the kubernetes plugin works only with it: set it to true"
      : "only the official plugin has it: leave it out",
  }));
  return { inputs: news, failures };
}

/** Address and authority of the cluster that a kubeconfig leads to. */
function clusterOf(config: Properties): unknown {
  let kubeconfig: Value;
  try {
    kubeconfig = parse(text(config.kubeconfig)) as Value;
  } catch {
    return undefined;
  }
  return items(at(kubeconfig, "clusters"))[0]?.cluster;
}

/** A provider that leads to another cluster is replaced, and every object in it too. */
export function diffConfig(olds: Properties, news: Properties): DiffResult {
  const changes = changesBetween(olds, news, { replaces: () => false });
  const { clusterIdentifier } = news;
  const known = typeof clusterIdentifier === "string" && !isUnknown(clusterIdentifier);
  if (known && olds.clusterIdentifier === clusterIdentifier) {
    return { changes };
  }
  const before = clusterOf(olds);
  const after = clusterOf(news);
  const elsewhere =
    before !== undefined && after !== undefined && !isDeepStrictEqual(before, after);
  const replaces = ({ path }: Change): boolean =>
    path === "kubeconfig"
      ? elsewhere || isUnknown(news[path])
      : path === "clusterIdentifier" && Boolean(olds.clusterIdentifier && clusterIdentifier);
  return { changes: changes.map((change) => ({ ...change, replaces: replaces(change) })) };
}
