import { checkStatic, firstFree } from "../addresses";
import { refuse } from "../azure-error";
import { keyOf } from "../ids";
import { View } from "../resource-type";
import { SubnetBody, subnetRanges } from "./subnet";

interface Wanted {
  readonly privateIPAddress?: string;
  readonly privateIPAllocationMethod?: string;
}

/** The private address of one use of a subnet: the one it asks for, the one it had, or the lowest that is free. */
export function assignAddress(
  wanted: Wanted,
  before: Wanted | undefined,
  subnet: string,
  from: string,
  view: View,
) {
  const found = view.find(subnet);
  if (found === undefined)
    throw new Error(`the subnet ${subnet} of ${from} was not checked to exist`);
  const ranges = subnetRanges(found.body as SubnetBody, found.id);
  const holders = new Map<string, string>();
  for (const { from: holder, address } of view.referrers(subnet)) {
    if (address !== undefined && keyOf(holder) !== keyOf(from)) holders.set(address, holder);
  }

  const isStatic = wanted.privateIPAllocationMethod?.toLowerCase() === "static";
  if (isStatic) {
    const address = wanted.privateIPAddress ?? "";
    checkStatic(address, ranges);
    const holder = holders.get(address);
    if (holder !== undefined) {
      throw refuse(
        "PrivateIPAddressIsAllocated",
        `IP configuration ${from} is using the private IP address ${address} which is already allocated to resource ${holder}.`,
      );
    }
    return { privateIPAddress: address, privateIPAllocationMethod: "Static" };
  }
  const address = before?.privateIPAddress ?? firstFree(ranges, new Set(holders.keys()));
  if (address === undefined) {
    const prefixes = ranges.map(({ prefix }) => prefix).join(",");
    throw refuse(
      "SubnetIsFull",
      `Subnet ${found.id.split("/").at(-1)} with address prefix ${prefixes} does not have enough capacity for 1 IP addresses.`,
    );
  }
  return { privateIPAddress: address, privateIPAllocationMethod: "Dynamic" };
}
