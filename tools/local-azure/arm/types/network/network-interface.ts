import { createHash } from "node:crypto";

import { refuse } from "../../azure-error";
import { Body, keyOf, parseId, Resource } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { guidOf, networkName, Ref, referencesTo, SubResource, withIds } from "./common";
import { checkPublicIpFree } from "./public-ip-address";
import { assignAddress } from "./virtual-network";

type IpConfiguration = SubResource & {
  subnet?: Ref;
  publicIPAddress?: Ref;
  primary?: boolean;
  privateIPAddress?: string;
  privateIPAllocationMethod?: string;
  loadBalancerBackendAddressPools?: Ref[];
};

export type NetworkInterfaceBody = {
  location: string;
  ipConfigurations?: IpConfiguration[];
  networkSecurityGroup?: Ref;
  enableAcceleratedNetworking?: boolean;
};

const subResourceId = (id: string, name: string) => `${id}/ipConfigurations/${name}`;

export const networkInterface: ResourceType<NetworkInterfaceBody> = {
  token: "azure-native:network:NetworkInterface",
  type: "Microsoft.Network/networkInterfaces",
  subResources: ["ipConfigurations"],
  readOnly: [
    "ipConfigurations[].etag",
    "ipConfigurations[].provisioningState",
    "dnsSettings.internalDomainNameSuffix",
    "dnsSettings.appliedDnsServers",
  ],
  name: networkName,

  references: ({ ipConfigurations, networkSecurityGroup }, id) => [
    ...referencesTo(id, [networkSecurityGroup]),
    ...(ipConfigurations ?? []).flatMap(
      ({ name, subnet, publicIPAddress, privateIPAddress, loadBalancerBackendAddressPools }) => {
        const from = subResourceId(id, name);
        return [
          { to: subnet?.id, address: privateIPAddress },
          { to: publicIPAddress?.id },
          ...(loadBalancerBackendAddressPools ?? []).map((pool) => ({ to: pool.id })),
        ].flatMap(({ to, ...rest }) =>
          to === undefined ? [] : [{ from, owner: id, to, ...rest }],
        );
      },
    ),
  ],

  accept({ id, body, old }, view) {
    const wanted = body.ipConfigurations ?? [];
    if (wanted.length === 0) {
      throw refuse(
        "NetworkInterfaceMustHaveAtleastOneIpConfiguration",
        `Network interface ${id.id} must have at least one IP configuration.`,
      );
    }
    if (wanted.filter(({ primary }) => primary).length > 1) {
      throw refuse(
        "InvalidRequestFormat",
        `Cannot parse the request: network interface ${id.id} has more than one primary IP configuration.`,
      );
    }
    const configurations = wanted.map((one, position) => {
      const from = subResourceId(id.id, one.name);
      if (one.subnet?.id === undefined) {
        throw refuse(
          "SubnetIsRequired",
          `Subnet reference is required for ipconfiguration ${from}.`,
        );
      }
      const before = old?.body.ipConfigurations?.find(({ name }) => name === one.name);
      const network = (subnet: string) => keyOf(parseId(subnet)?.parent ?? "");
      if (
        before?.subnet?.id !== undefined &&
        network(before.subnet.id) !== network(one.subnet.id)
      ) {
        throw refuse(
          "SubnetsNotInSameVnet",
          `Subnet ${one.subnet.id} is not in the same virtual network as ${before.subnet.id}, which network interface ${id.id} is in.`,
        );
      }
      if (one.publicIPAddress?.id !== undefined)
        checkPublicIpFree(one.publicIPAddress.id, from, view);
      const same =
        before?.subnet?.id !== undefined && keyOf(before.subnet.id) === keyOf(one.subnet.id);
      return {
        ...one,
        subnet: { id: one.subnet.id },
        ...assignAddress(one, same ? before : undefined, one.subnet.id, from, view),
        primary: one.primary ?? position === 0,
        privateIPAddressVersion: one["privateIPAddressVersion"] ?? "IPv4",
      };
    });
    return {
      body: {
        nicType: "Standard",
        auxiliaryMode: "None",
        auxiliarySku: "None",
        enableIPForwarding: false,
        enableAcceleratedNetworking: false,
        disableTcpStateTracking: false,
        tapConfigurations: [],
        ...body,
        ...guidOf(old?.body),
        dnsSettings: {
          dnsServers: [],
          appliedDnsServers: [],
          ...((body as Body)["dnsSettings"] as object | undefined),
          internalDomainNameSuffix: `${digest(id.key).slice(0, 26)}.internal.cloudapp.net`,
        },
        ipConfigurations: withIds(id.id, "ipConfigurations", configurations),
      } as NetworkInterfaceBody,
      hidden: old?.hidden,
    };
  },

  // Azure assigns the MAC address when the interface is attached to a machine.
  shown({ id }, view) {
    const machine = view.referrers(id)[0]?.owner;
    if (machine === undefined) return {};
    return {
      macAddress: macOf(id),
      primary: true,
      virtualMachine: { id: machine },
    };
  },

  inUse: (id, [machine]) =>
    refuse(
      "NicInUse",
      `Network Interface ${id} is used by existing resource ${machine!.owner}. In order to delete the network interface, ` +
        "it must be dissociated from the resource. To learn more, see aka.ms/deletenic.",
    ),

  mayDelete: ({ hidden }, _view, now) => checkNotReserved(hidden, undefined, now),
};

export const macOf = (id: string): string =>
  ["00", "0D", "3A", ...digest(keyOf(id)).slice(0, 6).toUpperCase().match(/../g)!].join("-");

const digest = (text: string) => createHash("sha256").update(text).digest("hex");

interface Reservation {
  readonly machine: string;
  readonly until: string;
}

/** How long Azure reserves an interface for a machine whose creation failed. */
const reservedSeconds = 180;

export function reserve(nic: Resource, machine: string, now: Date): void {
  nic.hidden["reservation"] = {
    machine,
    until: new Date(now.getTime() + reservedSeconds * 1000).toISOString(),
  } satisfies Reservation;
}

export function checkNotReserved(hidden: Body, machine: string | undefined, now: Date): void {
  const reservation = hidden["reservation"] as Reservation | undefined;
  if (reservation === undefined || new Date(reservation.until) <= now) return;
  if (machine !== undefined && keyOf(machine) === keyOf(reservation.machine)) return;
  throw refuse(
    "NicReservedForAnotherVm",
    `Nic(s) in request is reserved for another Virtual Machine for ${reservedSeconds} seconds. ` +
      `Please provide another nic(s) or retry after ${reservedSeconds} seconds. Reserved VM: ${reservation.machine}`,
  );
}
