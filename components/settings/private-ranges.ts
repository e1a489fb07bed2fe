import { Address4 } from "ip-address";

/** Ranges that are not routed on the internet: RFC 1918, 6598 and 2544. */
const privateRanges = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "198.18.0.0/15",
].map((range) => new Address4(range));

export const isPrivate = (range: string): boolean =>
  privateRanges.some((whole) => new Address4(range).isInSubnet(whole));
