import { createHash } from "node:crypto";

import { account, keyOf } from "../../resources/ids";
import { View, withoutUndefined } from "../../resources/resource";
import type { MachineBody } from "./virtual-machine-validation";

type Identity = NonNullable<MachineBody["identity"]>;

const isSystemAssigned = ({ type = "" }: Identity): boolean => /SystemAssigned/i.test(type);
const isUserAssigned = ({ type = "" }: Identity): boolean => /UserAssigned/i.test(type);

/** The SDK sends a list of ids; Azure returns a map from id to principal and client id. */
export function identitiesOf({ identity }: MachineBody): string[] {
  const identities = identity?.userAssignedIdentities ?? [];
  return Array.isArray(identities) ? identities : Object.keys(identities);
}

/** An identity as Azure shows it; its own of the machine has the same principal for ever. */
export function shownIdentity(id: string, body: MachineBody, view: View): Identity | undefined {
  const { identity } = body;
  if (identity === undefined || identity.type === "None") return undefined;
  const ids = identitiesOf(body);
  return withoutUndefined({
    type: identity.type,
    ...(isSystemAssigned(identity) && {
      principalId: principalOf(id),
      tenantId: account.tenantId,
    }),
    userAssignedIdentities: ids.length === 0 ? undefined : identityMap(ids, view),
  });
}

/**
 * What a PATCH makes of an identity: user-assigned ones are added to those that the machine has, null
 * takes one away, and a type without `UserAssigned` takes all away.
 */
export function patchedIdentity(before: MachineBody, sent: Identity): Identity {
  if (!isUserAssigned(sent)) return { type: sent.type };
  const given = sent.userAssignedIdentities ?? {};
  const changes = Array.isArray(given)
    ? given.map((id) => [id, {}] as const)
    : Object.entries(given);
  const isNamed = (id: string) => changes.some(([other]) => keyOf(other) === keyOf(id));
  return {
    type: sent.type,
    userAssignedIdentities: [
      ...identitiesOf(before).filter((id) => !isNamed(id)),
      ...changes.filter(([, value]) => value !== null).map(([id]) => id),
    ],
  };
}

const identityMap = (ids: readonly string[], view: View): Record<string, object> =>
  Object.fromEntries(
    ids.map((id) => {
      const { principalId, clientId } = view.find(id)?.body ?? {};
      return [id, { principalId, clientId }];
    }),
  );

const principalOf = (id: string): string =>
  createHash("sha256")
    .update(keyOf(id))
    .digest("hex")
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-4$3-8$4-$5");
