import { parseIdentity } from "../identity-id";
import { Problem, toRemove } from "../problem";
import type { Settings } from "../settings";
import { idOfOthersProblems } from "./id-of-others";

const example =
  "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/identities/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes";

/** What is wrong with the id of an identity that exists already. */
export function existingIdentityProblems(settings: Settings): Problem[] {
  const { identityId, servicePrincipal } = settings;
  if (identityId === "") return [];
  const problems: (Problem | false)[] = [
    ...idOfOthersProblems(settings, {
      key: "identityId",
      id: identityId,
      place: parseIdentity(identityId),
      expected:
        "Azure's id of a user-assigned identity, as `az identity show --query id` prints it",
      what: "an identity",
      example,
    }),
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
