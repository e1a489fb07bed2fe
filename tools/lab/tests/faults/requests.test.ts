import type { LoggedRequest } from "../../../local-azure/arm/requests";
import { readsIn, type Request, writesIn } from "../../faults/cases/requests";

const scope = "/subscriptions/5ab7b1c4-0000-4000-8000-000000000001";
const group = `${scope}/resourceGroups/zoned-dev`;
const network = `${group}/providers/Microsoft.Network/virtualNetworks/zoned-dev-vnet`;
const roles = (where: string, name: string) =>
  `${where}/providers/Microsoft.Authorization/roleAssignments/${name}`;
const key = "urn:pulumi:dev::zoned::zoned:Certificates$tls:index/privateKey:PrivateKey::pki-key";

const asked = (method: string, id: string, startedAt = "2026-11-23T18:00:00Z"): LoggedRequest =>
  ({ method, id, startedAt, type: "some type" }) as LoggedRequest;

const finds = ({ id }: Request, other: string): boolean => new RegExp(id, "i").test(other);

it("takes what was to be changed, in the order in which it was asked", () => {
  const azure = [
    asked("PUT", group, "2026-11-23T18:00:03Z"),
    asked("GET", group, "2026-11-23T18:00:01Z"),
  ];

  const writes = writesIn(azure, [
    { method: "create", id: key, startedAt: "2026-11-23T18:00:02Z" },
  ]);

  expect(writes.map(({ title }) => title)).toEqual([
    "create tls:index/privateKey:PrivateKey pki-key",
    "PUT resourceGroups/zoned-dev",
  ]);
  expect(readsIn(azure).map(({ title }) => title)).toEqual(["GET resourceGroups/zoned-dev"]);
});

it("finds a request again in another run, and no other one", () => {
  const [vnet, subnet] = writesIn(
    [asked("PUT", network), asked("PUT", `${network}/subnets/nodes-1`)],
    [],
  );

  expect(finds(vnet!, network)).toBe(true);
  expect(finds(vnet!, `${network}/subnets/nodes-1`)).toBe(false);
  expect(subnet!.title).toBe("PUT virtualNetworks/zoned-dev-vnet/subnets/nodes-1");
});

it("finds a role assignment again, whose name is another in each run", () => {
  const [before, now] = [
    "0b5dd83b-2a7e-5c1f-9a64-1d6f4a9e7c30",
    "e1d2f3a4-2a7e-5c1f-9a64-1d6f4a9e7c31",
  ];
  const assigned = [roles(group, before), roles(scope, before), roles(group, now)];

  const found = writesIn(
    assigned.map((id) => asked("PUT", id)),
    [],
  );

  expect(finds(found[0]!, roles(group, now))).toBe(true);
  expect(finds(found[0]!, roles(scope, now))).toBe(false);
  expect(found.map(({ nth }) => nth)).toEqual([1, 1, 2]);
  expect(new Set(found.map(({ title }) => title)).size).toBe(3);
});
