import { Address4, Address6 } from "ip-address";

import { refuse, subResourceNotFound } from "../../azure-error";
import { Body, keyOf, withoutUndefined } from "../../resources/resource";
import { ResourceType, Right } from "../resource-type";
import { ChildList, guidOf, networkName, Ref, referrersOfType } from "./common";

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

/** Azure has an operation by which a rule joins such a group, and asks for the right to it as to all that a body names. */
const rightsToGroups = (body: RuleBody): Right[] =>
  [
    ...(body.sourceApplicationSecurityGroups ?? []),
    ...(body.destinationApplicationSecurityGroups ?? []),
  ]
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
    checkRule(body, id.id);
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

function checkRule(rule: RuleBody, id: string): void {
  const { priority, access, direction, protocol } = rule;
  if (!Number.isInteger(priority) || priority < 100 || priority > 4096) {
    throw refuse(
      "SecurityRuleInvalidPriority",
      `Security rule has invalid Priority. Value provided: ${priority} Allowed range 100-4096.`,
    );
  }
  const enumerations: [string, string, readonly string[]][] = [
    ["access", access, ["Allow", "Deny"]],
    ["direction", direction, ["Inbound", "Outbound"]],
    ["protocol", protocol, ["Tcp", "Udp", "Icmp", "Esp", "Ah", "*"]],
  ];
  for (const [property, value, allowed] of enumerations) {
    if (allowed.some((one) => one.toLowerCase() === String(value).toLowerCase())) continue;
    throw refuse(
      "InvalidRequestFormat",
      `Cannot parse the request: ${property} of ${id} is ${JSON.stringify(value)}; allowed values are ${allowed.join(", ")}.`,
    );
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
  for (const prefix of list(`${side}AddressPrefix`, one, many, id)) {
    const isTag = prefix === "*" || /^[A-Za-z][A-Za-z0-9.]*$/.test(prefix);
    if (isTag || Address4.isValid(prefix) || Address6.isValid(prefix)) continue;
    throw refuse(
      "SecurityRuleInvalidAddressPrefix",
      `Security rule has invalid Address prefix. Value provided: ${prefix}`,
    );
  }
}

/** Values of the singular and the plural property; at least one is required. */
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
