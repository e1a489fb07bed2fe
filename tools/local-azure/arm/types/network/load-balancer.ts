import { invalidReference, refuse } from "../../azure-error";
import {
  Body,
  keyOf,
  Ledger,
  parseId,
  Resource,
  View,
  withoutUndefined,
} from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { checkThere, guidOf, networkName, Ref, SubResource, withIds } from "./common";
import {
  checkRules,
  completeFrontend,
  Frontend,
  LoadBalancingRule,
  OutboundRule,
  Probe,
} from "./load-balancer-validation";

interface Member {
  name?: string;
  ipAddress?: string;
  virtualNetwork?: Ref;
  subnet?: Ref;
}

type Pool = SubResource & {
  virtualNetwork?: Ref;
  loadBalancerBackendAddresses?: Member[];
};

type LoadBalancerBody = {
  location: string;
  sku?: { name?: string };
  frontendIPConfigurations?: Frontend[];
  backendAddressPools?: Pool[];
  probes?: Probe[];
  loadBalancingRules?: LoadBalancingRule[];
  outboundRules?: OutboundRule[];
  inboundNatRules?: SubResource[];
};

const lists = [
  "frontendIPConfigurations",
  "backendAddressPools",
  "probes",
  "loadBalancingRules",
  "outboundRules",
  "inboundNatRules",
] as const;

const subResourceId = (id: string, list: string, name: string) => `${id}/${list}/${name}`;

