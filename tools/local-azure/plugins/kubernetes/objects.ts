import { isProperties, isUnknown, Properties, secret, Value } from "../protocol/values";

/** The value at a path of keys, or undefined where the path ends early. */
export const at = (value: Value, ...path: readonly string[]): Value =>
  path.reduce<Value>((part, key) => (isProperties(part) ? part[key] : undefined), value);

export const text = (value: Value): string => (typeof value === "string" ? value : "");

export const items = (value: Value): Properties[] =>
  Array.isArray(value) ? value.filter(isProperties) : [];

export const without = (object: Properties, ...keys: readonly string[]): Properties =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));

export const nameOf = (object: Properties): string => text(at(object, "metadata", "name"));

const namespaceOf = (object: Properties): string => text(at(object, "metadata", "namespace"));

export const annotation = (object: Properties, key: string): string =>
  text(at(object, "metadata", "annotations", `pulumi.com/${key}`));

/** Of objects that name none. */
export const defaultNamespace = "default";

/** As Pulumi's ids have it: `kube-system/coredns`, or the bare name of what has no namespace. */
export const idOf = (object: Properties): string =>
  [namespaceOf(object), nameOf(object)].filter((part) => part !== "").join("/");

export function partsOfId(id: string): { readonly namespace: string; readonly name: string } {
  const [first = "", second] = id.split("/");
  return second === undefined ? { namespace: "", name: first } : { namespace: first, name: second };
}

/** How messages name an object. */
export const titleOf = (object: Properties): string => `${text(object.kind)} ${idOf(object)}`;

/**
 * What a resource's type says.
 *
 * With `kubernetes:apps/v1:DaemonSetPatch` a program changes a DaemonSet that it did not create.
 */
export function kindOfType(type: string): {
  readonly apiVersion: string;
  readonly kind: string;
  readonly isPatch: boolean;
} {
  const [, groupVersion = "", name = ""] = type.split(":");
  const isPatch = name.endsWith("Patch") && name !== "Patch";
  return {
    apiVersion: groupVersion.replace(/^core\//, ""),
    kind: isPatch ? name.slice(0, -"Patch".length) : name,
    isPatch,
  };
}

export const isSecret = ({ apiVersion, kind }: Properties): boolean =>
  apiVersion === "v1" && kind === "Secret";

function withoutNulls(value: Value): Value {
  if (Array.isArray(value)) {
    return value.map(withoutNulls);
  }
  if (!isProperties(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, part]) =>
      part === null || part === undefined ? [] : [[key, withoutNulls(part)] as const],
    ),
  );
}

/**
 * Folds `stringData` into `data`, the only one that is ever sent.
 *
 * The server does the same, but applied server-side, a key that is removed from `stringData` stays
 * in `data`.
 */
function withEncodedData(object: Properties): Properties {
  const { stringData, ...rest } = object;
  if (!isSecret(object) || !isProperties(stringData)) {
    return object;
  }
  const encoded = Object.entries(stringData).map(([key, value]) => [
    key,
    typeof value === "string" && !isUnknown(value) ? Buffer.from(value).toString("base64") : value,
  ]);
  const data = isProperties(rest.data) ? rest.data : {};
  return { ...rest, data: { ...data, ...Object.fromEntries(encoded) } };
}

/** One way of writing for all inputs that mean the same object. */
export const normalised = (inputs: Properties): Properties =>
  withEncodedData(withoutNulls(inputs) as Properties);

/** Where the state keeps the name under which fields were applied. */
export const managerKey = "__fieldManager";

/** What is sent to the server: the inputs, annotations for the plugin included. */
export const bodyOf = (inputs: Properties): Properties =>
  Object.fromEntries(Object.entries(inputs).filter(([key]) => !key.startsWith("__")));

