import { AzureError, conflict, refuse } from "../../azure-error";
import { checkCondition, checkExpression } from "../../policy/rule";
import {
  type ArmId,
  type Body,
  isWithin,
  keyOf,
  parseId,
  type Resource,
  View,
} from "../../resources/resource";
import { ResourceType } from "../resource-type";

export type PolicyAssignmentBody = {
  readonly displayName?: string;
  readonly policyDefinitionId: string;
  readonly parameters?: Readonly<Record<string, { readonly value: unknown }>>;
  readonly notScopes?: readonly string[];
  /** DoNotEnforce: only what Azure reports changes by it. */
  readonly enforcementMode?: string;
  /** What is said to whoever it refuses something. */
  readonly nonComplianceMessages?: readonly { readonly message: string }[];
};

export const policyAssignmentType = "Microsoft.Authorization/policyAssignments";

export const policyAssignment: ResourceType<PolicyAssignmentBody> = {
  token: "azure-native:authorization:PolicyAssignment",
  type: policyAssignmentType,
  isStateless: true,
  // Needed by effects that the local Azure does not know.
  readOnly: ["location"],
  required: ["policyDefinitionId"],
  name: /^[^<>*%&:\\?.+/]{1,128}$/,

  accept({ id, body }, view) {
    const { policyDefinitionId, enforcementMode = "Default" } = body;
    const definition = definitionOf(policyDefinitionId, view);
    if (definition === undefined) {
      throw new AzureError(
        404,
        "PolicyDefinitionNotFound",
        `The policy definition '${policyDefinitionId}' could not be found.`,
      );
    }
    const { parameters: known = {} } = definition;
    const given = body.parameters ?? {};
    const unknown = Object.keys(given).filter((name) => !(name in known));
    const missing = Object.entries(known)
      .filter(([name, { defaultValue }]) => defaultValue === undefined && !(name in given))
      .map(([name]) => name);
    if (unknown.length > 0) {
      throw refuse(
        "UndefinedPolicyParameter",
        `The policy assignment '${id.name}' has defined parameters '${unknown.join(",")}' which are not defined in the policy definition '${policyDefinitionId}'.`,
      );
    }
    if (missing.length > 0) {
      throw refuse(
        "MissingPolicyParameter",
        `The policy assignment '${id.name}' is missing the parameter(s) '${missing.join(",")}' as defined in the policy definition '${policyDefinitionId}'.`,
      );
    }
    for (const [name, { value }] of Object.entries(given)) {
      const allowed = known[name]!.allowedValues;
      if (allowed === undefined || allowed.includes(value)) continue;
      throw refuse(
        "PolicyParameterValueNotAllowed",
        `The value '${String(value)}' is not allowed for policy parameter '${name}' in policy definition '${policyDefinitionId}'. ` +
          `The allowed values are '${allowed.join(", ")}'.`,
      );
    }
    return { body: { ...body, enforcementMode } };
  },
};

export const policyDefinition: ResourceType<PolicyDefinitionBody> = {
  token: "azure-native:authorization:PolicyDefinition",
  type: "Microsoft.Authorization/policyDefinitions",
  isStateless: true,
  required: ["policyRule.if", "policyRule.then.effect"],
  name: /^[^<>*%&:\\?.+/]{1,128}$/,

  accept({ id, body }) {
    const { policyRule, mode = "Indexed" } = body;
    try {
      if (!/^(all|indexed)$/i.test(mode)) throw new Error(`its mode is '${mode}'`);
      checkCondition(policyRule.if);
      checkExpression(policyRule.then.effect);
      if (!/^(\[.*\]|audit|deny|disabled)$/i.test(policyRule.then.effect)) {
        throw new Error("the local Azure knows the effects audit, deny and disabled");
      }
    } catch (error) {
      throw refuse(
        "InvalidPolicyRule",
        `Failed to parse policy rule: '${(error as Error).message}'. (${id.name})`,
      );
    }
    return { body: { ...body, mode } };
  },
};

