/** JSON as `nft -j` prints it. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Fields = { readonly [key: string]: Json };

/** The one name and content of an object such as `{"meta": {"key": "mark"}}`. */
export function only(value: Json): readonly [string, Json] {
  return Object.entries(asFields(value))[0] ?? ["", null];
}

export function asFields(value: Json | undefined): Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

export function asList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : value === undefined ? [] : [value];
}
