import type { AzureResources } from "./azure";
import { sameId } from "./ids";

/** In which zones an address is, in words. */
export const zonesIn = (zones: readonly string[] = []): string =>
  zones.length === 0
    ? "no zone"
    : zones.length === 1
      ? `zone ${zones[0]}`
      : `zones ${zones.join(" ")}`;

export interface Address {
  readonly name: string;
  readonly address: string;
  readonly reach: string;
}

/** Public addresses that belong to nothing that is drawn with one. */
export const otherAddresses = ({ addresses, balancers, gateways }: AzureResources): Address[] => {
  const used = [
    ...gateways.flatMap(({ properties }) => properties.publicIpAddresses ?? []),
    ...balancers
      .flatMap(({ properties }) => properties.frontendIPConfigurations ?? [])
      .flatMap(({ properties }) => properties.publicIPAddress ?? []),
  ];
  return addresses
    .filter(({ id }) => !used.some((one) => sameId(one.id, id)))
    .map(({ name, zones, properties }) => ({
      name,
      address: properties.ipAddress ?? "no address",
      reach: `${zonesIn(zones)}, ${properties.ipConfiguration ? "attached" : "not attached"}`,
    }));
};
