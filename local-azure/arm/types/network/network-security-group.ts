import { refuse } from "../../azure-error";
import { keyOf } from "../../ids";
import { Body, Ledger, pick, Resource, View, withoutUndefined } from "../../resource";
import { Accepted, Put, ResourceType } from "../../resource-type";
import { guidOf, networkName, referrersOfType } from "./common";
import {
  checkPrioritiesUnique,
  checkRule,
  completeRule,
  RuleBody,
  ruleType,
  securityRule,
} from "./security-rule";

type NetworkSecurityGroupBody = {
  location: string;
  securityRules?: (RuleBody & { name: string })[];
  defaultSecurityRules?: object[];
};

const childId = (id: string, name: string) => `${id}/securityRules/${name}`;

export const networkSecurityGroup: ResourceType<NetworkSecurityGroupBody> = {
  token: "azure-native:network:NetworkSecurityGroup",
  type: "Microsoft.Network/networkSecurityGroups",
  apiVersion: "2024-05-01",
  path: "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Network/networkSecurityGroups/{networkSecurityGroupName}",
  autoName: "random",
  inputs: ["flushConnection", "location", "securityRules", "tags"],
  required: [],
  maintainIfUnset: ["securityRules"],
  nested: ["securityRules[]", "defaultSecurityRules[]"],
  name: networkName,
  lock: ({ id }) => id,

  accept({ id, body, old }: Put<NetworkSecurityGroupBody>): Accepted<NetworkSecurityGroupBody> {
    const rules = body.securityRules ?? [];
    rules.forEach((rule) => checkRule(rule, childId(id.id, rule.name)));
    checkPrioritiesUnique(rules);
    return {
      body: {
        ...body,
        ...guidOf(old?.body),
        securityRules: rules,
        defaultSecurityRules: defaultRules.map((rule) => ({
          ...rule,
          id: `${id.id}/defaultSecurityRules/${rule.name}`,
          provisioningState: "Succeeded",
        })),
      },
    };
  },

  // A PUT replaces all rules, also those that are resources of their own.
  commit(resource: Resource<NetworkSecurityGroupBody>, ledger: Ledger, now: Date): void {
    const wanted = resource.body.securityRules ?? [];
    for (const child of ledger.children(resource.id)) {
      const isKept = wanted.some(
        ({ name }) => keyOf(childId(resource.id, name)) === keyOf(child.id),
      );
      if (!isKept) ledger.remove(child.id);
    }
    for (const { name, ...sent } of wanted) {
      const rule = pick(sent, securityRule.inputs) as RuleBody;
      const id = childId(resource.id, name);
      ledger.put({
        id: ledger.find(id)?.id ?? id,
        type: ruleType,
        body: { ...completeRule(rule), provisioningState: "Succeeded" },
        hidden: {},
        changed: now.toISOString(),
      });
    }
    delete resource.body.securityRules;
  },

  shown: ({ id }, view: View): Body =>
    withoutUndefined({
      securityRules: view.children(id).map((child) => ({
        ...child.body,
        id: child.id,
        name: child.id.split("/").at(-1),
        type: ruleType,
      })),
      subnets: referrersOfType(view, id, "Microsoft.Network/virtualNetworks"),
      networkInterfaces: referrersOfType(view, id, "Microsoft.Network/networkInterfaces"),
    }),

  mayDelete({ id }, view: View): void {
    const users = view.referrers(id);
    if (users.length === 0) return;
    throw refuse(
      "InUseNetworkSecurityGroupCannotBeDeleted",
      `Network security group ${id} cannot be deleted because it is in use by the following resources: ` +
        `${users.map(({ from }) => from).join(", ")}. In order to delete the Network security group, remove the association ` +
        "with the resource(s). To learn how to do this, see aka.ms/deletensg.",
    );
  },
};

const any = { protocol: "*", sourcePortRange: "*", destinationPortRange: "*" } as const;

const defaultRules = [
  {
    name: "AllowVnetInBound",
    access: "Allow",
    direction: "Inbound",
    priority: 65000,
    sourceAddressPrefix: "VirtualNetwork",
    destinationAddressPrefix: "VirtualNetwork",
    ...any,
  },
  {
    name: "AllowAzureLoadBalancerInBound",
    access: "Allow",
    direction: "Inbound",
    priority: 65001,
    sourceAddressPrefix: "AzureLoadBalancer",
    destinationAddressPrefix: "*",
    ...any,
  },
  {
    name: "DenyAllInBound",
    access: "Deny",
    direction: "Inbound",
    priority: 65500,
    sourceAddressPrefix: "*",
    destinationAddressPrefix: "*",
    ...any,
  },
  {
    name: "AllowVnetOutBound",
    access: "Allow",
    direction: "Outbound",
    priority: 65000,
    sourceAddressPrefix: "VirtualNetwork",
    destinationAddressPrefix: "VirtualNetwork",
    ...any,
  },
  {
    name: "AllowInternetOutBound",
    access: "Allow",
    direction: "Outbound",
    priority: 65001,
    sourceAddressPrefix: "*",
    destinationAddressPrefix: "Internet",
    ...any,
  },
  {
    name: "DenyAllOutBound",
    access: "Deny",
    direction: "Outbound",
    priority: 65500,
    sourceAddressPrefix: "*",
    destinationAddressPrefix: "*",
    ...any,
  },
] as const;
