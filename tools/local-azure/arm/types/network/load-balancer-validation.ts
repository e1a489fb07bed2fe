import { refuse } from "../../azure-error";
import { keyOf, View } from "../../resources/resource";
import { checkZones, checkZonesUnchanged, regions } from "../../subscription/regions";
import { Ref, SubResource } from "./common";
import { checkPublicIpFree, PublicIpBody } from "./public-ip-address";
import { assignAddress } from "./virtual-network";

export type Frontend = SubResource & {
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

/** Validates a frontend and assigns its private IP address. */
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
    return {
      privateIPAllocationMethod: "Dynamic",
      ...frontend,
      publicIPAddress: { id: publicIp },
    };
  }
  if (subnet === undefined) return frontend;
  checkZones(zones, balancer.location, from);
  if (before) checkZonesUnchanged(from, before.zones ?? [], zones);
  const address = assignAddress(frontend, before, subnet, from, view);
  return {
    ...frontend,
    ...{ subnet: { id: subnet }, ...address },
    ...(zones.length > 1 && { zones: [...regions[balancer.location]!] }),
  };
}

export type Probe = SubResource & {
  protocol?: string;
  port?: number;
  requestPath?: string;
  intervalInSeconds?: number;
  numberOfProbes?: number;
};

export type LoadBalancingRule = SubResource & {
  frontendIPConfiguration?: Ref;
  backendAddressPool?: Ref;
  backendAddressPools?: Ref[];
  probe?: Ref;
  protocol?: string;
  frontendPort?: number;
  backendPort?: number;
  idleTimeoutInMinutes?: number;
  enableFloatingIP?: boolean;
  disableOutboundSnat?: boolean;
};

export type OutboundRule = SubResource & {
  frontendIPConfigurations?: Ref[];
  backendAddressPool?: Ref;
};

interface Rules {
  readonly probes?: readonly Probe[];
  readonly loadBalancingRules?: readonly LoadBalancingRule[];
  readonly outboundRules?: readonly OutboundRule[];
}

/** Validates the rules and probes of a load balancer. */
export function checkRules({
  probes = [],
  loadBalancingRules = [],
  outboundRules = [],
}: Rules): void {
  probes.forEach(checkProbe);
  loadBalancingRules.forEach(checkNumbers);
  checkBackends(loadBalancingRules);
  checkFrontends(loadBalancingRules);

  const outbound = new Set(
    outboundRules.flatMap((rule) =>
      (rule.frontendIPConfigurations ?? []).map(({ id = "" }) => keyOf(id)),
    ),
  );
  for (const rule of loadBalancingRules) {
    if (!outbound.has(keyOf(rule.frontendIPConfiguration?.id ?? "")) || rule.disableOutboundSnat)
      continue;
    throw refuse(
      "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
      `Load balancing rule ${rule.name} must disable SNAT since same frontend IP configuration is referenced by outbound rule.`,
    );
  }
}

function checkProbe({
  name,
  protocol,
  port = 0,
  requestPath,
  intervalInSeconds = 15,
  numberOfProbes = 1,
}: Probe): void {
  const wantsPath = /^https?$/i.test(protocol ?? "");
  const problem =
    port < 1 || port > 65535
      ? `port ${port}; allowed range 1-65535`
      : intervalInSeconds < 5
        ? `an interval of ${intervalInSeconds} seconds; at least 5 are needed`
        : numberOfProbes < 1
          ? `numberOfProbes ${numberOfProbes}; at least 1 is needed`
          : wantsPath && !requestPath
            ? `protocol ${protocol} and no requestPath`
            : !wantsPath && requestPath
              ? `protocol ${protocol} and a requestPath, which only Http and Https support`
              : undefined;
  if (problem !== undefined) throw refuse("InvalidRequestFormat", `Probe ${name} has ${problem}.`);
}

function checkNumbers({
  name,
  frontendPort = -1,
  backendPort = frontendPort,
  idleTimeoutInMinutes = 4,
  protocol,
}: LoadBalancingRule): void {
  const isAllPorts = protocol?.toLowerCase() === "all";
  const ports = [frontendPort, backendPort];
  if (
    ports.some((port) => !Number.isInteger(port) || port > 65534 || port < (isAllPorts ? 0 : 1))
  ) {
    throw refuse(
      "InvalidRequestFormat",
      `Load balancing rule ${name} has ports ${ports.join(" and ")}; allowed range 1-65534.`,
    );
  }
  if (idleTimeoutInMinutes < 4 || idleTimeoutInMinutes > 100) {
    throw refuse(
      "InvalidRequestFormat",
      `Load balancing rule ${name} has an idle timeout of ${idleTimeoutInMinutes} minutes; allowed range 4-100.`,
    );
  }
}

const pools = ({ backendAddressPool, backendAddressPools = [] }: LoadBalancingRule): string[] =>
  [backendAddressPool, ...backendAddressPools].flatMap((ref) =>
    ref?.id === undefined ? [] : [keyOf(ref.id)],
  );

/** Without floating IP, two rules cannot share a backend port, protocol and pool. */
function checkBackends(rules: readonly LoadBalancingRule[]): void {
  const names = new Map<string, string>();
  for (const rule of rules) {
    if (rule.enableFloatingIP) continue;
    for (const pool of pools(rule)) {
      const key = `${pool} ${rule.protocol?.toLowerCase()} ${rule.backendPort}`;
      const other = names.get(key);
      if (other !== undefined && other !== rule.name) {
        throw refuse(
          "RulesUseSameBackendPortProtocolAndPool",
          `Load balancing rules ${other} and ${rule.name} with floating IP disabled use the same protocol ${rule.protocol} and ` +
            `backend port ${rule.backendPort}, and must not be used with the same backend address pool ${pool}.`,
        );
      }
      names.set(key, rule.name);
    }
  }
}

function checkFrontends(rules: readonly LoadBalancingRule[]): void {
  const names = new Map<string, string>();
  for (const { name, frontendIPConfiguration, protocol, frontendPort } of rules) {
    const key = `${keyOf(frontendIPConfiguration?.id ?? "")} ${protocol?.toLowerCase()} ${frontendPort}`;
    const other = names.get(key);
    if (other !== undefined) {
      throw refuse(
        "RulesUseSameFrontendPortProtocolAndIPConfig",
        `Load balancing rules ${other} and ${name} belong to the same frontend IP configuration and use the same protocol ${protocol} ` +
          `and frontend port ${frontendPort}.`,
      );
    }
    names.set(key, name);
  }
}
