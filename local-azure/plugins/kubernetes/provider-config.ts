import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";
import { changesBetween } from "../protocol/changes";
import { Change, CheckResult, DiffResult } from "../protocol/protocol";
import { isUnknown, Properties, Value } from "../protocol/values";
import { at, items, text } from "./objects";

/** The settings of a `kubernetes.Provider`. */
export interface Settings {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly cluster?: string;
  readonly namespace?: string;
  readonly deleteUnreachable: boolean;
  readonly skipUpdateUnreachable: boolean;
  readonly upsertExistingObjects: boolean;
  readonly enablePatchForce: boolean;
  readonly enableConfigMapMutable: boolean;
  readonly enableSecretMutable: boolean;
}

const isTrue = (value: unknown): boolean => value === true || value === "true";

const given = (value: Value): string | undefined => text(value) || undefined;

/** Flags come as text, and where one is left out an environment variable of the plugin decides. */
export function settingsFrom(config: Properties, environment = process.env): Settings {
  const flag = (key: string, variable: string) =>
    isTrue(config[key] ?? environment[`PULUMI_K8S_${variable}`]);
  return {
    kubeconfig: text(config.kubeconfig),
    context: given(config.context),
    cluster: given(config.cluster),
    namespace: given(config.namespace),
    deleteUnreachable: flag("deleteUnreachable", "DELETE_UNREACHABLE"),
    skipUpdateUnreachable: flag("skipUpdateUnreachable", "SKIP_UPDATE_UNREACHABLE"),
    upsertExistingObjects: flag("upsertExistingObjects", "UPSERT_EXISTING_OBJECTS"),
    enablePatchForce: flag("enablePatchForce", "ENABLE_PATCH_FORCE"),
    enableConfigMapMutable: flag("enableConfigMapMutable", "ENABLE_CONFIGMAP_MUTABLE"),
    enableSecretMutable: flag("enableSecretMutable", "ENABLE_SECRET_MUTABLE"),
  };
}

/** Refuses, before anything is planned, what only the official plugin can do. */
export function checkConfig(news: Properties): CheckResult {
  const failures = [
    ...(news.renderYamlToDirectory
      ? [{ property: "renderYamlToDirectory", reason: "only the official plugin renders YAML" }]
      : []),
    ...(text(news.enableServerSideApply) === "false" || news.enableServerSideApply === false
      ? [{ property: "enableServerSideApply", reason: "only the official plugin works without it" }]
      : []),
  ];
  return { inputs: news, failures };
}

/** Address and authority of the cluster that a kubeconfig leads to. */
function activeCluster(config: Properties): unknown {
  let kubeconfig: Value;
  try {
    kubeconfig = parse(text(config.kubeconfig)) as Value;
  } catch {
    return undefined;
  }
  const contextName = text(config.context) || at(kubeconfig, "current-context");
  const context = items(at(kubeconfig, "contexts")).find(({ name }) => name === contextName);
  const clusterName = text(config.cluster) || at(context, "context", "cluster");
  return items(at(kubeconfig, "clusters")).find(({ name }) => name === clusterName)?.cluster;
}

const leading = ["kubeconfig", "context", "cluster"];

/** A provider that leads to another cluster is replaced, and every object in it too. */
export function diffConfig(olds: Properties, news: Properties): DiffResult {
  const changes = changesBetween(olds, news, () => false);
  const { clusterIdentifier } = news;
  const known = typeof clusterIdentifier === "string" && !isUnknown(clusterIdentifier);
  if (known && olds.clusterIdentifier === clusterIdentifier) {
    return { changes };
  }
  const before = activeCluster(olds);
  const after = activeCluster(news);
  const elsewhere =
    before !== undefined && after !== undefined && !isDeepStrictEqual(before, after);
  const replaces = ({ path }: Change): boolean =>
    leading.includes(path)
      ? elsewhere || isUnknown(news[path])
      : path === "clusterIdentifier" && Boolean(olds.clusterIdentifier && clusterIdentifier);
  return { changes: changes.map((change) => ({ ...change, replaces: replaces(change) })) };
}
