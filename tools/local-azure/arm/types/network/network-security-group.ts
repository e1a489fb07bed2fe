import { Address4, Address6 } from "ip-address";

import { refuse, subResourceNotFound } from "../../azure-error";
import { Body, keyOf, View, withoutUndefined } from "../../resources/resource";
import { ResourceType, Right } from "../resource-type";
import {
  checkNames,
  checkThere,
  ChildList,
  guidOf,
  networkName,
  Ref,
  referrersOfType,
} from "./common";

export type RuleBody = {
  access: string;
  direction: string;
  priority: number;
  protocol: string;
  sourceAddressPrefix?: string;
  sourceAddressPrefixes?: string[];
  sourceApplicationSecurityGroups?: Ref[];
  sourcePortRange?: string;
  sourcePortRanges?: string[];
  destinationAddressPrefix?: string;
  destinationAddressPrefixes?: string[];
  destinationApplicationSecurityGroups?: Ref[];
  destinationPortRange?: string;
  destinationPortRanges?: string[];
};

const groupsOf = (body: RuleBody): Ref[] => [
  ...(body.sourceApplicationSecurityGroups ?? []),
  ...(body.destinationApplicationSecurityGroups ?? []),
];

/** Azure has an operation by which a rule joins such a group, and asks for the right to it as to all that a body names. */
const rightsToGroups = (body: RuleBody): Right[] =>
  groupsOf(body)
    .flatMap(({ id }) => id ?? [])
    .map((scope) => ({
      action: "Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action",
      scope,
    }));

export const securityRule: ResourceType<RuleBody> = {
  token: "azure-native:network:SecurityRule",
  type: "Microsoft.Network/networkSecurityGroups/securityRules",
  name: networkName,
  lock: ({ parent }) => parent,
  notFound: subResourceNotFound,
  linkedRights: rightsToGroups,

  accept({ id, body }, view) {
    checkRule(body, id.id, view);
    const siblings = view
      .children(id.parent, securityRule.type)
      .filter((sibling) => keyOf(sibling.id) !== id.key)
      .map((sibling) => ({ ...(sibling.body as RuleBody), name: sibling.id.split("/").at(-1)! }));
    checkPrioritiesUnique([...siblings, { ...body, name: id.name }]);
    return { body: completeRule(body) };
  },
};

/** Adds defaults. */
const completeRule = (body: RuleBody): RuleBody & Body => ({
  sourceAddressPrefixes: [],
  sourcePortRanges: [],
  destinationAddressPrefixes: [],
  destinationPortRanges: [],
  ...body,
});

function checkPrioritiesUnique(rules: readonly (RuleBody & { name: string })[]): void {
  const names = new Map<string, string>();
  for (const { name, priority, direction } of rules) {
    const key = `${direction.toLowerCase()} ${priority}`;
    const other = names.get(key);
    if (other !== undefined) {
      throw refuse(
        "SecurityRuleConflict",
        `Security rule ${name} conflicts with rule ${other}. Rules cannot have the same Priority and Direction.`,
      );
    }
    names.set(key, name);
  }
}

function checkRule(rule: RuleBody, id: string, view: View): void {
  checkThere(id, groupsOf(rule), view);
  const { priority } = rule;
  if (!Number.isInteger(priority) || priority < 100 || priority > 4096) {
    throw refuse(
      "SecurityRuleInvalidPriority",
      `Security rule has invalid Priority. Value provided: ${priority} Allowed range 100-4096.`,
    );
  }
  for (const property of ["access", "direction", "protocol"] as const) {
    if (rule[property] !== undefined) continue;
    throw refuse("InvalidRequestFormat", `Cannot parse the request: ${id} has no ${property}.`);
  }
  checkSide(
    "source",
    rule.sourceAddressPrefix,
    rule.sourceAddressPrefixes,
    rule.sourceApplicationSecurityGroups,
    id,
  );
  checkSide(
    "destination",
    rule.destinationAddressPrefix,
    rule.destinationAddressPrefixes,
    rule.destinationApplicationSecurityGroups,
    id,
  );
  if ([rule.sourcePortRanges, rule.destinationPortRanges].some((ranges) => ranges?.includes("*"))) {
    throw refuse(
      "SecurityRuleParameterContainsInvalidPortRanges",
      `Security rule ${id} has '*' in a list of port ranges.`,
    );
  }
  for (const range of [
    ...list("sourcePortRange", rule.sourcePortRange, rule.sourcePortRanges, id),
    ...list("destinationPortRange", rule.destinationPortRange, rule.destinationPortRanges, id),
  ]) {
    if (isPortRange(range)) continue;
    throw refuse(
      "SecurityRuleInvalidPortRange",
      `Security rule has invalid Port range. Value provided: ${range}. Value should be an integer OR integer range with '-' delimiter. ` +
        "Valid range 0-65535.",
    );
  }
}

