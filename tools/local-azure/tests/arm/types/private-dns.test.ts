import { createResources, newArm } from "../../support/arm/fixture";
import {
  type Answer,
  itAnswers,
  itRefuses,
  itShows,
  put,
  remove,
} from "../../support/arm/input-tables";
import { network, valid, withChange } from "../../support/arm/valid-resources";

const [zone] = valid.zone;
const [link] = valid.link;
const [record] = valid.record;
const other = network("virtualNetworks/other");

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
itAnswers("record", [
  ...(
    [
      ["internal", "InvalidResourceName"],
      ["-zoned.internal", "InvalidResourceName"],
      ["azure.com", "BadRequest: .*reserved"],
    ] as const
  ).map(([name, code]): Answer => [
    `a zone ${name}`,
    code,
    put(network(`privateDnsZones/${name}`), valid.zone[1]),
  ]),
  [
    "a link to another network",
    "InvalidParameter: The virtual network of link",
    put(other, valid.vnet[1]),
    put(link, withChange("link", { virtualNetwork: { id: other } })),
  ],
  [
    "a network's second link to a zone",
    "BadRequest: .*overlapping namespaces",
    put(`${zone}/virtualNetworkLinks/again`, valid.link[1]),
  ],
  ["the end of a zone with links", "CannotDeleteResource: .*/vnet'", remove(zone)],
]);
itShows("record", [
  [
    "a zone's records, with Azure's own, and links",
    zone,
    { numberOfRecordSets: 2, numberOfVirtualNetworkLinks: 1 },
  ],
  ["a record's full name", record, { fqdn: "api.zoned-abc.internal." }],
  ["no record of a zone that is gone", record, undefined, remove(link), remove(zone)],
]);

it.each(["zone", "link"] as const)("drops tags of a %s by their names", async (kind) => {
  const { arm } = newArm();
  await createResources(arm, kind);
  const [id] = valid[kind];
  const tags = { "Cost Center": "1", "2nd": "2", "a:b": "3", "cost-center": "4" };

  await arm.put(id, withChange(kind, { tags }));
  expect(arm.peek(id)!["tags"]).toEqual({ "cost-center": "4" });
  await arm.patch(id, { tags: { ...tags, owner: "5" } });
  expect(arm.peek(id)!["tags"]).toEqual({ "cost-center": "4", owner: "5" });
});
