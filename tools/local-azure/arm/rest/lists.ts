import { stateOf } from "../admission";
import { AzureError } from "../azure-error";
import { ResourceManager } from "../resource-manager";
import { ArmId, Body, isWithin, parseId, Resource, withoutUndefined } from "../resources/resource";
import { subResourceOf, typeOf } from "../types/types";
import { toArm } from "./shape";

/** Types of Azure of which the local one has none, and whose empty lists clients ask for. */
const alwaysEmpty = new Set([
  "microsoft.compute/availabilitysets",
  "microsoft.compute/images",
  "microsoft.compute/virtualmachinescalesets",
  "microsoft.network/privateendpoints",
  "microsoft.network/privatelinkservices",
]);

/** What a path without a last name is a list of: as the id of one in it. */
export function collectionOf(path: string): ArmId | undefined {
  const member = parseId(`${path}/-`);
  if (member === undefined) return undefined;
  const isKnown =
    typeOf(member.type) ?? subResourceOf(member) ?? alwaysEmpty.has(member.type.toLowerCase());
  return isKnown ? member : undefined;
}

/** All of a collection: of a subscription, a group or a parent. */
export async function membersOf(
  arm: ResourceManager,
  member: ArmId,
  filter: string,
): Promise<readonly Body[]> {
  const parent = parseId(member.parent);
  const isScope = parent === undefined || parent.type === "Microsoft.Resources/subscriptions";
  const owner = isScope ? undefined : (await arm.get(parent.id)).body;
  const part = subResourceOf(member);
  if (part) {
    const parts = (owner?.[part.list] ?? []) as { id: string }[];
    return parts.map((one) => toArm({ ...member, id: one.id }, one));
  }
  const type = typeOf(member.type)?.type;
  const below = arm.list(member.parent);
  const found = type?.startsWith("Microsoft.Authorization/")
    ? authorizations(arm, member, below, filter)
    : below.filter((one) => one.type === type);
  return found.map(({ id }) => toArm(parseId(id)!, arm.peek(id) ?? {}));
}

/** A scope also has what is assigned above it; below it only without `atScope()`. */
function authorizations(
  arm: ResourceManager,
  member: ArmId,
  below: readonly Resource[],
  filter: string,
): Resource[] {
  const above = arm
    .list(`/subscriptions/${member.subscription}`)
    .filter(({ id }) => isWithin(member.parent, parseId(id)!.parent));
  const isAtScope = /atScope\(\)/i.test(filter);
  const [, principal] = /(?:principalId eq|assignedTo\()\s*'?([^')]+)'?/i.exec(filter) ?? [];
  const [, role] = /roleName eq '([^']+)'/i.exec(filter) ?? [];
  return [...new Set([...above, ...(isAtScope ? [] : below)])].filter(
    ({ type, body }) =>
      type.toLowerCase() === member.type.toLowerCase() &&
      (principal === undefined || body["principalId"] === principal) &&
      (role === undefined || body["roleName"] === role),
  );
}

/** The index of a group or a subscription: what has a location, with a part of its properties. */
export function resourceEntries(
  arm: ResourceManager,
  scope: string,
  filter: string,
  expand: string,
): Body[] {
  const isWanted = filterOf(filter);
  // Azure returns no tags of what it is asked for by one's name and value.
  const hidesTags = /\btagValue\b/i.test(filter);
  return arm
    .list(scope)
    .filter(({ id, body }) => body["location"] !== undefined && parseId(id)!.names.length > 0)
    .filter(({ type }) => type !== "Microsoft.Resources/resourceGroups")
    .filter(isWanted)
    .map((one) => resourceEntry(one, expand, hidesTags));
}

function resourceEntry(
  { id, type, body, changed }: Resource,
  expand: string,
  hidesTags: boolean,
): Body {
  return withoutUndefined({
    id,
    name: parseId(id)!.names.join("/"),
    type,
    location: body["location"],
    tags: hidesTags ? undefined : body["tags"],
    zones: body["zones"],
    sku: body["sku"],
    identity: body["identity"],
    managedBy: body["managedBy"],
    provisioningState: expand.includes("provisioningState") ? stateOf(body) : undefined,
    changedTime: expand.includes("changedTime") ? changed : undefined,
  });
}

const filtered = new Set([
  "location",
  "name",
  "resourcegroup",
  "resourcetype",
  "tagname",
  "tagvalue",
]);

/** A $filter such as `resourceType eq 'a' or resourceType eq 'b'`. */
function filterOf(filter: string): (resource: Resource) => boolean {
  if (filter === "") return () => true;
  const groups = filter.split(/\s+or\s+/i).map((group) => group.split(/\s+and\s+/i).map(termOf));
  return (resource) =>
    groups.some((terms) => {
      const asked = terms.find(({ property }) => property === "tagname")?.value.toLowerCase();
      const tags = Object.entries((resource.body["tags"] ?? {}) as Record<string, string>);
      const [tagName, tagValue] = tags.find(([name]) => name.toLowerCase() === asked) ?? [];
      return terms.every(({ property, value }) => {
        const { names, group } = parseId(resource.id)!;
        const actual: Readonly<Record<string, string | undefined>> = {
          resourcetype: resource.type,
          name: names.join("/"),
          location: String(resource.body["location"]),
          resourcegroup: group,
          tagname: tagName,
        };
        // Of tags, names have no case, and values have.
        if (property === "tagvalue") return tagValue === value;
        return actual[property]?.toLowerCase() === value.toLowerCase();
      });
    });

  function termOf(term: string) {
    const [, property, value] = /^\s*\(?(\w+)\s+eq\s+'([^']*)'\)?\s*$/.exec(term) ?? [];
    if (property === undefined || value === undefined) throw invalidFilter(filter);
    if (!filtered.has(property.toLowerCase())) throw invalidFilter(filter);
    return { property: property.toLowerCase(), value };
  }
}

export const invalidFilter = (filter: string): AzureError =>
  new AzureError(
    400,
    "InvalidFilterInQueryString",
    `Invalid $filter '${filter}' specified in the query string.`,
  );

/** Azure does not document the size of its pages; clients follow nextLink. */
const pageSize = 100;

/** One page of a list, with the address of the next. */
export function pageOf(values: readonly unknown[], url: URL, origin: string): Body {
  const top = Number(url.searchParams.get("$top") ?? pageSize);
  const start = Number(url.searchParams.get("$skiptoken") ?? 0);
  if (!Number.isInteger(top) || top < 1 || !Number.isInteger(start)) {
    throw new AzureError(
      400,
      "InvalidTopInQueryString",
      `Invalid $top or $skiptoken in the query string ${url.search}.`,
    );
  }
  const end = start + Math.min(top, pageSize);
  if (end >= values.length) return { value: values.slice(start) };
  const next = new URLSearchParams(url.searchParams);
  next.set("$skiptoken", String(end));
  return { value: values.slice(start, end), nextLink: `${origin}${url.pathname}?${next}` };
}