/** A definition of the subscription, or one that every tenant has. */
export function definitionOf(id: string, view: View): PolicyDefinitionBody | undefined {
  const [, builtIn = ""] =
    /^\/providers\/Microsoft\.Authorization\/policyDefinitions\/([^/]+)$/i.exec(id) ?? [];
  return (
    builtInPolicies[builtIn.toLowerCase()] ??
    (view.find(id)?.body as PolicyDefinitionBody | undefined)
  );
}

type PolicyExemptionBody = {
  readonly policyAssignmentId: string;
  readonly exemptionCategory: string;
  /** ISO 8601; without it, it holds until it is deleted. */
  readonly expiresOn?: string;
};

const exemptionType = "Microsoft.Authorization/policyExemptions";

export const policyExemption: ResourceType<PolicyExemptionBody> = {
  token: "azure-native:authorization:PolicyExemption",
  type: exemptionType,
  isStateless: true,

  accept({ id, body }, view) {
    const { policyAssignmentId } = body;
    const assignment = view.find(policyAssignmentId);
    if (assignment === undefined) {
      throw new AzureError(
        404,
        "PolicyAssignmentNotFound",
        `The policy assignment '${policyAssignmentId}' is not found.`,
      );
    }
    if (!isWithin(id.parent, parseId(assignment.id)!.parent)) {
      throw refuse(
        "InvalidPolicyExemption",
        `The policy exemption '${id.name}' is not within the scope of the policy assignment '${policyAssignmentId}'.`,
      );
    }
    return { body };
  },
};

/** Whether what an assignment denies is allowed at a scope all the same. */
export const isExempt = (scope: string, assignmentId: string, view: View, now: Date): boolean =>
  view.ofType(exemptionType).some(({ id, body }) => {
    const { policyAssignmentId, expiresOn } = body as PolicyExemptionBody;
    return (
      keyOf(policyAssignmentId) === keyOf(assignmentId) &&
      isWithin(scope, parseId(id)!.parent) &&
      (expiresOn === undefined || Date.parse(expiresOn) > now.getTime())
    );
  });

export type PolicyDefinitionBody = {
  readonly displayName?: string;
  /** Indexed: only types that have tags and a location, and no resource groups. */
  readonly mode?: string;
  readonly parameters?: Readonly<
    Record<
      string,
      {
        readonly type: string;
        readonly defaultValue?: unknown;
        readonly allowedValues?: readonly unknown[];
      }
    >
  >;
  readonly policyRule: { readonly if: Body; readonly then: { readonly effect: string } };
};

const text = (name: string) => ({ parameters: { [name]: { type: "String" } } });
const list = (name: string) => ({ parameters: { [name]: { type: "Array" } } });
const tag = "[concat('tags[', parameters('tagName'), ']')]";
const deny = { effect: "deny" };

/**
 * Definitions that every tenant has and that landing zones assign, by their names.
 *
 * @see https://learn.microsoft.com/azure/governance/policy/samples/built-in-policies
 */
