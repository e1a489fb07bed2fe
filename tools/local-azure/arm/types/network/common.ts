import { randomUUID } from "node:crypto";

import { keyOf } from "../../resources/ids";
import { Body, Reference, View } from "../../resources/resource";

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
