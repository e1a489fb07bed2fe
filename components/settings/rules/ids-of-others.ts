import { found, Problem, toRemove } from "../problem";
import type { Settings } from "../settings";
import { parseSubnet } from "../subnet-id";
import { idOfOthersProblems } from "./id-of-others";

const example =
  "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/spoke/subnets/nodes";

/** What is wrong with the ids of subnets that exist already. */
export function nodeSubnetProblems(settings: Settings): Problem[] {
  const { nodeSubnets, zones } = settings;
  const same = (one: string | undefined, other: string | undefined) =>
    one?.toLowerCase() === other?.toLowerCase();
  const first = parseSubnet(nodeSubnets[0] ?? "")?.networkId;
  const isOther = ![0, 1, zones.length].includes(nodeSubnets.length);
  return [
    ...(isOther
      ? [
          {
            key: "nodeSubnets",
            is: `has ${nodeSubnets.length} entries`,
            expected: `one subnet for all zones, or one for each of the ${zones.length} in zones, in the same order`,
            fix: toRemove(`nodeSubnets[${nodeSubnets.length - 1}]`),
          },
        ]
      : []),
    ...nodeSubnets.flatMap((id, index) => {
      const key = `nodeSubnets[${index}]`;
      const place = parseSubnet(id);
      const ofId = idOfOthersProblems(settings, {
        key,
        id,
        place,
        expected: "Azure's id of a subnet, as `az network vnet subnet show --query id` prints it",
        what: "a subnet",
        example,
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
  ];
}
