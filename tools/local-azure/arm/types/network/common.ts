import { randomUUID } from "node:crypto";

import { keyOf } from "../../resources/ids";
import { Body, Ledger, pick, Reference, Resource, View } from "../../resources/resource";
import { ResourceType, schemaOf } from "../resource-type";

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
  return (elements ?? []).map((element) => ({
    ...element,
    id: `${id}/${list}/${element.name}`,
    provisioningState: "Succeeded",
  }));
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
