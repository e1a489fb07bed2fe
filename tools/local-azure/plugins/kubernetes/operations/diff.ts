import { changesBetween } from "../../protocol/changes";
import { DiffResult } from "../../protocol/protocol";
import { isProperties, Properties, Value } from "../../protocol/values";
import { at, groupOf, nameOf, namespaceOf, normalised, text } from "../objects";

/**
 * What takes a new object, by API group and kind: what the server refuses to change, and the data
 * that the official plugin replaces so that whatever reads it can be rolled out with it.
 */
const fixedFields: Readonly<Record<string, readonly string[]>> = {
  "apps/DaemonSet": ["spec.selector"],
  "apps/Deployment": ["spec.selector"],
  "rbac.authorization.k8s.io/ClusterRoleBinding": ["roleRef"],
  "rbac.authorization.k8s.io/RoleBinding": ["roleRef"],
  "storage.k8s.io/StorageClass": ["parameters", "provisioner"],
  "/ConfigMap": ["data", "binaryData"],
  "/Secret": ["data", "type"],
};

export interface Comparison {
  readonly olds: Properties;
  readonly news: Properties;
  readonly state: Properties;
  readonly isPatch: boolean;
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

/** What would change of the object as it was seen last, and whether that takes a new one. */
export function difference({ olds, news, state, isPatch }: Comparison): DiffResult {
  const namespace = namespaceOf(state);
  const before = placed(pruned(state, normalised(olds)) as Properties, namespace);
  const after = placed(news, namespace);
  const kind = `${groupOf(text(after.apiVersion))}/${text(after.kind)}`;
  const fixed = [
    "metadata.name",
    "metadata.namespace",
    "kind",
    ...(isPatch ? [] : (fixedFields[kind] ?? [])),
  ];
  const changes = changesBetween(before, after, {
    replaces: (path) =>
      fixed.some(
        (part) => path === part || path.startsWith(`${part}.`) || path.startsWith(`${part}[`),
      ),
  });
  return {
    changes,
    // Two objects of one name cannot be there at once.
    deleteBeforeReplace:
      changes.some(({ replaces }) => replaces) &&
      nameOf(after) === nameOf(state) &&
      at(after, "metadata", "namespace") === at(before, "metadata", "namespace"),
  };
}

const isEmpty = (value: Value): boolean =>
  isProperties(value) || Array.isArray(value) ? Object.keys(value).length === 0 : !value;

/**
 * Of an object as the cluster has it, what the inputs name: the rest is the server's, or somebody
 * else's. Items of lists are told apart by their place alone, as the official plugin does: what
 * somebody adds behind the program's own is not seen, and what comes to stand before them is taken
 * for a change. The server leaves out what is empty.
 */
export function pruned(live: Value, inputs: Value): Value {
  if (isProperties(live) && isProperties(inputs)) {
    return Object.fromEntries(
      Object.entries(inputs).flatMap(([key, input]) => {
        if (live[key] !== undefined) return [[key, pruned(live[key], input)] as const];
        return isEmpty(input) ? [[key, input] as const] : [];
      }),
    );
  }
  if (Array.isArray(live) && Array.isArray(inputs)) {
    return live.slice(0, inputs.length).map((item, index) => pruned(item, inputs[index]));
  }
  return live;
}