/** A Secret's contents are secret, whatever the program thought of them. */
export function marked(object: Properties): Properties {
  if (!isSecret(object)) {
    return object;
  }
  const { data, stringData, ...rest } = object;
  return {
    ...rest,
    ...(data === undefined ? {} : { data: secret(data) }),
    ...(stringData === undefined ? {} : { stringData: secret(stringData) }),
  };
}

/** What is kept in the state of an object as the server has it. */
export function stateOf(live: Properties, manager: string): Properties {
  const metadata = without((live.metadata ?? {}) as Properties, "managedFields");
  return marked({ ...live, metadata, [managerKey]: manager });
}

interface Kind {
  /** Its name in the paths of the API. */
  readonly plural: string;
  readonly isNamespaced: boolean;
  /**
   * What takes a new object: what the server refuses to change, and the data that the official plugin
   * replaces, unless the provider's settings have it changed in place.
   */
  readonly fixed: readonly string[];
}

const namespaced = (plural: string, ...fixed: readonly string[]): Kind => ({
  plural,
  isNamespaced: true,
  fixed,
});
const ofCluster = (plural: string, ...fixed: readonly string[]): Kind => ({
  plural,
  isNamespaced: false,
  fixed,
});

/** All kinds of which the program makes or patches objects. */
const kinds: Readonly<Record<string, Kind>> = {
  "apiextensions.k8s.io/v1/CustomResourceDefinition": ofCluster("customresourcedefinitions"),
  "apiregistration.k8s.io/v1/APIService": ofCluster("apiservices"),
  "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy": ofCluster("mutatingadmissionpolicies"),
  "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding": ofCluster(
    "mutatingadmissionpolicybindings",
  ),
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": ofCluster(
    "validatingadmissionpolicies",
  ),
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": ofCluster(
    "validatingadmissionpolicybindings",
  ),
  "apps/v1/DaemonSet": namespaced("daemonsets", "spec.selector"),
  "apps/v1/Deployment": namespaced("deployments", "spec.selector"),
  "policy/v1/PodDisruptionBudget": namespaced("poddisruptionbudgets"),
  "rbac.authorization.k8s.io/v1/ClusterRole": ofCluster("clusterroles"),
  "rbac.authorization.k8s.io/v1/ClusterRoleBinding": ofCluster("clusterrolebindings", "roleRef"),
  "rbac.authorization.k8s.io/v1/Role": namespaced("roles"),
  "rbac.authorization.k8s.io/v1/RoleBinding": namespaced("rolebindings", "roleRef"),
  "snapshot.storage.k8s.io/v1/VolumeSnapshotClass": ofCluster("volumesnapshotclasses"),
  "storage.k8s.io/v1/CSIDriver": ofCluster("csidrivers"),
  "storage.k8s.io/v1/StorageClass": ofCluster("storageclasses", "parameters", "provisioner"),
  "v1/ConfigMap": namespaced("configmaps", "data", "binaryData"),
  "v1/Namespace": ofCluster("namespaces"),
  "v1/Node": ofCluster("nodes"),
  "v1/Secret": namespaced("secrets", "data", "type"),
  "v1/Service": namespaced("services"),
  "v1/ServiceAccount": namespaced("serviceaccounts"),
};

/** @throws what is to be done for a kind that the program did not have before */
export function kindOf({ apiVersion, kind }: Properties): Kind {
  const known = kinds[`${text(apiVersion)}/${text(kind)}`];
  if (known !== undefined) return known;
  throw new Error(
    `only the official plugin knows the kind ${text(kind)} of ${text(apiVersion)}: ` +
      "add it to tools/local-azure/plugins/kubernetes/objects.ts",
  );
}

/** Where the API has an object. */
export function pathOf(object: Properties): string {
  const apiVersion = text(object.apiVersion);
  const { plural, isNamespaced } = kindOf(object);
  return [
    apiVersion.includes("/") ? "/apis" : "/api",
    apiVersion,
    ...(isNamespaced ? ["namespaces", namespaceOf(object)] : []),
    plural,
    encodeURIComponent(nameOf(object)),
  ].join("/");
}