const builtInPolicies: Readonly<Record<string, PolicyDefinitionBody>> = {
  "871b6d14-10aa-478d-b590-94f262ecfa99": {
    displayName: "Require a tag on resources",
    mode: "Indexed",
    ...text("tagName"),
    policyRule: { if: { field: tag, exists: "false" }, then: deny },
  },
  "96670d01-0a4d-4649-9c89-2d3abc0a5025": {
    displayName: "Require a tag on resource groups",
    mode: "All",
    ...text("tagName"),
    policyRule: {
      if: {
        allOf: [
          { field: "type", equals: "Microsoft.Resources/subscriptions/resourceGroups" },
          { field: tag, exists: "false" },
        ],
      },
      then: deny,
    },
  },
  "6c112d4e-5bc7-47ae-a041-ea2d9dccd749": {
    displayName: "Not allowed resource types",
    mode: "All",
    parameters: {
      ...list("listOfResourceTypesNotAllowed").parameters,
      effect: {
        type: "String",
        defaultValue: "Deny",
        allowedValues: ["Audit", "Deny", "Disabled"],
      },
    },
    policyRule: {
      if: {
        allOf: [
          { field: "type", in: "[parameters('listOfResourceTypesNotAllowed')]" },
          { value: "[field('type')]", exists: true },
        ],
      },
      then: { effect: "[parameters('effect')]" },
    },
  },
  "e56962a6-4747-49cd-b67b-bf8b01975c4c": {
    displayName: "Allowed locations",
    mode: "Indexed",
    ...list("listOfAllowedLocations"),
    policyRule: {
      if: {
        allOf: [
          { field: "location", notIn: "[parameters('listOfAllowedLocations')]" },
          { field: "location", notEquals: "global" },
        ],
      },
      then: deny,
    },
  },
  "cccc23c7-8427-4f53-ad12-b6a63eb452b3": {
    displayName: "Allowed virtual machine size SKUs",
    mode: "Indexed",
    ...list("listOfAllowedSKUs"),
    policyRule: {
      if: {
        allOf: [
          { field: "type", equals: "Microsoft.Compute/virtualMachines" },
          {
            not: {
              field: "Microsoft.Compute/virtualMachines/sku.name",
              in: "[parameters('listOfAllowedSKUs')]",
            },
          },
        ],
      },
      then: deny,
    },
  },
  "88c0b9da-ce96-4b03-9635-f29a937e2900": {
    displayName: "Network interfaces should disable IP forwarding",
    mode: "Indexed",
    policyRule: {
      if: {
        allOf: [
          { field: "type", equals: "Microsoft.Network/networkInterfaces" },
          { field: "Microsoft.Network/networkInterfaces/enableIpForwarding", equals: "true" },
        ],
      },
      then: deny,
    },
  },
  "83a86a26-fd1f-447c-b59d-e51f44264114": {
    displayName: "Network interfaces should not have public IPs",
    mode: "Indexed",
    policyRule: {
      if: {
        allOf: [
          { field: "type", equals: "Microsoft.Network/networkInterfaces" },
          {
            not: {
              field: "Microsoft.Network/networkInterfaces/ipconfigurations[*].publicIpAddress.id",
              notLike: "*",
            },
          },
        ],
      },
      then: deny,
    },
  },
};

type LockBody = {
  level: string;
  notes?: string;
};

const lockType = "Microsoft.Authorization/locks";

export const managementLock: ResourceType<LockBody> = {
  token: "azure-native:authorization:ManagementLockByScope",
  type: lockType,
  isStateless: true,

  accept: ({ body }) => ({ body }),
};

/**
 * Throws where a lock forbids it: one at the resource or above, and of a deletion also one on what is deleted
 * with it. Locks themselves are written and deleted by who has the right to.
 */
export function checkLocks(id: ArmId, operation: "write" | "delete", view: View): void {
  if (id.type.toLowerCase() === lockType.toLowerCase()) return;
  const scopeOf = (lock: Resource): string => parseId(lock.id)!.parent;
  const holds = (lock: Resource): boolean => {
    const scope = scopeOf(lock);
    const isBelow = operation === "delete" && isWithin(scope, id.id);
    const isHere = isBelow || isWithin(id.id, scope);
    return isHere && (operation === "delete" || lock.body["level"] === "ReadOnly");
  };
  const locks = view.ofType(lockType).filter(holds);
  if (locks.length === 0) return;
  throw conflict(
    "ScopeLocked",
    `The scope '${id.id}' cannot perform ${operation} operation because following scope(s) are locked: ` +
      `'${locks.map(scopeOf).join("','")}'. Please remove the lock and try again.`,
  );
}
