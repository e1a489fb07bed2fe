import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./connection";
import { permissionsAt, permits } from "./rights";

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

const assign = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action";

/** Asks for an existing identity, and whether the login may give it to machines. Its region does not matter. */
export async function getExistingIdentity(
  { identityId }: Settings,
  { arm }: AzureConnection,
): Promise<IdentityAnswer> {
  if (identityId === "") return { problems: [] };
  const [found, permissions] = await Promise.all([
    arm.get<{ readonly properties: ExistingIdentity }>(
      identityId,
      { "api-version": "2023-01-31" },
      { properties: { clientId: "", principalId: "" } },
    ),
    permissionsAt(arm, identityId),
  ]);
  if (found === undefined) {
    return {
      problems: [
        `identityId is ${identityId}, expected an identity that Azure has: see az identity list --query '[].id', ` +
          "or let this program make one (pulumi config rm identityId)",
      ],
    };
  }
  const mayAssign = permissions.length === 0 || permits(permissions, assign);
  return {
    identity: found.properties,
    problems: mayAssign
      ? []
      : [
          `the login may not give the identity ${identityId} to machines: let its owner run ` +
            `az role assignment create --assignee LOGIN --role 'Managed Identity Operator' --scope ${identityId}`,
        ],
  };
}
