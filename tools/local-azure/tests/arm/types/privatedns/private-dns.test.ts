import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itRefuses } from "../../../support/arm/input-tables";
import { network, valid, withChange } from "../../../support/arm/valid-resources";

const [zone] = valid.zone;
const [link] = valid.link;
const [record] = valid.record;

itRefuses("zone", [
  [{ location: "westeurope" }, "LocationNotAvailableForResourceType: .*'global'"],
]);
itRefuses("link", [
  [{ location: "westeurope" }, "LocationNotAvailableForResourceType: .*'global'"],
  [{ virtualNetwork: { id: network("virtualNetworks/none") } }, "InvalidResourceReference"],
  [{ virtualNetwork: undefined }, "InvalidParameter"],
]);
itRefuses("record", [
  [{ aRecords: [{ ipv4Address: "api" }] }, "BadRequest: .*IPv4"],
  [{ aRecords: [{ ipv4Address: "10.0.0.4/32" }] }, "BadRequest"],
  [{ aRecords: [] }, "BadRequest: .*0 records"],
  [{ ttl: 0 }, "BadRequest: .*TTL '0'"],
]);

it.each([
  ["of one label", "internal", "InvalidResourceName"],
  ["that begins with a hyphen", "-zoned.internal", "InvalidResourceName"],
  ["that Azure's own names are in", "azure.com", "BadRequest: .*reserved"],
])("refuses a zone %s", async (_, name, code) => {
  const { arm } = newArm();
  await arm.put(...valid.group);

  const made = arm.put(network(`privateDnsZones/${name}`), { location: "Global" });

  expect(await refusedBy(made)).toMatch(new RegExp(`^${code}`));
});

it.each(["zone", "link"] as const)(
  "drops tags of a %s by their names, and says nothing",
  async (kind) => {
    const { arm } = newArm();
    await createResources(arm, kind);
    const [id] = valid[kind];
    const tags = { "Cost Center": "1", "2nd": "2", "a:b": "3", "cost-center": "4" };

    await arm.put(id, withChange(kind, { tags }));
    expect(arm.peek(id)).toMatchObject({ tags: { "cost-center": "4" } });
    expect(arm.peek(id)!["tags"]).not.toHaveProperty("2nd");
    await arm.patch(id, { tags: { ...tags, owner: "5" } });

    expect(arm.peek(id)!["tags"]).toEqual({ "cost-center": "4", owner: "5" });
  },
);

it("keeps a link's network", async () => {
  const { arm } = newArm();
  await createResources(arm, "link");
  const other = network("virtualNetworks/other");
  await arm.put(other, valid.vnet[1]);

  const moved = arm.put(link, withChange("link", { virtualNetwork: { id: other } }));

  expect(await refusedBy(moved)).toMatch(/^InvalidParameter: The virtual network of link/);
});

it("links a network to one zone of a name", async () => {
  const { arm } = newArm();
  await createResources(arm, "link");

  const again = arm.put(`${zone}/virtualNetworkLinks/again`, valid.link[1]);

  expect(await refusedBy(again)).toMatch(/^BadRequest: .*overlapping namespaces/);
});

it("keeps a zone as long as it has links, and takes its records with it", async () => {
  const { arm } = newArm();
  await createResources(arm, "record");

  expect(await refusedBy(arm.delete(zone))).toMatch(/^CannotDeleteResource: .*\/vnet'/);
  await arm.delete(link);
  await arm.delete(zone);

  expect([zone, record].map((id) => arm.peek(id))).toEqual([undefined, undefined]);
});

it("counts what a zone has, with Azure's own record, and names a record in full", async () => {
  const { arm } = newArm();
  await createResources(arm, "record");

  expect(arm.peek(zone)).toMatchObject({ numberOfRecordSets: 2, numberOfVirtualNetworkLinks: 1 });
  expect(arm.peek(record)).toMatchObject({ fqdn: "api.zoned-abc.internal." });
});
