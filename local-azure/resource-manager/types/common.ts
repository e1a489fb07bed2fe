import { randomUUID } from "node:crypto";

import { keyOf } from "../ids";
import { Body, Reference, View } from "../resource-type";

export type Ref = { id?: string };

/** What every resource of Network carries. */
export const networkStamp = (old: Body | undefined) => ({
  etag: `W/"${randomUUID()}"`,
  resourceGuid: (old?.["resourceGuid"] as string | undefined) ?? randomUUID(),
});

export interface Part {
  readonly name: string;
  readonly [property: string]: unknown;
}

/** Gives the elements of a list their ids, as Azure does for what lives inside a resource. */
export function withIds<P extends Part>(
  id: string,
  list: string,
  elements: readonly P[] | undefined,
) {
  return (elements ?? []).map((element) => ({
    ...element,
    id: `${id}/${list}/${element.name}`,
    etag: undefined,
    provisioningState: "Succeeded",
  }));
}

/** Ids of those who point at a resource, of one ARM type, as Azure lists them. */
export function backReferences(view: View, id: string, ownerType: string): Ref[] | undefined {
  const found = view
    .referrers(id)
    .filter(({ owner }) => keyOf(owner).includes(`/providers/${ownerType.toLowerCase()}/`));
  return found.length > 0 ? found.map(({ from }) => ({ id: from })) : undefined;
}

export const isOf =
  (type: string) =>
  (reference: Reference): boolean =>
    keyOf(reference.owner).includes(`/providers/${type.toLowerCase()}/`);

/** Drops what is undefined: to Azure, and to Pulumi, that is the same as not being there. */
export function present<B extends Body>(body: B): B {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as B;
}

/** The properties of these names; what else is there is dropped. */
export const picked = (body: Body, names: readonly string[]): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));

/** Names of resources of Network: letters, digits, underscores, periods and hyphens, up to 80. */
export const networkName = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$/;
