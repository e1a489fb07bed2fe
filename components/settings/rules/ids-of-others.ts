import {
  parseDiskEncryptionSet,
  parseGalleryImage,
  parseIdentity,
  parseSubnet,
} from "../azure-ids";
import { found, Problem, findings, toRemove, wants } from "../problem";
import type { Settings } from "../settings";

interface Given {
  readonly key: string;
  readonly id: string;
  /** The parts of the id; undefined where it is none. */
  readonly place: { readonly resourceGroup: string } | undefined;
  /** What the id is expected to be. */
  readonly expected: string;
  /** With its article. */
  readonly what: string;
  readonly example: string;
}

/** What is wrong with the id of something that others have made, and that this cluster only uses. */
export function idOfOthersProblems(
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  { key, id, place, expected, what, example }: Given,
): Problem[] {
  if (place === undefined) return [wants(key, id, expected, example)];
  if (!isInOwnGroup(settings, place.resourceGroup)) return [];
  const group = `in another resource group than ${settings.clusterName}, which pulumi destroy deletes with all that is in it`;
  return [wants(key, id, `${what} ${group}`, example)];
}

/** An id for the command of a message: its resource group, and what is in that. */
export const exampleId = (path: string): string =>
  `/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/${path}`;

/** What is wrong with the id of a user-assigned identity; nothing where there is none. */
export const identityIdProblems = (
  settings: Parameters<typeof idOfOthersProblems>[0],
  key: string,
  id: string,
  example: string,
): Problem[] =>
  id === ""
    ? []
    : idOfOthersProblems(settings, {
        ...{ key, id, example },
        place: parseIdentity(id),
        expected:
          "Azure's id of a user-assigned identity, as `az identity show --query id` prints it",
        what: "an identity",
      });

/** Whether something is in the resource group that this program makes, and that goes with all that is in it. */
const isInOwnGroup = (
  { clusterName, resourceGroup }: Pick<Settings, "clusterName" | "resourceGroup">,
  group: string | undefined,
): boolean => resourceGroup === "" && group?.toLowerCase() === clusterName.toLowerCase();

/** What is wrong with the id of a disk encryption set. */
export const diskEncryptionSetProblems = (settings: Settings): Problem[] =>
  settings.diskEncryptionSetId === ""
    ? []
    : idOfOthersProblems(settings, {
        key: "diskEncryptionSetId",
        id: settings.diskEncryptionSetId,
        place: parseDiskEncryptionSet(settings.diskEncryptionSetId),
        expected:
          "Azure's id of a disk encryption set, as `az disk-encryption-set show --query id` prints it",
        what: "a set",
        example: exampleId("keys/providers/Microsoft.Compute/diskEncryptionSets/kubernetes"),
      });

const exampleIdentity = exampleId(
  "identities/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes",
);

/** What is wrong with the id of an identity that exists already. */
export function existingIdentityProblems(settings: Settings): Problem[] {
  const { identityId, servicePrincipal } = settings;
  if (identityId === "") return [];
  return findings(
    ...identityIdProblems(settings, "identityId", identityId, exampleIdentity),
    servicePrincipal !== undefined && {
      key: "identityId",
      is: "is set beside servicePrincipalClientId",
      expected:
        "one of the two, since the cloud provider and the disk driver log in as one of them",
      fix: toRemove("identityId"),
    },
  );
}

/** What is wrong with the id of a gallery image version. */
export const galleryImageProblems = (settings: Settings): Problem[] =>
  settings.image === ""
    ? []
    : idOfOthersProblems(settings, {
        key: "image",
        id: settings.image,
        place: parseGalleryImage(settings.image),
        expected:
          "Azure's id of one version of a gallery image, as npm run image prints it; latest would differ from machine to machine",
        what: "an image",
        example: exampleId(
          "images/providers/Microsoft.Compute/galleries/zoned/images/node/versions/1.0.0",
        ),
      });

const exampleSubnet = exampleId(
  "network/providers/Microsoft.Network/virtualNetworks/spoke/subnets/nodes",
);

/** What is wrong with the ids of subnets that exist already. */
export function nodeSubnetProblems(settings: Settings): Problem[] {
  const { nodeSubnets, zones } = settings;
  const same = (one: string | undefined, other: string | undefined) =>
    one?.toLowerCase() === other?.toLowerCase();
  const first = parseSubnet(nodeSubnets[0] ?? "")?.networkId;
  const isOther = ![0, 1, zones.length].includes(nodeSubnets.length);
  return findings(
    isOther && {
      key: "nodeSubnets",
      is: `has ${nodeSubnets.length} entries`,
      expected: `one subnet for all zones, or one for each of the ${zones.length} in zones, in the same order`,
      fix: toRemove(`nodeSubnets[${nodeSubnets.length - 1}]`),
    },
    ...nodeSubnets.flatMap((id, index) => {
      const key = `nodeSubnets[${index}]`;
      const place = parseSubnet(id);
      const ofId = idOfOthersProblems(settings, {
        key,
        id,
        place,
        expected: "Azure's id of a subnet, as `az network vnet subnet show --query id` prints it",
        what: "a subnet",
        example: exampleSubnet,
      });
      if (place === undefined || ofId.length > 0) return ofId;
      if (same(place.networkId, first)) return [];
      return {
        key,
        is: found(id),
        expected: `a subnet of the virtual network of the first one, ${first}, since a balancer reaches one network`,
        fix: toRemove(key),
      };
    }),
  );
}
