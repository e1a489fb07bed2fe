import { ArmId, groupType } from "../ids";
import { Body } from "../resource";
import { typeOf } from "../types";

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

/**
 * An extension has a property `type` besides its ARM type; only the nesting distinguishes them.
 */
const isExtension = (id: ArmId) => id.type.toLowerCase().endsWith("/virtualmachines/extensions");

/** From the flat shape to ARM's, on the outermost level only: sub-resources stay flat. */
export function toArm(id: ArmId, body: Body): Body {
  const type = typeOf(id.type)?.type ?? id.type;
  if (type === groupType) return { ...body, type };
  const outside = Object.entries(body).filter(([key]) => envelope.has(key) && key !== "type");
  const inside = Object.entries(body).filter(
    ([key]) => !envelope.has(key) || (key === "type" && isExtension(id)),
  );
  return { ...Object.fromEntries(outside), type, properties: Object.fromEntries(inside) };
}

/** From ARM's shape to the flat one, inputs only. */
export function fromArm(id: ArmId, sent: Body): Body {
  const { properties, id: _id, name: _name, type: _type, etag: _etag, ...outside } = sent;
  const inputs = new Set(typeOf(id.type)?.inputs ?? []);
  const flat = { ...outside, ...(id.type === groupType ? {} : (properties as Body | undefined)) };
  return Object.fromEntries(Object.entries(flat).filter(([key]) => inputs.has(key)));
}
