import { ArmId, Body, groupType, isBody } from "../resources/resource";
import { conforming, malformed } from "../types/declared";
import { nestedIn, schemaOf } from "../types/resource-type";
import { subResourceOf, typeOf } from "../types/types";

/** Properties that ARM has beside `properties`. */
const envelope = new Set([
  "extendedLocation",
  "etag",
  "id",
  "identity",
  "kind",
  "location",
  "managedBy",
  "name",
  "plan",
  "sku",
  "systemData",
  "tags",
  "type",
  "zones",
]);

/** The same of an element in a list. */
const elementEnvelope = new Set(["etag", "id", "name", "type", "zones"]);

/**
 * An extension has a property `type` besides its ARM type; only the nesting distinguishes them.
 */
const isExtension = (id: ArmId) => id.type.toLowerCase().endsWith("/virtualmachines/extensions");

/** From the flat shape to ARM's. */
export function toArm(id: ArmId, body: Body): Body {
  const type = typeOf(id.type)?.type ?? id.type;
  if (type === groupType) return { ...body, type };
  const nested = nestedPaths(id).toReversed();
  const shaped = nested.reduce<Body>(
    (value, path) => mapAt(value, path.split("."), wrap),
    renamed(body, Object.entries(typeOf(id.type)?.armNames ?? {})),
  );
  const outside = Object.entries(shaped).filter(([key]) => envelope.has(key) && key !== "type");
  const inside = Object.entries(shaped).filter(
    ([key]) => !envelope.has(key) || (key === "type" && isExtension(id)),
  );
  return { ...Object.fromEntries(outside), type, properties: Object.fromEntries(inside) };
}

/** From ARM's shape to the flat one, inputs only. */
export function fromArm(id: ArmId, sent: Body): Body {
  const { properties, id: _id, name: _name, type: _type, etag: _etag, ...outside } = sent;
  const type = typeOf(id.type);
  const inside = id.type === groupType ? {} : (properties ?? {});
  if (!isBody(inside)) throw malformed(id, "properties", "an object", inside);
  const given = { ...outside, ...inside };
  const names = Object.entries(type?.armNames ?? {}).map(([flat, arm]) => [arm, flat] as const);
  const flat = renamed(given, names);
  const inputs = Object.fromEntries(
    Object.entries(flat).filter(
      ([key]) => type === undefined || schemaOf(type).inputs.includes(key),
    ),
  );
  const unwrapped = nestedPaths(id).reduce<Body>(
    (value, path) => mapAt(value, path.split("."), (element) => unwrap(id, path, element)),
    inputs,
  );
  const part = subResourceOf(id);
  const described = type ?? part?.ownerType;
  return described === undefined ? unwrapped : conforming(described, unwrapped, part?.list);
}

function renamed(body: Body, names: readonly (readonly [from: string, to: string])[]): Body {
  const map = new Map(names);
  return Object.fromEntries(Object.entries(body).map(([key, one]) => [map.get(key) ?? key, one]));
}

/** Where elements with properties of their own are in a resource or a part, outermost first. */
function nestedPaths(id: ArmId): string[] {
  const type = typeOf(id.type);
  if (type !== undefined) return nestedIn(type);
  const part = subResourceOf(id);
  const prefix = `${part?.list}[].`;
  return (part?.ownerType.nested ?? [])
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length));
}

function mapAt(value: Body, [step = "", ...rest]: readonly string[], change: Change): Body {
  const key = step.replace(/\[\]$/, "");
  const inner = value[key];
  const next = (one: unknown): unknown =>
    !isBody(one) ? one : rest.length === 0 ? change(one) : mapAt(one, rest, change);
  if (Array.isArray(inner)) return { ...value, [key]: inner.map(next) };
  return inner === undefined ? value : { ...value, [key]: next(inner) };
}

type Change = (element: Body) => Body;

function wrap(element: Body): Body {
  const entries = Object.entries(element);
  const inside = entries.filter(([key]) => !elementEnvelope.has(key));
  return {
    ...Object.fromEntries(entries.filter(([key]) => elementEnvelope.has(key))),
    ...(inside.length > 0 && { properties: Object.fromEntries(inside) }),
  };
}

/** What lies flat beside `properties` is no property to Azure. */
function unwrap(id: ArmId, path: string, element: Body): Body {
  const { properties, ...outside } = element;
  const inside = properties ?? {};
  if (!isBody(inside)) throw malformed(id, `${path}.properties`, "an object", inside);
  const known = Object.entries(outside).filter(([key]) => elementEnvelope.has(key));
  return { ...Object.fromEntries(known), ...inside };
}
