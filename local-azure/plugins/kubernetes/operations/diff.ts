import { changesBetween } from "../../protocol/changes";
import { DiffResult } from "../../protocol/protocol";
import { isProperties, Properties } from "../../protocol/values";
import { annotation, at, groupOf, nameOf, namespaceOf, normalised, text } from "../objects";

/** What the server refuses to change in an object, by API group and kind. */
const immutable: Readonly<Record<string, readonly string[]>> = {
  "apps/DaemonSet": ["spec.selector"],
  "apps/Deployment": ["spec.selector"],
  "apps/StatefulSet": [
    "spec.podManagementPolicy",
    "spec.revisionHistoryLimit",
    "spec.selector",
    "spec.serviceName",
    "spec.volumeClaimTemplates",
  ],
  "batch/Job": ["spec.completions", "spec.parallelism", "spec.selector", "spec.template"],
  "rbac.authorization.k8s.io/ClusterRoleBinding": ["roleRef"],
  "rbac.authorization.k8s.io/RoleBinding": ["roleRef"],
  "storage.k8s.io/StorageClass": ["parameters", "provisioner"],
  "/PersistentVolumeClaim": ["spec"],
  "/Pod": ["spec"],
  "/ResourceQuota": ["spec.scopes"],
  "/Service": ["spec.clusterIP"],
};

export interface Mutability {
  readonly enableConfigMapMutable: boolean;
  readonly enableSecretMutable: boolean;
}

/**
 * The official plugin replaces these by default, so that whatever reads them can be rolled out with
 * them.
 */
function fixedData(
  { kind, apiVersion, immutable: sealed }: Properties,
  mutability: Mutability,
): string[] {
  if (apiVersion !== "v1") {
    return [];
  }
  if (kind === "ConfigMap" && (sealed === true || !mutability.enableConfigMapMutable)) {
    return ["data", "binaryData"];
  }
  if (kind === "Secret" && (sealed === true || !mutability.enableSecretMutable)) {
    return ["data", "type"];
  }
  return [];
}

export interface Comparison {
  readonly olds: Properties;
  readonly news: Properties;
  readonly state: Properties;
  readonly isPatch: boolean;
  readonly mutability: Mutability;
}

/** Where the namespace was filled in later, it is the one that the object got. */
function placed(inputs: Properties, namespace: string): Properties {
  const object = normalised(inputs);
  const { metadata } = object;
  if (!isProperties(metadata) || namespace === "" || metadata.namespace !== undefined) {
    return object;
  }
  return { ...object, metadata: { ...metadata, namespace } };
}

/** What would change, and whether that takes a new object. */
export function difference({ olds, news, state, isPatch, mutability }: Comparison): DiffResult {
  const namespace = namespaceOf(state);
  const before = placed(olds, namespace);
  const after = placed(news, namespace);
  const kind = `${groupOf(text(after.apiVersion))}/${text(after.kind)}`;
  const fixed = [
    "metadata.name",
    "metadata.namespace",
    "kind",
    ...(isPatch ? [] : [...(immutable[kind] ?? []), ...fixedData(after, mutability)]),
  ];
  const changes = changesBetween(before, after, (path) =>
    fixed.some(
      (part) => path === part || path.startsWith(`${part}.`) || path.startsWith(`${part}[`),
    ),
  );
  return {
    changes,
    // Two objects of one name cannot be there at once.
    deleteBeforeReplace:
      changes.some(({ replaces }) => replaces) &&
      annotation(after, "autonamed") !== "true" &&
      nameOf(after) === nameOf(state) &&
      at(after, "metadata", "namespace") === at(before, "metadata", "namespace"),
  };
}
