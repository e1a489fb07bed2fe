import { quoted, toRemove } from "../settings/problem";
import type { AzureConnection } from "./connection";
import { isAllowed, permissionsAt } from "./rights";

/** An identity that is not this stack's, as Azure has it. */
export interface ExistingIdentity {
  readonly clientId: string;
  readonly principalId: string;
}

/** What Azure says of the identity that the settings name; nothing where they name none. */
export interface IdentityAnswer {
  readonly identity?: ExistingIdentity;
  readonly problems: readonly string[];
}

/** Asks for an identity, and whether the login may do this with it. */
export async function askIdentity(id: string, action: string, { arm }: AzureConnection) {
  const [found, permissions] = await Promise.all([
    arm.getIfReadable<{ readonly properties: ExistingIdentity }>(
      id,
      { "api-version": "2023-01-31" },
      { properties: { clientId: "", principalId: "" } },
    ),
    permissionsAt(arm, id),
  ]);
  return {
    identity: found === "unreadable" ? found : found?.properties,
    isAllowed: isAllowed(permissions, action),
  };
}

/** @param role one that reads it */
export const unreadableIdentity = (id: string, role: string): string =>
  `the login may not read the identity ${id}: let its owner run ` +
  `az role assignment create --assignee LOGIN --role '${role}' --scope ${quoted(id)}`;

/** What Azure asks for of who gives an identity to a machine. */
export const assign = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action";

/**
 * Asks for an existing identity, and whether the login may give it to machines. Its region does not matter.
 *
 * @param setting the one that names it
 */
export async function getExistingIdentity(
  setting: "identityId" | "kubeletIdentityId",
  id: string,
  connection: AzureConnection,
): Promise<IdentityAnswer> {
  if (id === "") return { problems: [] };
  const { identity, isAllowed: mayGive } = await askIdentity(id, assign, connection);
  if (identity === undefined) {
    return {
      problems: [
        `${setting} is ${id}, expected an identity that Azure has: see az identity list --query '[].id', ` +
          `or let this program make one (${toRemove(setting)})`,
      ],
    };
  }
  if (identity === "unreadable") {
    return { problems: [unreadableIdentity(id, "Managed Identity Operator")] };
  }
  return {
    identity,
    problems: mayGive
      ? []
      : [
          `the login may not give the identity ${id} to machines: let its owner run ` +
            `az role assignment create --assignee LOGIN --role 'Managed Identity Operator' --scope ${quoted(id)}`,
        ],
  };
}
