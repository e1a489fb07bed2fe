import { entry, toSet } from "../settings/problem";

/** What a policy has compared, as Azure shows it among `evaluatedExpressions`. */
export interface Comparison {
  readonly expression?: string;
  /** Where the field is in the resource. */
  readonly path?: string;
  /** Missing where the resource does not have it. */
  readonly expressionValue?: unknown;
  readonly operator?: string;
  readonly targetValue?: unknown;
}

const fieldOf = ({ path, expression }: Comparison): string => String(path ?? expression);

/** The name of the tag that a field is. */
const tagIn = (field: string): string | undefined =>
  (/^tags\[['"]?(.+?)['"]?\]$/i.exec(field) ?? /^tags\.(.+)$/i.exec(field))?.[1];

/** Whether all that it looked at is known before the resource is made: a tag is there or not. */
export const isKnown = (comparison: Comparison): boolean =>
  comparison.expressionValue !== undefined || tagIn(fieldOf(comparison)) !== undefined;

/** What was looked at, for people; of the type, by which a policy finds what it is for, only if that is all. */
export function shownComparisons(comparisons: readonly Comparison[]): string[] {
  const others = comparisons.filter((one) => !/^(type|\[field\('type'\)\])$/i.test(fieldOf(one)));
  const shown = (others.length > 0 ? others : comparisons.slice(0, 1)).map((one) => {
    const { expressionValue: value, operator, targetValue } = one;
    const is = value === undefined ? "missing" : JSON.stringify(value);
    return `${fieldOf(one)}, which is ${is}, by ${String(operator)} ${JSON.stringify(targetValue)}`;
  });
  return [...new Set(shown)];
}

/** Properties of Azure's, and what decides them: after "Set". */
const decided: readonly (readonly [property: RegExp, by: string])[] = [
  [/^location$/i, `location to what it allows (${toSet("location", "REGION")})`],
  [/virtualMachines\/sku|vmSize/i, "controlPlaneSize or workerPools to what it allows"],
  [/osDisk\..*storageAccountType/i, `osDiskSku to what it allows (${toSet("osDiskSku", "SKU")})`],
  [/osDisk\.diskSizeGB/i, `osDiskSizeGb to what it allows (${toSet("osDiskSizeGb", "GB")})`],
  [/encryptionAtHost/i, `encryptionAtHost to what it allows (${toSet("encryptionAtHost", true)})`],
  [
    /diskEncryptionSet/i,
    `diskEncryptionSetId to what it allows (${toSet("diskEncryptionSetId", "ID")})`,
  ],
];

/** The way on without it, by what is not allowed. */
const without: readonly (readonly [type: RegExp, by: string])[] = [
  [
    /\/publicIPAddresses$/i,
    `apiAccess to private and egress to none (${toSet("apiAccess", "private")}; ${toSet("egress", "none")})`,
  ],
  [/\/natGateways$/i, `egress to none (${toSet("egress", "none")})`],
  [
    /\/(virtualNetworks|networkSecurityGroups|routeTables)$/i,
    `nodeSubnets to subnets that exist already (${toSet("nodeSubnets[0]", "ID")})`,
  ],
  [/\/privateDnsZones$/i, `apiName to a name in DNS of your own (${toSet("apiName", "NAME")})`],
  [
    /\/userAssignedIdentities$/i,
    `identityId, and kubeletIdentityId where there are registries, to identities that exist already (${toSet("identityId", "ID")}; ${toSet("kubeletIdentityId", "ID")})`,
  ],
  [
    /\/resourceGroups$/i,
    `resourceGroup to one that exists already (${toSet("resourceGroup", "NAME")})`,
  ],
];

/** The settings that decide what was compared, each as the end of a sentence that begins with "Set". */
export function settingsFor(comparisons: readonly Comparison[]): string[] {
  const found = comparisons.flatMap((one): string[] => {
    const field = fieldOf(one);
    const tag = tagIn(field);
    if (tag !== undefined) {
      const setting = entry("tags", tag);
      return [`${setting} to what it allows (${toSet(setting, "VALUE")})`];
    }
    const type = field === "type" ? String(one.expressionValue) : "";
    return [
      ...decided.filter(([property]) => property.test(field)),
      ...without.filter(([of]) => of.test(type)),
    ].map(([, by]) => by);
  });
  return [...new Set(found)];
}
