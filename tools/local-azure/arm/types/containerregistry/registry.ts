import { conflict, refuse } from "../../azure-error";
import { keyOf } from "../../resources/resource";
import type { ResourceType } from "../resource-type";

export type RegistryBody = {
  location: string;
  sku: { name: string };
  adminUserEnabled?: boolean;
  roleAssignmentMode?: string;
  creationDate?: string;
};

export const registryType = "Microsoft.ContainerRegistry/registries";
/** Below which each registry has a name of its own. */
export const registryDomain = "azurecr.io";

const skus = ["Basic", "Standard", "Premium"];
const modes = ["LegacyRegistryPermissions", "AbacRepositoryPermissions"];

/** A registry as Resource Manager shows it. */
export const registry: ResourceType<RegistryBody> = {
  token: "azure-native:containerregistry:Registry",
  type: registryType,
  besides: ["roleAssignmentMode"],
  required: ["sku.name"],
  forceNew: ["location"],
  patches: "inputs",
  name: /^[A-Za-z0-9]{5,50}$/,

  accept({ id, body, old, now }, view) {
    const namesake = view
      .ofType(registryType)
      .some(
        (other) =>
          keyOf(other.id) !== id.key && keyOf(other.id).endsWith(`/${id.name.toLowerCase()}`),
      );
    if (namesake) {
      throw conflict(
        "AlreadyInUse",
        `The registry DNS name ${id.name}.${registryDomain} is already in use.`,
      );
    }
    const { roleAssignmentMode = old?.body.roleAssignmentMode ?? modes[0]! } = body;
    for (const [property, value, known] of [
      ["sku.name", body.sku.name, skus],
      ["roleAssignmentMode", roleAssignmentMode, modes],
    ] as const) {
      if (!known.includes(value)) {
        throw refuse("InvalidParameter", `Parameter '${property}' has invalid value '${value}'.`);
      }
    }
    const filled = {
      adminUserEnabled: false,
      publicNetworkAccess: "Enabled",
      ...body,
      roleAssignmentMode,
      loginServer: `${id.name.toLowerCase()}.${registryDomain}`,
      creationDate: old?.body.creationDate ?? now.toISOString(),
    };
    return { body: filled };
  },
};
