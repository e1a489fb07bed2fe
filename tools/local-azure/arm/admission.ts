import { AzureError, conflict, invalidReference, missingParameter, refuse } from "./azure-error";
import {
  account,
  ArmId,
  Body,
  groupType,
  keyOf,
  locationOf,
  parseId,
  Resource,
  View,
} from "./resources/resource";
import { ResourceType, schemaOf } from "./types/resource-type";
import { checkedGlobal, checkedLocation, checkZones } from "./subscription/regions";

const inFlight = new Set(["Creating", "Updating", "Deleting"]);

export const isInFlight = ({ body }: Resource): boolean => inFlight.has(stateOf(body) ?? "");

/** A resource group has its provisioning state under `properties`, in the flat shape too. */
export const stateOf = (body: Body): string | undefined =>
  (body["provisioningState"] ??
    (body["properties"] as { provisioningState?: string } | undefined)?.provisioningState) as
    string | undefined;

export function setState(resource: Resource, state: string): void {
  if (resource.type === groupType) resource.body["properties"] = { provisioningState: state };
  else resource.body["provisioningState"] = state;
}

const resourceNotFound = (id: ArmId): AzureError =>
  new AzureError(
    404,
    "ResourceNotFound",
    `The Resource '${id.type.split("/")[0]}/${pathOf(id)}' under resource group '${id.group ?? "<null>"}' was not found. ` +
      "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
  );

const groupNotFound = (group: string): AzureError =>
  new AzureError(404, "ResourceGroupNotFound", `Resource group '${group}' could not be found.`);

const pathOf = ({ type, names }: ArmId): string =>
  type
    .split("/")
    .slice(1)
    .map((part, position) => `${part}/${names[position]}`)
    .join("/");

/**
 * Checks that apply to a PUT of every type. Returns the body with its location normalized.
 */
export function checkRequest(
  type: ResourceType,
  id: ArmId,
  body: Body,
  old: Resource | undefined,
  view: View,
): Body {
  const { inputs, required } = schemaOf(type);
  checkScope(id, view);
  if (!(type.name ?? /^[^/]{1,260}$/).test(id.name)) {
    throw refuse(
      "InvalidResourceName",
      `Resource name ${id.name} is invalid. It has to match ${String(type.name)}. (${type.type})`,
    );
  }
  for (const path of required) {
    if (path === "location" || valueAt(body, path) !== undefined) continue;
    throw missingParameter(path);
  }
  if (!inputs.includes("location") || type.type === groupType) return body;

  const location = type.isGlobal
    ? checkedGlobal(body["location"], type.type)
    : checkedLocation(body["location"], type.type);
  if (old && old.body["location"] !== location) {
    throw conflict(
      "InvalidResourceLocation",
      `The resource '${id.name}' already exists in location '${String(old.body["location"])}' in resource group '${id.group}'. ` +
        `A resource with the same name cannot be created in location '${location}'. Please select a new resource name.`,
    );
  }
  const zones = (body["zones"] ?? []) as string[];
  if (zones.length > 0 && type.zones === undefined) {
    throw refuse(
      "InvalidRequestFormat",
      `${id.id} has zones, which resources of type ${type.type} do not support.`,
    );
  }
  if (type.zones) checkZones(zones, location, id.id, type.zones.most);
  return { ...body, location };
}

function checkScope(id: ArmId, view: View): void {
  if (id.subscription.toLowerCase() !== account.subscriptionId) {
    throw new AzureError(
      404,
      "SubscriptionNotFound",
      `The subscription '${id.subscription}' could not be found.`,
    );
  }
  const missing = missingScope(id, view);
  if (missing) throw missing;
  const group = groupOf(id, view);
  if (group && stateOf(group.body) === "Deleting") throw groupBeingDeleted(id.group ?? "");
}

const groupOf = (id: ArmId, view: View): Resource | undefined =>
  id.group === undefined || id.type === groupType
    ? undefined
    : view.find(`/subscriptions/${id.subscription}/resourceGroups/${id.group}`);

/** The error when the resource group or the parent resource does not exist. */
function missingScope(id: ArmId, view: View): AzureError | undefined {
  if (id.type === groupType) return undefined;
  if (id.group !== undefined && groupOf(id, view) === undefined) return groupNotFound(id.group);
  const parent = parseId(id.parent);
  if (parent === undefined || parent.type === "Microsoft.Resources/subscriptions") return undefined;
  if (view.find(parent.id) !== undefined) return undefined;
  const isCompute = parent.type.toLowerCase().startsWith("microsoft.compute/");
  return isCompute
    ? new AzureError(
        404,
        "ParentResourceNotFound",
        `Can not perform requested operation on nested resource. Parent resource '${parent.name}' not found.`,
      )
    : resourceNotFound(parent);
}

/** The error for a resource that does not exist. */
export const notFound = (type: ResourceType, id: ArmId, view: View): AzureError =>
  id.type === groupType
    ? groupNotFound(id.name)
    : (missingScope(id, view) ?? type.notFound?.(id) ?? resourceNotFound(id));

export const groupBeingDeleted = (group: string): AzureError =>
  conflict(
    "ResourceGroupBeingDeleted",
    `The resource group '${group}' is in deprovisioning state and cannot perform this operation.`,
  );

/**
 * Everything that a body refers to must exist, in the same region, with no operation in progress, and of
 * Network none that failed.
 */
export function checkReferences(type: ResourceType, id: ArmId, body: Body, view: View): void {
  for (const { from, to, missing, crossesRegions } of type.references?.(body, id.id) ?? []) {
    const target = view.find(to) ?? view.find(parseId(to)?.parent ?? "");
    const isElsewhere =
      !type.isGlobal && !crossesRegions && locationOf(to, view) !== locationOf(id.id, view, body);
    if (target === undefined || !view.exists(to) || isElsewhere)
      throw missing ?? invalidReference(to, from);
    const hasFailed =
      target.type.startsWith("Microsoft.Network/") && stateOf(target.body) === "Failed";
    if (keyOf(target.id) === id.key || !(isInFlight(target) || hasFailed)) continue;
    throw refuse(
      "ReferencedResourceNotProvisioned",
      `Cannot proceed with operation because resource ${to} used by resource ${from} is not in Succeeded state. ` +
        `Resource is in ${stateOf(target.body)} state and the last operation that updated/is updating the resource is ${lastOperationOn(target)}.`,
    );
  }
}

/** As Network names it: PutNicOperation, PutPublicIpAddressOperation. */
function lastOperationOn({ type, body }: Resource): string {
  const [, kind = ""] = /([^/]+?)(?:(?<=ss)e)?s$/.exec(type) ?? [];
  const name = kind.replace("networkInterface", "nic").replace("IPA", "IpA");
  const verb = stateOf(body) === "Deleting" ? "Delete" : "Put";
  return `${verb}${name.replace(/^./, (first) => first.toUpperCase())}Operation`;
}

function valueAt(body: Body, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => (value as Body | undefined)?.[key], body);
}
