import { ArmId, parseId } from "./ids";
import { ResourceType } from "../types/resource-type";
import { typeOf } from "../types/types";

/** A part of a resource that has an id but is none itself, such as a pool of a load balancer. */
export interface PartId {
  readonly owner: ArmId;
  readonly ownerType: ResourceType;
  /** The list of the owner that it is in. */
  readonly list: string;
  readonly name: string;
}

export function partOf(id: ArmId | undefined): PartId | undefined {
  const owner = id && parseId(id.parent);
  const ownerType = owner && typeOf(owner.type);
  const list = ownerType?.parts?.find((name) =>
    id!.type.toLowerCase().endsWith(`/${name.toLowerCase()}`),
  );
  return list === undefined
    ? undefined
    : { owner: owner!, ownerType: ownerType!, list, name: id!.name };
}
