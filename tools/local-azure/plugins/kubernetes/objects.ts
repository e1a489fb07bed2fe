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

export const namespaceOf = (object: Properties): string =>
  text(at(object, "metadata", "namespace"));

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
