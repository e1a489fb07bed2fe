import { createHash } from "node:crypto";

import { Body, Resource } from "./resource";
import { nestedIn, ResourceType } from "../types/resource-type";

/** The etag of a resource in this condition: any write to it or to what it shows changes it. */
export function etagOf(shown: Body, { type, changed }: Resource): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([shown, changed]))
    .digest("hex");
  if (!isOfNetwork(type)) return `"${digest.slice(0, 8)}"`;
  return `W/"${digest.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")}"`;
}

const isOfNetwork = (type: string): boolean => type.startsWith("Microsoft.Network/");

export const hasEtag = ({ type }: Resource): boolean =>
  isOfNetwork(type) || type === "Microsoft.Compute/virtualMachines";

/** The parts of a resource of Network have its etag. */
export function withEtag(type: ResourceType, body: Body, etag: string): Body {
  if (!isOfNetwork(type.type)) return { ...body, etag };
  const lists = nestedIn(type).flatMap((path) => /^(\w+)\[\]$/.exec(path)?.[1] ?? []);
  const parts = lists.flatMap((list) => {
    const elements = body[list] as Body[] | undefined;
    return elements === undefined ? [] : [[list, elements.map((one) => ({ ...one, etag }))]];
  });
  return { ...body, ...(Object.fromEntries(parts) as Body), etag };
}
