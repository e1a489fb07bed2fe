import type { Body } from "../../resources/resource";

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
export const builtInPolicies: Readonly<Record<string, PolicyDefinitionBody>> = {
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
