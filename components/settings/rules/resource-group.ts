import { Problem, wants } from "../problem";
import type { Settings } from "../settings";

/**
 * What is wrong with the name of a resource group that exists already.
 *
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
 */
export function resourceGroupProblems({
  resourceGroup,
}: Pick<Settings, "resourceGroup">): Problem[] {
  if (resourceGroup === "" || /^[\p{L}\p{N}_().-]{0,89}[\p{L}\p{N}_()-]$/u.test(resourceGroup)) {
    return [];
  }
  const [, name = "platform"] = /\/resourceGroups\/([^/]+)/i.exec(resourceGroup) ?? [];
  return [
    wants(
      "resourceGroup",
      resourceGroup,
      "the name of a resource group as `az group list --query '[].name'` prints it, not its id",
      name,
    ),
  ];
}
