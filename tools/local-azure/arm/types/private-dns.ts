import { badRequest, conflict } from "../azure-error";
import { Resource, View } from "../resources/resource";
import { ResourceType } from "./resource-type";
import { privateRecordSet } from "./privatedns/private-record-set";
import { dnsTagName, virtualNetworkLink } from "./privatedns/virtual-network-link";

type ZoneBody = { location: string };

/** Zones that Azure's own names are in; what is below them may be private. */
const reserved = [
  "azclient.ms",
  "azure.com",
  "cloudapp.net",
  "core.windows.net",
  "microsoft.com",
  "msidentity.com",
  "trafficmanager.net",
  "windows.net",
];

const label = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?";

export const privateZone: ResourceType<ZoneBody> = {
  token: "azure-native:privatedns:PrivateZone",
  type: "Microsoft.Network/privateDnsZones",
  isGlobal: true,
  tagName: dnsTagName,
  // From 2 to 34 labels.
  name: new RegExp(`^(?=.{1,253}$)${label}(\\.${label}){1,33}$`),

  accept({ id, body }) {
    if (reserved.includes(id.name.toLowerCase())) {
      throw badRequest(`The zone '${id.name}' is reserved and cannot be created.`);
    }
    return {
      body: {
        maxNumberOfRecordSets: 25000,
        maxNumberOfVirtualNetworkLinks: 1000,
        maxNumberOfVirtualNetworkLinksWithRegistration: 100,
        ...body,
      } as ZoneBody,
    };
  },

  shown({ id }, view) {
    const links = linksOf(id, view);
    return {
      // Azure's own record of the zone, SOA, counts.
      numberOfRecordSets: view.children(id, privateRecordSet.type).length + 1,
      numberOfVirtualNetworkLinks: links.length,
      numberOfVirtualNetworkLinksWithRegistration: links.filter(
        ({ body }) => body["registrationEnabled"] === true,
      ).length,
    };
  },

  mayDelete({ id }, view) {
    const links = linksOf(id, view);
    if (links.length === 0) return;
    const ids = links.map((one) => `'${one.id.split("/providers/")[1]}'`).join(", ");
    throw conflict(
      "CannotDeleteResource",
      `Cannot delete resource while nested resources exist. Some existing nested resource IDs include: ${ids}. ` +
        "Please delete all nested resources before deleting this resource.",
    );
  },
};

const linksOf = (zone: string, view: View): Resource[] =>
  view.children(zone, virtualNetworkLink.type);
