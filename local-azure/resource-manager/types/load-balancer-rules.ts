import { refuse } from "../azure-error";
import { keyOf } from "../ids";
import { Part, Ref } from "./common";

export type Probe = Part & {
  protocol?: string;
  port?: number;
  requestPath?: string;
  intervalInSeconds?: number;
  numberOfProbes?: number;
};

export type LoadBalancingRule = Part & {
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

export type OutboundRule = Part & { frontendIPConfigurations?: Ref[]; backendAddressPool?: Ref };

interface Rules {
  readonly probes?: readonly Probe[];
  readonly loadBalancingRules?: readonly LoadBalancingRule[];
  readonly outboundRules?: readonly OutboundRule[];
}

/** What Azure minds about the rules and probes of one balancer. */
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
  const trouble =
    port < 1 || port > 65535
      ? `port ${port}; allowed range 1-65535`
      : intervalInSeconds < 5
        ? `an interval of ${intervalInSeconds} seconds; at least 5 are needed`
        : numberOfProbes < 1
          ? `numberOfProbes ${numberOfProbes}; at least 1 is needed`
          : wantsPath && !requestPath
            ? `protocol ${protocol} and no requestPath`
            : !wantsPath && requestPath
              ? `protocol ${protocol} and a requestPath, which only Http and Https take`
              : undefined;
  if (trouble !== undefined) throw refuse("InvalidRequestFormat", `Probe ${name} has ${trouble}.`);
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

/** Without floating IP a machine could not tell two rules apart that end on the same port. */
function checkBackends(rules: readonly LoadBalancingRule[]): void {
  const seen = new Map<string, string>();
  for (const rule of rules) {
    if (rule.enableFloatingIP) continue;
    for (const pool of pools(rule)) {
      const place = `${pool} ${rule.protocol?.toLowerCase()} ${rule.backendPort}`;
      const other = seen.get(place);
      if (other !== undefined && other !== rule.name) {
        throw refuse(
          "RulesUseSameBackendPortProtocolAndPool",
          `Load balancing rules ${other} and ${rule.name} with floating IP disabled use the same protocol ${rule.protocol} and ` +
            `backend port ${rule.backendPort}, and must not be used with the same backend address pool ${pool}.`,
        );
      }
      seen.set(place, rule.name);
    }
  }
}

function checkFrontends(rules: readonly LoadBalancingRule[]): void {
  const seen = new Map<string, string>();
  for (const { name, frontendIPConfiguration, protocol, frontendPort } of rules) {
    const place = `${keyOf(frontendIPConfiguration?.id ?? "")} ${protocol?.toLowerCase()} ${frontendPort}`;
    const other = seen.get(place);
    if (other !== undefined) {
      throw refuse(
        "RulesUseSameFrontendPortProtocolAndIPConfig",
        `Load balancing rules ${other} and ${name} belong to the same frontend IP configuration and use the same protocol ${protocol} ` +
          `and frontend port ${frontendPort}.`,
      );
    }
    seen.set(place, name);
  }
}