export const loadBalancer: ResourceType<LoadBalancerBody> = {
  token: "azure-native:network:LoadBalancer",
  type: "Microsoft.Network/loadBalancers",
  maintainIfUnset: ["backendAddressPools", "inboundNatRules"],
  subResources: lists,
  nested: ["backendAddressPools[].loadBalancerBackendAddresses[]", "inboundNatPools[]"],
  readOnly: [
    ...lists.flatMap((list) => [`${list}[].etag`, `${list}[].provisioningState`]),
    "frontendIPConfigurations[].loadBalancingRules",
    "frontendIPConfigurations[].outboundRules",
    "backendAddressPools[].backendIPConfigurations",
    "backendAddressPools[].loadBalancingRules",
    "probes[].loadBalancingRules",
  ],
  name: networkName,

  references: ({ frontendIPConfigurations }, id) =>
    (frontendIPConfigurations ?? []).flatMap(
      ({ name, publicIPAddress, subnet, privateIPAddress }) => {
        const from = subResourceId(id, "frontendIPConfigurations", name);
        return [
          ...(publicIPAddress?.id === undefined
            ? []
            : [{ from, owner: id, to: publicIPAddress.id }]),
          ...(subnet?.id === undefined
            ? []
            : [{ from, owner: id, to: subnet.id, address: privateIPAddress }]),
        ];
      },
    ),

  // AKS wants it of who writes pools of addresses.
  linkedRights: ({ backendAddressPools = [] }) =>
    backendAddressPools
      .flatMap((pool) => [pool, ...(pool.loadBalancerBackendAddresses ?? [])])
      .flatMap(({ virtualNetwork }) => virtualNetwork?.id ?? [])
      .map((scope) => ({
        action: "Microsoft.Network/virtualNetworks/joinLoadBalancer/action",
        scope,
      })),

  accept({ id, body, old }, view) {
    const sku = body.sku?.name ?? "Basic";
    if (old && (old.body.sku?.name ?? "Basic") !== sku) {
      throw refuse(
        "LoadBalancerSkuCannotBeChanged",
        `Sku of load balancer ${id.id} cannot be changed once it is created.`,
      );
    }
    const balancer = { id: id.id, sku, location: body.location };
    const frontends = (body.frontendIPConfigurations ?? []).map((frontend) => {
      const before = old?.body.frontendIPConfigurations?.find(({ name }) => name === frontend.name);
      return completeFrontend(frontend, before, balancer, view);
    });
    checkSubResourceReferences(body, id.id);
    for (const pool of body.backendAddressPools ?? [])
      checkMembers(pool, subResourceId(id.id, "backendAddressPools", pool.name), view);
    const pools = (body.backendAddressPools ?? []).map((pool) => ownSubResource(pool, id.id, view));
    checkRules(body);
    return {
      body: {
        ...body,
        sku: { tier: "Regional", ...body.sku, name: sku } as { name: string },
        ...guidOf(old?.body),
        frontendIPConfigurations: withIds(id.id, "frontendIPConfigurations", frontends),
        backendAddressPools: withIds(id.id, "backendAddressPools", pools),
        probes: withIds(id.id, "probes", body.probes),
        loadBalancingRules: withIds(id.id, "loadBalancingRules", body.loadBalancingRules),
        outboundRules: withIds(id.id, "outboundRules", body.outboundRules),
        inboundNatRules: withIds(id.id, "inboundNatRules", body.inboundNatRules),
      },
    };
  },

  shown({ id, body }, view) {
    const rulesWith = (
      subResource: string,
      read: (rule: LoadBalancingRule) => (Ref | undefined)[],
    ) => {
      const rules = (body.loadBalancingRules ?? []).filter((rule) =>
        read(rule).some((ref) => keyOf(ref?.id ?? "") === keyOf(subResource)),
      );
      return rules.length > 0
        ? rules.map(({ name }) => ({ id: subResourceId(id, "loadBalancingRules", name) }))
        : undefined;
    };
    const each = <P extends SubResource>(
      list: string,
      subResources: readonly P[] | undefined,
      backReferences: (subResource: string) => Body,
    ) =>
      (subResources ?? []).map((subResource) =>
        withoutUndefined({
          ...subResource,
          ...backReferences(subResourceId(id, list, subResource.name)),
        }),
      );
    return {
      frontendIPConfigurations: each(
        "frontendIPConfigurations",
        body.frontendIPConfigurations,
        (subResource) => ({
          loadBalancingRules: rulesWith(subResource, (rule) => [rule.frontendIPConfiguration]),
        }),
      ),
      backendAddressPools: each("backendAddressPools", body.backendAddressPools, (subResource) => {
        const members = configurationsIn(subResource, view).map((from) => ({ id: from }));
        const addresses = membersOf(subResource, view);
        return {
          backendIPConfigurations: members.length > 0 ? members : undefined,
          ...(addresses.length > 0 && { loadBalancerBackendAddresses: addresses }),
          loadBalancingRules: rulesWith(subResource, (rule) => [
            rule.backendAddressPool,
            ...(rule.backendAddressPools ?? []),
          ]),
        };
      }),
      probes: each("probes", body.probes, (subResource) => ({
        loadBalancingRules: rulesWith(subResource, (rule) => [rule.probe]),
      })),
    };
  },

  commit: ({ body }, ledger, _now, old) => old && emptyPools(old, ledger, body.backendAddressPools),

  // Azure deletes a load balancer that has machines in its pools, and removes them from the pools.
  deleted: (resource, ledger) => emptyPools(resource, ledger),
};

/** No network interface names a pool that is gone. */
function emptyPools(
  { id, body }: Resource<LoadBalancerBody>,
  ledger: Ledger,
  kept: readonly Pool[] = [],
): void {
  const names = kept.map(({ name }) => name.toLowerCase());
  for (const { name } of body.backendAddressPools ?? []) {
    if (names.includes(name.toLowerCase())) continue;
    const pool = subResourceId(id, "backendAddressPools", name);
    for (const { owner } of [...ledger.referrers(pool)]) removeFromPool(owner, pool, ledger);
  }
}

/** By their ids, whichever was written last: a list in another order would be a change of the balancer. */
const configurationsIn = (pool: string, view: View): string[] =>
  view
    .referrers(pool)
    .map(({ from }) => from)
    .sort();

