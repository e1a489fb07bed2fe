import { refuse } from "../azure-error";
import { checkZones, checkZonesUnchanged } from "../regions";
import { View } from "../resource-type";
import { Part, Ref } from "./common";
import { checkPublicIpFree, PublicIpBody } from "./public-ip-address";
import { assignAddress } from "./subnet-address";

export type Frontend = Part & {
  publicIPAddress?: Ref;
  publicIPPrefix?: Ref;
  subnet?: Ref;
  zones?: string[];
  privateIPAddress?: string;
  privateIPAllocationMethod?: string;
};

interface Balancer {
  readonly id: string;
  readonly sku: string;
  readonly location: string;
}

/** Refuses a frontend, or gives it its private address. */
export function completeFrontend(
  frontend: Frontend,
  before: Frontend | undefined,
  balancer: Balancer,
  view: View,
): Frontend {
  const from = `${balancer.id}/frontendIPConfigurations/${frontend.name}`;
  const publicIp = frontend.publicIPAddress?.id;
  const subnet = frontend.subnet?.id;
  const zones = frontend.zones ?? [];
  if (publicIp !== undefined && subnet !== undefined) {
    throw refuse(
      "FrontendIPConfigHasBothSubnetAndPublicIP",
      `Frontend IP Configuration ${from} references both a subnet and a public IP.`,
    );
  }
  if (publicIp === undefined && subnet === undefined && frontend.publicIPPrefix?.id === undefined) {
    throw refuse(
      "FrontendIPConfigurationHasNoSubnetOrPublicIPAddressOrPublicIPPrefix",
      `Frontend IP Configuration ${from} references neither a subnet nor a public IP nor a public IP prefix.`,
    );
  }
  if (publicIp !== undefined) {
    if (zones.length > 0) {
      throw refuse(
        "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress",
        `Load balancer frontendIPConfiguration ${from} has ${zones.length} zone specified and is referencing a publicIPAddress ${publicIp}. ` +
          "Networking supports zones only for frontendIpconfigurations which reference a subnet.",
      );
    }
    checkPublicIpFree(publicIp, from, view);
    const sku = (view.find(publicIp)?.body as PublicIpBody | undefined)?.sku?.name;
    if (sku !== balancer.sku) {
      throw refuse(
        "PublicIPAndLBSkuDoNotMatch",
        `${balancer.sku} sku load balancer ${balancer.id} cannot reference ${sku} sku publicIP ${publicIp}.`,
      );
    }
    return { privateIPAllocationMethod: "Dynamic", ...frontend };
  }
  if (subnet === undefined) return frontend;
  checkZones(zones, balancer.location, from);
  if (before) checkZonesUnchanged(from, before.zones ?? [], zones);
  return { ...frontend, ...assignAddress(frontend, before, subnet, from, view) };
}
