import { parseIdentity } from "../identity-id";
import { isInOwnGroup } from "../own-group";
import { Problem, toRemove, wants } from "../problem";
import type { Settings } from "../settings";

const example =
  "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/identities/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes";

/** What is wrong with the id of an identity that exists already. */
export function existingIdentityProblems(settings: Settings): Problem[] {
  const { identityId, servicePrincipal } = settings;
  if (identityId === "") return [];
  const place = parseIdentity(identityId);
  const problems: (Problem | false)[] = [
    place === undefined &&
      wants(
        "identityId",
        identityId,
        "Azure's id of a user-assigned identity, as `az identity show --query id` prints it",
        example,
      ),
    isInOwnGroup(settings, place?.resourceGroup) &&
      wants(
        "identityId",
        identityId,
        `an identity in another resource group than ${settings.clusterName}, which pulumi destroy deletes with all that is in it`,
        example,
      ),
    servicePrincipal !== undefined && {
      key: "identityId",
      is: "is set beside servicePrincipalClientId",
      expected:
        "one of the two, since the cloud provider and the disk driver log in as one of them",
      fix: toRemove("identityId"),
    },
  ];
  return problems.filter((problem) => problem !== false);
}
