import { randomUUID } from "node:crypto";
import { Address4 } from "ip-address";

import { Body, keyOf, Ledger, pick, Reference, Resource, View } from "../../resources/resource";
import { ResourceType, schemaOf } from "../resource-type";
import { invalidReference, refuse } from "../../azure-error";

export type Ref = { id?: string };

/** A read-only property of every Microsoft.Network resource. */
export const guidOf = (old: Body | undefined) => ({
  resourceGuid: (old?.["resourceGuid"] as string | undefined) ?? randomUUID(),
});

export interface SubResource {
  readonly name: string;
  readonly [property: string]: unknown;
}

/** Adds the id and provisioning state of the sub-resources in a list. */
export function withIds<P extends SubResource>(
  id: string,
  list: string,
  elements: readonly P[] | undefined,
) {
  checkNames(id, list, elements);
  return (elements ?? []).map((element) => ({
    ...element,
    id: `${id}/${list}/${element.name}`,
    provisioningState: "Succeeded",
  }));
}

/** Throws unless each element of a list has a name, and no other has it. */
export function checkNames(
  id: string,
  list: string,
  elements: readonly { readonly name?: string }[] = [],
): void {
  const names = elements.map(({ name }) => name?.toLowerCase());
  const at = names.findIndex((name, index) => name === undefined || names.indexOf(name) < index);
  if (at < 0) return;
  throw refuse(
    "InvalidRequestFormat",
    `Cannot parse the request: ${list} of ${id} ${names[at] === undefined ? "names one not at all" : `names ${names[at]} twice`}.`,
  );
}

/** Throws unless all that is named is there. */
export function checkThere(from: string, refs: readonly (Ref | undefined)[], view: View): void {
  const missing = refs.find((ref) => ref?.id !== undefined && !view.exists(ref.id));
  if (missing?.id !== undefined) throw invalidReference(missing.id, from);
}

/** References of a resource itself, to what is named. */
export const referencesTo = (id: string, refs: readonly (Ref | undefined)[] = []): Reference[] =>
  refs.flatMap((ref) => (ref?.id === undefined ? [] : [{ from: id, owner: id, to: ref.id }]));

/** The ids of resources of one type that refer to this one, as Azure lists them. */
export function referrersOfType(view: View, id: string, ownerType: string): Ref[] | undefined {
  const referrers = view
    .referrers(id)
    .filter(({ owner }) => keyOf(owner).includes(`/providers/${ownerType.toLowerCase()}/`));
  return referrers.length > 0 ? referrers.map(({ from }) => ({ id: from })) : undefined;
}

/** Names of resources of Network: letters, digits, underscores, periods and hyphens, up to 80. */
export const networkName = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$/;

/**
 * A list whose elements are resources of their own too: the subnets of a network, the rules of a
 * security group. A PUT with the list replaces them all.
 */
export class ChildList<B extends Body> {
  constructor(
    private readonly list: string,
    private readonly child: ResourceType<B>,
    private readonly complete: (body: B) => Body,
  ) {}

  idOf(owner: string, name: string): string {
    return `${owner}/${this.list}/${name}`;
  }

  /** The children that a PUT with this list deletes. */
  dropped(owner: string, wanted: readonly { readonly name: string }[], view: View): Resource[] {
    const kept = new Set(wanted.map(({ name }) => keyOf(this.idOf(owner, name))));
    return view.children(owner, this.child.type).filter(({ id }) => !kept.has(keyOf(id)));
  }

  commit(resource: Resource, ledger: Ledger, now: Date): void {
    const wanted = (resource.body[this.list] ?? []) as (B & { name: string })[];
    for (const { id } of this.dropped(resource.id, wanted, ledger)) ledger.remove(id);
    for (const sent of wanted) {
      const id = this.idOf(resource.id, sent.name);
      ledger.put({
        id: ledger.find(id)?.id ?? id,
        type: this.child.type,
        body: {
          ...this.complete(pick(sent, schemaOf(this.child).inputs) as B),
          provisioningState: "Succeeded",
        },
        hidden: {},
        changed: now.toISOString(),
      });
    }
    delete resource.body[this.list];
  }

  shown(owner: string, view: View): Body[] {
    return view.children(owner, this.child.type).map(({ id, body }) => ({
      ...body,
      id,
      name: id.split("/").at(-1),
      type: this.child.type,
    }));
  }
}

/** A range of addresses as numbers, both ends included. */
export interface Range {
  readonly prefix: string;
  readonly first: bigint;
  readonly last: bigint;
}

const toText = (value: bigint): string => Address4.fromBigInt(value).correctForm();

function parseAddress(address: string): bigint | undefined {
  return !address.includes("/") && Address4.isValid(address)
    ? new Address4(address).bigInt()
    : undefined;
}

/** Throws unless the prefix is in CIDR notation without host bits. */
export function parseRange(prefix: string, where: string): Range {
  const range = prefix.includes("/") && Address4.isValid(prefix) ? new Address4(prefix) : undefined;
  if (range === undefined) {
    throw refuse(
      "InvalidAddressPrefixFormat",
      `Address prefix ${prefix} of resource ${where} is not formatted correctly. ` +
        "It should follow CIDR notation, for example 10.0.0.0/24.",
    );
  }
  const first = range.startAddress().bigInt();
  if (range.bigInt() !== first) {
    const [, length] = prefix.split("/");
    throw refuse(
      "InvalidCIDRNotation",
      `The address prefix ${prefix} in resource ${where} has an invalid CIDR notation. ` +
        `For the given prefix length, the address prefix should be ${toText(first)}/${length}.`,
    );
  }
  return { prefix, first, last: range.endAddress().bigInt() };
}

export const overlap = (a: Range, b: Range): boolean => a.first <= b.last && b.first <= a.last;

export const within = (inner: Range, outer: Range): boolean =>
  outer.first <= inner.first && inner.last <= outer.last;

/** Azure reserves the first four addresses of a subnet, and the last. */
const reserved = ({ first, last }: Range, address: bigint): boolean =>
  address < first + 4n || address === last;

/** All free addresses, the lowest first. */
export const freeAddresses = (ranges: readonly Range[], taken: ReadonlySet<string>): string[] => [
  ...freeIn(ranges, taken),
];

/** The lowest free address, as Azure allocates them. */
export const firstFree = (
  ranges: readonly Range[],
  taken: ReadonlySet<string>,
): string | undefined => freeIn(ranges, taken).next().value;

function* freeIn(
  ranges: readonly Range[],
  taken: ReadonlySet<string>,
): Generator<string, undefined> {
  for (const range of ranges) {
    for (let address = range.first; address <= range.last; address++) {
      if (!reserved(range, address) && !taken.has(toText(address))) yield toText(address);
    }
  }
  return undefined;
}

export function checkStatic(address: string, ranges: readonly Range[]): void {
  const value = parseAddress(address);
  if (value === undefined) {
    throw refuse("InvalidIPAddressFormat", `IP address ${address} is not formatted correctly.`);
  }
  const prefixes = ranges.map(({ prefix }) => prefix).join(",");
  const range = ranges.find(({ first, last }) => first <= value && value <= last);
  if (range === undefined) {
    throw refuse(
      "PrivateIPAddressNotInSubnet",
      `Private static IP address ${address} does not belong to the range of subnet prefix ${prefixes}.`,
    );
  }
  if (reserved(range, value)) {
    throw refuse(
      "PrivateIPAddressInReservedRange",
      `Private static IP address ${address} falls within reserved IP range of subnet prefix ${range.prefix}.`,
    );
  }
}