/** Network interfaces in a pool, as Azure names them in a list that is also an input. */
const membersOf = (pool: string, view: View): { name: string }[] =>
  configurationsIn(pool, view).map((from) => {
    const { group, name } = parseId(from.split("/ipConfigurations/")[0]!)!;
    return { name: `${group}_${name}${from.split("/").at(-1)}` };
  });

/**
 * A pool as it is kept: members by their addresses are its own, and those that are network interfaces
 * are for the interfaces to say.
 */
function ownSubResource(pool: Pool, id: string, view: View): Pool {
  const { loadBalancerBackendAddresses: wanted, ...rest } = pool;
  const subResource = subResourceId(id, "backendAddressPools", pool.name);
  const members = membersOf(subResource, view);
  if (members.length === 0 && wanted?.every(({ ipAddress }) => ipAddress !== undefined)) {
    return pool;
  }
  const names = (list: { name?: string }[]) =>
    list
      .map(({ name }) => name)
      .sort()
      .join();
  if (wanted !== undefined && names(wanted) !== names(members)) {
    throw refuse(
      "ModificationOfNICIpConfigBackendPoolNotSupported",
      `Operation on backend pool ${subResource} not allowed since it adds/modifies/deletes backend address pool members ` +
        "that are specified with a network interface IP configuration.",
    );
  }
  return rest as Pool;
}

function removeFromPool(networkInterface: string, pool: string, ledger: Ledger): void {
  const nic = ledger.find(networkInterface);
  if (nic === undefined) return;
  const configurations = nic.body["ipConfigurations"] as {
    loadBalancerBackendAddressPools?: Ref[];
  }[];
  for (const one of configurations) {
    one.loadBalancerBackendAddressPools = one.loadBalancerBackendAddressPools?.filter(
      (ref) => keyOf(ref.id ?? "") !== keyOf(pool),
    );
  }
  ledger.put(nic);
}

/** Throws unless members that are named by their addresses are told apart, each in a network that is there. */
function checkMembers(pool: Pool, id: string, view: View): void {
  const addresses = (pool.loadBalancerBackendAddresses ?? []).filter(
    ({ ipAddress }) => ipAddress !== undefined,
  );
  checkThere(id, [pool.virtualNetwork, ...addresses.map(networkOf)], view);
  const homeless = addresses.find((one) => (networkOf(one) ?? pool.virtualNetwork) === undefined);
  if (homeless !== undefined) {
    throw refuse(
      "InvalidRequestFormat",
      `Cannot parse the request: address ${homeless.ipAddress} of ${id} names neither a virtual network nor a subnet.`,
    );
  }
  const all = addresses.map(({ ipAddress }) => ipAddress);
  const twice = all.find((address, index) => all.indexOf(address) < index);
  if (twice === undefined) return;
  throw refuse("InvalidRequestFormat", `Cannot parse the request: ${id} has ${twice} twice.`);
}

const networkOf = ({ virtualNetwork, subnet }: Member): Ref | undefined => subnet ?? virtualNetwork;

/** Sub-resources refer to each other by full id within one body. */
function checkSubResourceReferences(body: LoadBalancerBody, id: string): void {
  const known = new Set(
    lists.flatMap((list) =>
      (body[list] ?? []).map(({ name }) => keyOf(subResourceId(id, list, name))),
    ),
  );
  const rules = [
    ...(body.loadBalancingRules ?? []).map((rule) => ({
      from: subResourceId(id, "loadBalancingRules", rule.name),
      refs: [
        rule.frontendIPConfiguration,
        rule.backendAddressPool,
        ...(rule.backendAddressPools ?? []),
        rule.probe,
      ],
    })),
    ...(body.outboundRules ?? []).map((rule) => ({
      from: subResourceId(id, "outboundRules", rule.name),
      refs: [...(rule.frontendIPConfigurations ?? []), rule.backendAddressPool],
    })),
  ];
  for (const { from, refs } of rules) {
    const missing = refs.find((ref) => ref?.id !== undefined && !known.has(keyOf(ref.id)));
    if (missing?.id !== undefined) throw invalidReference(missing.id, from);
  }
}
