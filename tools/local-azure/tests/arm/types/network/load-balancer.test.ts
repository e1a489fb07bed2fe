import { Body } from "../../../../arm/resources/resource";
import { createResources, newArm, refusalOf, refusedBy } from "../../../support/arm/fixture";
import { network, valid } from "../../../support/arm/valid-resources";

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

it.each<[flaw: string, change: Body, code: string]>([
  [
    "no address",
    frontend({}),
    "FrontendIPConfigurationHasNoSubnetOrPublicIPAddressOrPublicIPPrefix",
  ],
  [
    "two kinds of address",
    frontend({ ...address, subnet: { id: valid.subnet[0] } }),
    "FrontendIPConfigHasBothSubnetAndPublicIP",
  ],
  [
    "zones on a public frontend",
    frontend({ ...address, zones: ["1"] }),
    "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress",
  ],
  ["the sku Basic on a Standard address", { sku: { name: "Basic" } }, "PublicIPAndLBSkuDoNotMatch"],
  [
    "a probe that is not there",
    { loadBalancingRules: [{ ...rule, probe: part("probes", "none") }] },
    "InvalidResourceReference",
  ],
  [
    "two rules to one port of one pool",
    { loadBalancingRules: [rule, { ...rule, name: "b", frontendPort: 443 }] },
    "RulesUseSameBackendPortProtocolAndPool",
  ],
  [
    "two rules on one port",
    { loadBalancingRules: [rule, { ...rule, name: "b", backendPort: 443 }] },
    "RulesUseSameFrontendPortProtocolAndIPConfig",
  ],
  [
    "a rule with SNAT on the address of an outbound rule",
    { outboundRules: [outbound] },
    "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
  ],
  [
    "an HTTPS probe without a path",
    { probes: [{ ...body.probes[0], requestPath: undefined }] },
    "InvalidRequestFormat: Probe readyz .*requestPath",
  ],
  [
    "a probe every second",
    { probes: [{ ...body.probes[0], intervalInSeconds: 1 }] },
    "InvalidRequestFormat: Probe readyz .*interval",
  ],
  [
    "a rule that idles for hours",
    { loadBalancingRules: [{ ...rule, idleTimeoutInMinutes: 240 }] },
    "InvalidRequestFormat: .*idle timeout",
  ],
  [
    "a pool twice",
    { backendAddressPools: [{ name: "cp" }, { name: "CP" }] },
    "InvalidRequestFormat: .*twice",
  ],
])("refuses a balancer with %s", async (_, change, code) => {
  expect(await refusalOf("balancer", change)).toMatch(new RegExp(`^${code}`));
});

it("accepts an outbound rule beside a rule without SNAT", async () => {
  const { arm } = newArm();
  await createResources(arm, "apiIp");
  const loadBalancingRules = [{ ...rule, disableOutboundSnat: true }];

  const put = arm.put(id, { ...body, loadBalancingRules, outboundRules: [outbound] });

  expect(await refusedBy(put)).toBe("not refused");
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
