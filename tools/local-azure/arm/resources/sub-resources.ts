import { ArmId, parseId } from "./ids";
import { ResourceType } from "../types/resource-type";
import { typeOf } from "../types/types";

/** A sub-resource: it has an id but changes with its parent, such as a load balancer's pool. */
export interface SubResourceId {
  readonly owner: ArmId;
  readonly ownerType: ResourceType;
  /** The list of the owner that it is in. */
  readonly list: string;
  readonly name: string;
}

export function subResourceOf(id: ArmId | undefined): SubResourceId | undefined {
  const owner = id && parseId(id.parent);
  const ownerType = owner && typeOf(owner.type);
  const list = ownerType?.subResources?.find((name) =>
    id!.type.toLowerCase().endsWith(`/${name.toLowerCase()}`),
  );
  return list === undefined
    ? undefined
    : { owner: owner!, ownerType: ownerType!, list, name: id!.name };
}
