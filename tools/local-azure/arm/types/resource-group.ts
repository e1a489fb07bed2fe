import { conflict } from "../azure-error";
import { groupType } from "../resources/resource";
import { ResourceType } from "./resource-type";
import { checkedLocation } from "../subscription/regions";

type ResourceGroupBody = {
  location: string;
  managedBy?: string;
  tags?: Record<string, string>;
  properties?: { provisioningState: string };
};

export const resourceGroup: ResourceType<ResourceGroupBody> = {
  token: "azure-native:resources:ResourceGroup",
  type: groupType,
  forceNew: ["location"],
  name: /^[\p{L}\p{N}_().-]{0,89}[\p{L}\p{N}_()-]$/u,

  accept({ id, body, old }) {
    const location = checkedLocation(body.location, "resource group");
    if (old && old.body.location !== location) {
      throw conflict(
        "InvalidResourceGroupLocation",
        `Invalid resource group location '${location}'. The Resource group already exists in location '${old.body.location}'. ` +
          `(${id.name})`,
      );
    }
    return { body: { ...body, location, properties: { provisioningState: "Succeeded" } } };
  },
};
