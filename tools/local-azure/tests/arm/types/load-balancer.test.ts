import type { Body } from "../../../arm/resources/resource";
import {
  itAnswers,
  itLimits,
  itNeverChanges,
  itRefuses,
  itShows,
  put,
  remove,
  taken,
} from "../../support/arm/input-tables";
import { network, valid, withChange } from "../../support/arm/valid-resources";

const [id, body] = valid.balancer;
const [rule] = body.loadBalancingRules;
const part = (list: string, name: string) => ({ id: `${id}/${list}/${name}` });
const frontend = (more: object) => ({ frontendIPConfigurations: [{ name: "api", ...more }] });
const address = { publicIPAddress: { id: valid.apiIp[0] } };
const outbound = {
  name: "out",
  protocol: "All",
  frontendIPConfigurations: [part("frontendIPConfigurations", "api")],
  backendAddressPool: part("backendAddressPools", "cp"),
};
const another = (change: object) => ({
  loadBalancingRules: [rule, { ...rule, name: "b", ...change }],
});

itRefuses("balancer", [
  [frontend({}), "FrontendIPConfigurationHasNoSubnetOrPublicIPAddressOrPublicIPPrefix"],
  [
    frontend({ ...address, subnet: { id: valid.subnet[0] } }),
    "FrontendIPConfigHasBothSubnetAndPublicIP",
  ],
  [
    frontend({ ...address, zones: ["1"] }),
    "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress",
  ],
  [{ "sku.name": "Basic" }, "PublicIPAndLBSkuDoNotMatch"],
  [another({ frontendPort: 443 }), "RulesUseSameBackendPortProtocolAndPool"],
  [another({ backendPort: 443 }), "RulesUseSameFrontendPortProtocolAndIPConfig"],
  // The rule has SNAT on the address of an outbound rule.
  [
    { outboundRules: [outbound] },
    "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
  ],
  [{ "probes.0.requestPath": undefined }, "InvalidRequestFormat: Probe readyz .*requestPath"],
  [
    { "probes.0.protocol": "Tcp", "probes.0.requestPath": "/readyz" },
    "InvalidRequestFormat: .*requestPath",
  ],
  [{ backendAddressPools: [{ name: "cp" }, { name: "CP" }] }, "InvalidRequestFormat: .*twice"],
  ...[
    { "loadBalancingRules.0.probe": part("probes", "none") },
    {
      "loadBalancingRules.0.frontendIPConfiguration": part("frontendIPConfigurations", "none"),
    },
    { "loadBalancingRules.0.backendAddressPools": [part("backendAddressPools", "none")] },
    { "loadBalancingRules.0.backendAddressPool": part("backendAddressPools", "none") },
    { outboundRules: [{ ...outbound, backendAddressPool: part("backendAddressPools", "none") }] },
  ].map((change) => [change, "InvalidResourceReference"] as const),
]);
itLimits("balancer", [
  ["probes.0.intervalInSeconds", [5], [1, 4], "InvalidRequestFormat: Probe readyz .*interval"],
  ["probes.0.port", [1, 65535], [0, 65536], "InvalidRequestFormat: .*port"],
  [
    "loadBalancingRules.0.frontendPort",
    [1, 65534],
    [0, 65535, undefined],
    "InvalidRequestFormat: .*ports",
  ],
  [
    "loadBalancingRules.0.idleTimeoutInMinutes",
    [4, 100],
    [3, 101],
    "InvalidRequestFormat: .*idle timeout",
  ],
]);
itNeverChanges("balancer", [
  [{ "sku.name": "Gateway" }, "LoadBalancerSkuCannotBeChanged"],
  // Its member is an interface, which names its pools itself.
  [
    { backendAddressPools: [{ name: "cp", loadBalancerBackendAddresses: [] }] },
    "ModificationOfNICIpConfigBackendPoolNotSupported",
  ],
]);

const standard = { location: "westeurope", sku: { name: "Standard" } };
const internal = network("loadBalancers/internal");
const within = (zones: string[]) =>
  put(internal, { ...standard, ...frontend({ subnet: { id: valid.subnet[0] }, zones }) });
const changed = (change: Body) => put(id, withChange("balancer", change));
itAnswers("nic", [
  [
    "an outbound rule beside a rule without SNAT",
    taken,
    changed({ "loadBalancingRules.0.disableOutboundSnat": true, outboundRules: [outbound] }),
  ],
  ["a rule of another protocol", taken, changed(another({ frontendPort: 443, protocol: "Udp" }))],
  [
    "a rule with a floating address",
    taken,
    changed(another({ frontendPort: 443, enableFloatingIP: true })),
  ],
  [
    "a probe over TCP without a path",
    taken,
    changed({ "probes.0.protocol": "Tcp", "probes.0.requestPath": undefined }),
  ],
  [
    "itself as it is shown, with members that it does not name",
    taken,
    (arm) => arm.put(id, { ...body, ...arm.peek(id)! }),
  ],
  [
    "a second balancer on an address",
    "PublicIPAddressInUse",
    put(network("loadBalancers/b"), { ...standard, ...frontend(address) }),
  ],
  [
    "other zones of an internal frontend",
    "ResourceAvailabilityZonesCannotBeModified",
    within(["1", "2", "3"]),
    within(["1"]),
  ],
  [
    "the end of the subnet of an internal frontend",
    "InUse.*internal/frontendIPConfigurations/api",
    within(["1"]),
    remove(valid.subnet[0]),
  ],
]);
itShows("nic", [
  [
    "full ids of its parts, and the members of its pool",
    id,
    {
      frontendIPConfigurations: [
        {
          ...part("frontendIPConfigurations", "api"),
          loadBalancingRules: [part("loadBalancingRules", "api")],
        },
      ],
      backendAddressPools: [
        { backendIPConfigurations: [{ id: `${valid.nic[0]}/ipConfigurations/ip` }] },
      ],
      probes: [{ loadBalancingRules: [part("loadBalancingRules", "api")] }],
    },
  ],
  [
    "an interface in no pool, when the balancer is gone",
    valid.nic[0],
    { ipConfigurations: [{ loadBalancerBackendAddressPools: [] }] },
    remove(id),
  ],
  [
    "an internal frontend's address of its subnet",
    internal,
    { frontendIPConfigurations: [{ privateIPAddress: "172.16.1.5" }] },
    within(["1", "2", "3"]),
  ],
]);
