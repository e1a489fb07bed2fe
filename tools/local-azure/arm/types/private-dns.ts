import { Address4 } from "ip-address";

import { badRequest, conflict, invalidParameter } from "../azure-error";
import { Body, keyOf, parseId, Resource, View } from "../resources/resource";
import { networkName, Ref, referencesTo } from "./network/common";
import { ResourceType } from "./resource-type";

type RecordSetBody = {
  aRecords?: { ipv4Address?: string }[];
  ttl?: number;
};

const mostRecords = 20;
const mostSeconds = 2_147_483_647;

/** Of type A alone: no cluster has another one. */
export const privateRecordSet: ResourceType<RecordSetBody> = {
  token: "azure-native:privatedns:PrivateRecordSet",
  type: "Microsoft.Network/privateDnsZones/A",
  isStateless: true,
  name: /^(@|(\*|[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*)$/,

  accept({ id, body }) {
    const { aRecords = [], ttl } = body;
    const wrong = aRecords.find(({ ipv4Address = "" }) => !isAddress(ipv4Address));
    if (wrong !== undefined) {
      throw badRequest(
        `The value '${wrong.ipv4Address ?? ""}' of an A record in record set '${id.name}' is not a valid IPv4 address.`,
      );
    }
    if (aRecords.length === 0 || aRecords.length > mostRecords) {
      throw badRequest(
        `Record set '${id.name}' has ${aRecords.length} records; allowed range 1-${mostRecords}.`,
      );
    }
    if (ttl === undefined || !Number.isInteger(ttl) || ttl < 1 || ttl > mostSeconds) {
      throw badRequest(
        `The TTL '${ttl ?? ""}' of record set '${id.name}' is not valid; allowed range 1-${mostSeconds}.`,
      );
    }
    const zone = id.names[0]!;
    const fqdn = id.name === "@" ? `${zone}.` : `${id.name}.${zone}.`;
    return { body: { ...body, fqdn, isAutoRegistered: false } as RecordSetBody & Body };
  },
};

const isAddress = (text: string): boolean => !text.includes("/") && Address4.isValid(text);

type LinkBody = {
  location: string;
  virtualNetwork?: Ref;
  registrationEnabled?: boolean;
};

/** No spaces, parentheses or colons, and no digit first (azure-rest-api-specs #11748). */
const dnsTagName = /^[A-Za-z_][\w.-]*$/;

const nameOfZone = (link: string): string => parseId(parseId(link)!.parent)!.name;

export const virtualNetworkLink: ResourceType<LinkBody> = {
  token: "azure-native:privatedns:VirtualNetworkLink",
  type: "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
  isGlobal: true,
  tagName: dnsTagName,
  required: ["virtualNetwork.id"],
  name: networkName,

  references: ({ virtualNetwork }, id) => referencesTo(id, [virtualNetwork]),

  accept({ id, body, old }, view) {
    const network = keyOf(body.virtualNetwork?.id ?? "");
    if (old && keyOf(old.body.virtualNetwork?.id ?? "") !== network) {
      throw invalidParameter(
        `The virtual network of link '${id.name}' cannot be changed once it is created.`,
        "virtualNetwork",
      );
    }
    const others = view
      .ofType(virtualNetworkLink.type)
      .filter(
        (one) =>
          keyOf(one.id) !== id.key &&
          keyOf((one.body as LinkBody).virtualNetwork?.id ?? "") === network,
      );
    const zone = nameOfZone(id.id);
    const same = others.find((one) => nameOfZone(one.id).toLowerCase() === zone.toLowerCase());
    if (same !== undefined) {
      throw badRequest(
        "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual network " +
          `with '${nameOfZone(same.id)}' and '${zone}' zones.`,
      );
    }
    return {
      body: {
        registrationEnabled: false,
        resolutionPolicy: "Default",
        ...body,
        virtualNetworkLinkState: "Completed",
      } as LinkBody,
    };
  },
};

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
