import { refuse } from "../../azure-error";
import { Body, keyOf, parseId, Resource, View, withoutUndefined } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { checkZonesUnchanged, regions } from "../../subscription/regions";
import { guidOf, networkName } from "./common";

export type PublicIpBody = {
  location: string;
  sku?: { name?: string; tier?: string };
  publicIPAllocationMethod?: string;
  publicIPAddressVersion?: string;
  zones?: string[];
  ipAddress?: string;
  dnsSettings?: { domainNameLabel?: string; fqdn?: string };
};

const type = "Microsoft.Network/publicIPAddresses";

export const publicIpAddress: ResourceType<PublicIpBody> = {
  token: "azure-native:network:PublicIPAddress",
  type,
  readOnly: ["ipAddress"],
  forceNew: ["location", "publicIPAddressVersion", "publicIPPrefix", "sku"],
  zones: { most: 3 },
  name: networkName,

  accept({ id, body, old }, view) {
    const sku = body.sku?.name ?? "Basic";
    if (sku === "Basic") {
      throw refuse(
        "IPv4BasicSkuPublicIpCountLimitReached",
        "Cannot create more than 0 IPv4 Basic SKU public IP addresses for this subscription in this region.",
      );
    }
    if (body.publicIPAllocationMethod !== "Static") {
      throw refuse(
        "StandardSkuPublicIPAddressesMustBeStatic",
        `Standard sku publicIp ${id.id} must have AllocationMethod set to Static.`,
      );
    }
    if (old && old.body.sku?.name !== sku) {
      throw refuse(
        "SkuCannotBeChangedForPublicIp",
        `Sku property for publicIPAddress resource ${id.id} cannot be changed.`,
      );
    }
    if (old) checkZonesUnchanged(id.id, old.body.zones ?? [], body.zones ?? []);

    // The gateway names its addresses, and each of these shows it.
    const { deleteOption: _, natGateway: __, ...kept } = body as PublicIpBody & Body;
    return {
      body: withoutUndefined({
        publicIPAddressVersion: "IPv4",
        idleTimeoutInMinutes: 4,
        ipTags: [],
        ddosSettings: { protectionMode: "VirtualNetworkInherited" },
        ...kept,
        zones: (body.zones ?? []).length > 1 ? [...regions[body.location]!] : body.zones,
        sku: { name: sku, tier: "Regional", ...body.sku },
        ...guidOf(old?.body),
        dnsSettings: dnsSettingsOf(body, id.id, view),
        ipAddress: old?.body.ipAddress ?? freeAddress(view),
      }),
    };
  },

  shown({ id }, view) {
    const user = view.referrers(id)[0];
    if (user === undefined) return {};
    const isNat = parseId(user.owner)?.type.toLowerCase().endsWith("natgateways");
    return isNat ? { natGateway: { id: user.from } } : { ipConfiguration: { id: user.from } };
  },

  inUse: (id, [user]) =>
    refuse(
      "PublicIPAddressCannotBeDeleted",
      `Public IP address ${id} can not be deleted since it is still allocated to resource ${user!.from}. ` +
        "In order to delete the public IP, disassociate/detach the Public IP address from the resource.  " +
        "To learn how to do this, see aka.ms/deletepublicip.",
    ),
};

/** Throws when another resource has this public IP. */
export function checkPublicIpFree(publicIp: string, user: string, view: View): void {
  const other = view.referrers(publicIp).find(({ from }) => keyOf(from) !== keyOf(user));
  if (other === undefined) return;
  throw refuse(
    "PublicIPAddressInUse",
    `Resource ${user} is referencing public IP address ${publicIp} that is already allocated to resource ${other.from}.`,
  );
}

/** Taken in every region by other customers, with whom its labels are shared. */
const labelsOfOthers = ["api", "kubernetes", "www"];

export function checkLabel(label: string): void {
  if (/^[a-z][a-z0-9-]{1,61}[a-z0-9]$/.test(label)) return;
  throw refuse(
    "InvalidDomainNameLabel",
    `The domain name label ${label} is invalid. It must conform to the following regular expression: ^[a-z][a-z0-9-]{1,61}[a-z0-9]$.`,
  );
}

/** Whether nobody has a label in a region, neither one of these resources nor another customer. */
export const isFreeLabel = (
  label: string,
  location: string,
  resources: readonly Resource[],
): boolean =>
  !labelsOfOthers.includes(label) &&
  resources.every(({ body }) => {
    const fqdn = `${label}.${location}.cloudapp.azure.com`;
    return (body as PublicIpBody).dnsSettings?.fqdn !== fqdn;
  });

function dnsSettingsOf(
  { dnsSettings, location }: PublicIpBody,
  id: string,
  view: View,
): PublicIpBody["dnsSettings"] {
  const label = dnsSettings?.domainNameLabel;
  if (label === undefined) return dnsSettings;
  checkLabel(label);
  const fqdn = `${label}.${location}.cloudapp.azure.com`;
  const others = view.ofType(type).filter((other) => keyOf(other.id) !== keyOf(id));
  if (!isFreeLabel(label, location, others))
    throw refuse("DnsRecordInUse", `DNS record ${fqdn} is already used by another public IP.`);
  return { ...dnsSettings, fqdn };
}

/** From the documentation ranges of RFC 5737. */
function freeAddress(view: View): string {
  const taken = new Set(view.ofType(type).map(({ body }) => (body as PublicIpBody).ipAddress));
  for (const range of ["203.0.113", "198.51.100", "192.0.2"]) {
    for (let host = 1; host < 255; host++) {
      const address = `${range}.${host}`;
      if (!taken.has(address)) return address;
    }
  }
  throw refuse(
    "PublicIPCountLimitReached",
    "Cannot create more than 762 public IP addresses for this subscription in this region.",
  );
}
