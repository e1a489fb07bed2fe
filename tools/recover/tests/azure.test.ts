import { idOfCreated, subscriptionIn, unknown } from "../azure";

const subscription = "5ca1ab1e-0000-4000-8000-000000000001";

const created = (type: string, inputs: Record<string, unknown>) =>
  idOfCreated({ urn: "urn", type: `azure-native:${type}`, inputs }, subscription);

it.each([
  {
    type: "compute:VirtualMachineExtension",
    inputs: { resourceGroupName: "g", vmName: "m", vmExtensionName: "bootstrap" },
    id: `/subscriptions/${subscription}/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m/extensions/bootstrap`,
  },
  {
    type: "authorization:RoleAssignment",
    inputs: { scope: `/subscriptions/${subscription}`, roleAssignmentName: "r" },
    id: `/subscriptions/${subscription}/providers/Microsoft.Authorization/roleAssignments/r`,
  },
  {
    type: "resources:ResourceGroup",
    inputs: { resourceGroupName: "g" },
    id: `/subscriptions/${subscription}/resourceGroups/g`,
  },
])("knows where a $type is made", ({ type, inputs, id }) => {
  expect(created(type, inputs)).toBe(id);
});

it("knows no id while a part of it is unknown, or of a type that is none of the program's", () => {
  expect(created("resources:ResourceGroup", { resourceGroupName: unknown })).toBeUndefined();
  expect(created("resources:ResourceGroup", {})).toBeUndefined();
  expect(created("web:WebApp", { name: "a" })).toBeUndefined();
});

it("reads the subscription from what is Azure's, and from nothing else", () => {
  const other = { urn: "a", type: "other:a:B", custom: true, id: "/subscriptions/0" };
  const scope = `/subscriptions/${subscription}`;
  const planned = { urn: "b", type: "azure-native:a:B", custom: true, inputs: { scope } };

  expect(subscriptionIn([other])).toBeUndefined();
  expect(subscriptionIn([other, planned])).toBe(subscription);
});
