import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itLimits, itNeverChanges, itRefuses } from "../../../support/arm/input-tables";
import { network, valid, withChange } from "../../../support/arm/valid-resources";

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

it.each([
  {
    what: "that has no SNAT",
    change: { "loadBalancingRules.0.disableOutboundSnat": true, outboundRules: [outbound] },
  },
  { what: "of another protocol", change: another({ frontendPort: 443, protocol: "Udp" }) },
  {
    what: "with a floating address",
    change: another({ frontendPort: 443, enableFloatingIP: true }),
  },
  {
    what: "over TCP without a path",
    change: { "probes.0.protocol": "Tcp", "probes.0.requestPath": undefined },
  },
])("takes a rule $what", async ({ change }) => {
  const { arm } = newArm();
  await createResources(arm, "apiIp");

  expect(await refusedBy(arm.put(id, withChange("balancer", change)))).toBe("not refused");
});

it("takes itself back as it is shown, with members that it does not name itself", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");

  expect(await refusedBy(arm.put(id, { ...body, ...arm.peek(id)! }))).toBe("not refused");
});

it("refuses a second balancer on an address", async () => {
  const { arm } = newArm();
  await createResources(arm, "balancer");
  const second = { location: "westeurope", sku: { name: "Standard" }, ...frontend(address) };

  expect(await refusedBy(arm.put(network("loadBalancers/b"), second))).toMatch(
    /^PublicIPAddressInUse/,
  );
});

it("returns full ids of its sub-resources, and the members of its pool", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");

  expect(arm.peek(id)).toMatchObject({
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
  });
});

it("can be deleted with machines in its pool, and removes them from it", async () => {
  const { arm } = newArm();
  await createResources(arm);

  await arm.delete(id);

  expect(arm.peek(id)).toBeUndefined();
  expect(arm.peek(valid.nic[0])).toMatchObject({
    ipConfigurations: [{ loadBalancerBackendAddressPools: [] }],
  });
});

it("gives an internal frontend an address of its subnet", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const internal = {
    location: "westeurope",
    sku: { name: "Standard" },
    ...frontend({ subnet: { id: valid.subnet[0] }, zones: ["1", "2", "3"] }),
  };

  await arm.put(network("loadBalancers/internal"), internal);

  expect(arm.peek(network("loadBalancers/internal"))).toMatchObject({
    frontendIPConfigurations: [{ privateIPAddress: "172.16.1.5" }],
  });
  expect(await refusedBy(arm.delete(valid.subnet[0]))).toMatch(
    /internal\/frontendIPConfigurations\/api/,
  );
});

it("does not change the zones of an internal frontend", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const put = (zones: string[]) =>
    arm.put(network("loadBalancers/internal"), {
      location: "westeurope",
      sku: { name: "Standard" },
      ...frontend({ subnet: { id: valid.subnet[0] }, zones }),
    });
  await put(["1", "2", "3"]);

  expect(await refusedBy(put(["1"]))).toMatch(/^ResourceAvailabilityZonesCannotBeModified/);
});
