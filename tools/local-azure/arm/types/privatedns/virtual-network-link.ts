import { badRequest, invalidParameter } from "../../azure-error";
import { keyOf, parseId } from "../../resources/ids";
import { ResourceType } from "../resource-type";
import { networkName, Ref, referencesTo } from "../network/common";

type LinkBody = {
  location: string;
  virtualNetwork?: Ref;
  registrationEnabled?: boolean;
};

/** No spaces, parentheses or colons, and no digit first (azure-rest-api-specs #11748). */
export const dnsTagName = /^[A-Za-z_][\w.-]*$/;

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
