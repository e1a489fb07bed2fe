import { Address4 } from "ip-address";

/** The range as Azure and Kubernetes accept it, or nothing where there is none. */
export function parseRange(text: string): Address4 | undefined {
  if (!/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}\/(0|[1-9]\d?)$/.test(text)) return undefined;
  return Address4.isValid(text) ? new Address4(text) : undefined;
}

/** The same range without host bits: 172.16.5.4/16 is 172.16.0.0/16. */
export const corrected = (range: Address4): string =>
  `${range.startAddress().correctForm()}/${range.subnetMask}`;

/** Whether two ranges share an address. */
export const overlap = (a: string, b: string): boolean => {
  const [left, right] = [new Address4(a), new Address4(b)];
  return left.isInSubnet(right) || right.isInSubnet(left);
};