function checkSide(
  side: string,
  one: string | undefined,
  many: string[] | undefined,
  groups: unknown[] | undefined,
  id: string,
): void {
  if (groups !== undefined && groups.length > 0) return;
  const parameter = `${side}AddressPrefix`;
  const prefixes = list(parameter, one, many, id);
  for (const prefix of prefixes) {
    const isTag = prefix === "*" || /^[A-Za-z][A-Za-z0-9.]*$/.test(prefix);
    if (isTag && many?.includes(prefix)) {
      throw refuse(
        "SecurityRuleParameterContainsUnsupportedValue",
        `Security rule parameter ${parameter} for rule with Id ${id} cannot specify existing VIRTUALNETWORK, INTERNET, AZURELOADBALANCER, '*' ` +
          `or system tags. Unsupported value used: ${prefix}.`,
      );
    }
    if (isTag || addressesOf(prefix) !== undefined) continue;
    throw refuse(
      "SecurityRuleInvalidAddressPrefix",
      `Security rule has invalid Address prefix. Value provided: ${prefix}`,
    );
  }
  for (const [index, prefix] of prefixes.entries()) {
    const other = prefixes.slice(0, index).find((before) => areOverlapping(before, prefix));
    if (other === undefined) continue;
    throw refuse(
      "OverlappingSubnetsNotPermittedInSecurityRule",
      `Security rule parameter ${parameter} for rule with Id ${id} contains overlapping subnets [${other}, ${prefix}], which is not permitted.`,
    );
  }
}

/** Undefined for what is none, also for a range with host bits. */
function addressesOf(prefix: string): Address4 | Address6 | undefined {
  const kind = [Address4, Address6].find((one) => one.isValid(prefix));
  const range = kind && new kind(prefix);
  return range?.bigInt() === range?.startAddress().bigInt() ? range : undefined;
}

function areOverlapping(one: string, other: string): boolean {
  const [a, b] = [addressesOf(one), addressesOf(other)];
  if (a instanceof Address4) return b instanceof Address4 && (a.isInSubnet(b) || b.isInSubnet(a));
  return a instanceof Address6 && b instanceof Address6 && (a.isInSubnet(b) || b.isInSubnet(a));
}

/** Values of the singular or the plural property; one of them is required. */
function list(
  property: string,
  one: string | undefined,
  many: string[] | undefined,
  id: string,
): string[] {
  const all = [...(one === undefined || one === "" ? [] : [one]), ...(many ?? [])];
  if (all.length === 0) {
    throw refuse(
      "SecurityRuleParameterNotSpecified",
      `Required security rule parameters are missing for security rule with Id: ${id}. ` +
        `Security rule must specify either ${property} or its plural.`,
    );
  }
  if (all.length > (many ?? []).length && many?.length) {
    throw refuse(
      "InvalidRequestFormat",
      `Cannot parse the request: ${id} has both ${property} and its plural.`,
    );
  }
  return all;
}

function isPortRange(range: string): boolean {
  if (range === "*") return true;
  const ports = range.split("-").map((port) => (/^\d+$/.test(port) ? Number(port) : Number.NaN));
  const [first = Number.NaN, last = first] = ports;
  return ports.length <= 2 && first <= last && last <= 65535;
}

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
  linkedRights: ({ securityRules = [] }) => securityRules.flatMap(rightsToGroups),

  accept({ id, body, old }, view) {
    const securityRules = body.securityRules ?? [];
    checkNames(id.id, "securityRules", securityRules);
    securityRules.forEach((rule) => checkRule(rule, rules.idOf(id.id, rule.name), view));
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
