import { refuse } from "../../azure-error";
import { withoutUndefined } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { ChildList, guidOf, networkName, referrersOfType } from "./common";
import {
  checkPrioritiesUnique,
  checkRule,
  completeRule,
  RuleBody,
  securityRule,
} from "./security-rule";

type NetworkSecurityGroupBody = {
  location: string;
  securityRules?: (RuleBody & { name: string })[];
  defaultSecurityRules?: object[];
};

const rules = new ChildList("securityRules", securityRule, completeRule);

export const networkSecurityGroup: ResourceType<NetworkSecurityGroupBody> = {
  token: "azure-native:network:NetworkSecurityGroup",
  type: "Microsoft.Network/networkSecurityGroups",
  maintainIfUnset: ["securityRules"],
  nested: ["securityRules[]", "defaultSecurityRules[]"],
  name: networkName,
  lock: ({ id }) => id,

  accept({ id, body, old }) {
    const securityRules = body.securityRules ?? [];
    securityRules.forEach((rule) => checkRule(rule, rules.idOf(id.id, rule.name)));
    checkPrioritiesUnique(securityRules);
    return {
      body: {
        ...body,
        ...guidOf(old?.body),
        securityRules,
        defaultSecurityRules: defaultRules.map((rule) => ({
          ...rule,
          id: `${id.id}/defaultSecurityRules/${rule.name}`,
          provisioningState: "Succeeded",
        })),
      },
    };
  },

  commit: (resource, ledger, now) => rules.commit(resource, ledger, now),

  shown: ({ id }, view) =>
    withoutUndefined({
      securityRules: rules.shown(id, view),
      subnets: referrersOfType(view, id, "Microsoft.Network/virtualNetworks"),
      networkInterfaces: referrersOfType(view, id, "Microsoft.Network/networkInterfaces"),
    }),

  inUse: (id, users) =>
    refuse(
      "InUseNetworkSecurityGroupCannotBeDeleted",
      `Network security group ${id} cannot be deleted because it is in use by the following resources: ` +
        `${users.map(({ from }) => from).join(", ")}. In order to delete the Network security group, remove the association ` +
        "with the resource(s). To learn how to do this, see aka.ms/deletensg.",
    ),
};

type DefaultRule = [name: string, priority: number, source: string, destination: string];

/** Azure's own, which come after all others. */
const defaultRules = (
  [
    ["AllowVnetInBound", 65000, "VirtualNetwork", "VirtualNetwork"],
    ["AllowAzureLoadBalancerInBound", 65001, "AzureLoadBalancer", "*"],
    ["DenyAllInBound", 65500, "*", "*"],
    ["AllowVnetOutBound", 65000, "VirtualNetwork", "VirtualNetwork"],
    ["AllowInternetOutBound", 65001, "*", "Internet"],
    ["DenyAllOutBound", 65500, "*", "*"],
  ] as DefaultRule[]
).map(([name, priority, sourceAddressPrefix, destinationAddressPrefix]) => ({
  name,
  access: name.startsWith("Allow") ? "Allow" : "Deny",
  direction: name.endsWith("InBound") ? "Inbound" : "Outbound",
  ...{ priority, sourceAddressPrefix, destinationAddressPrefix },
  ...{ protocol: "*", sourcePortRange: "*", destinationPortRange: "*" },
}));
