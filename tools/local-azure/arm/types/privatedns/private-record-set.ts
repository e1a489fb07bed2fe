import { Address4 } from "ip-address";

import { badRequest } from "../../azure-error";
import { Body } from "../../resources/resource";
import { ResourceType } from "../resource-type";

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
