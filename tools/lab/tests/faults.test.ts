import type { LoggedRequest } from "../../local-azure/arm/requests";
import { classOf, nameOf } from "../faults/cases/case";
import { casesOf, inOrder } from "../faults/cases/cases";
import { readsIn, type Request, writesIn } from "../faults/cases/requests";
import { firstUp, scenarioOf } from "../faults/cases/scenarios";

const request = (method: string, type: string, name: string): Request => ({
  ...{ method, type, nth: 1 },
  id: `^/${type}/${name}$`,
  title: `${method} ${name}`,
});
const machine = request("PUT", "Microsoft.Compute/virtualMachines", "cp-1");
const object = request("create", "kubernetes:core/v1:Secret", "token");

it("kills every process at every request, each case with a name of its own", () => {
  const cases = casesOf(firstUp, { writes: [machine, object], reads: [] });
  const kills = cases.filter(({ disturbance }) => "kill" in disturbance);

  for (const victim of ["engine", "provider", "language host", "program"]) {
    const of = kills.filter(({ kind }) => kind.startsWith(`${victim} killed`));
    expect(new Set(of.map(({ title }) => title))).toEqual(new Set([machine.title, object.title]));
  }
  expect(new Set(cases.map(nameOf)).size).toBe(cases.length);
});

it("kills no program during a destroy, which runs none", () => {
  const cases = casesOf(scenarioOf("destroy"), { writes: [machine], reads: [] });

  expect(cases.some(({ kind }) => kind.startsWith("engine killed"))).toBe(true);
  expect(cases.filter(({ kind }) => kind.startsWith("program"))).toEqual([]);
});

it("kills one command after another where the first asks for more than three changes", () => {
  const again = (writes: readonly Request[]) =>
    casesOf(firstUp, { writes, reads: [] }).filter(({ kind }) => kind.endsWith("again and again"));

  expect(again([machine, object, object])).toEqual([]);
  expect(again([machine, object, object, object])).not.toEqual([]);
});

it("lets Azure go wrong in each way at the first request of each type and verb, and only Azure", () => {
  const other = request("PUT", "Microsoft.Compute/virtualMachines", "cp-2");
  const read = request("GET", "Microsoft.Resources/resourceGroups", "group");
  const cases = casesOf(firstUp, { writes: [machine, other, object], reads: [read] });

  const wrong = cases.flatMap(({ kind, disturbance }) =>
    "faults" in disturbance ? { kind, ids: disturbance.faults.map(({ fault }) => fault.id) } : [],
  );

  const [everywhere, atMachine] = [[machine.id, read.id], [machine.id]];
  expect(wrong.find(({ kind }) => kind === "429")!.ids).toEqual(everywhere);
  expect(wrong.find(({ kind }) => kind === "409 Conflict")!.ids).toEqual(everywhere);
  expect(wrong.find(({ kind }) => kind === "AllocationFailed")!.ids).toEqual(atMachine);
  expect(wrong.filter(({ ids }) => !ids.includes(machine.id) || ids.length > 2)).toEqual([]);
});

it("counts what a plugin makes alike as one class, and what it waits for as another", () => {
  const writes = [
    request("create", "kubernetes:core/v1:ConfigMap", "one"),
    request("create", "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "other"),
    request("create", "kubernetes:core/v1:NodePatch", "patch"),
    request("create", "kubernetes:apps/v1:Deployment", "workload"),
    request("create", "tls:index/privateKey:PrivateKey", "key"),
    request("create", "tls:index/certRequest:CertRequest", "request"),
    ...[machine, request("PUT", "Microsoft.Network/networkInterfaces", "nic")],
  ];
  const kills = casesOf(firstUp, { writes, reads: [] }).filter(
    ({ kind }) => kind === "program killed, request accepted",
  );

  expect(kills).toHaveLength(writes.length);
  expect(new Set(kills.map(classOf)).size).toBe(6);
});

it("tries each class once before any is repeated, with scenarios and kinds in turn", () => {
  const writes = ["cp-1", "cp-2"].map((name) => request("PUT", machine.type, name));
  const cases = [firstUp, scenarioOf("destroy")].flatMap((scenario) =>
    casesOf(scenario, { writes: [...writes, object], reads: [] }),
  );
  const classes = new Set(cases.map(classOf));

  const ordered = inOrder(cases);

  expect(new Set(ordered.map(nameOf))).toEqual(new Set(cases.map(nameOf)));
  expect(new Set(ordered.slice(0, classes.size).map(classOf))).toEqual(classes);
  expect(classes.size).toBeLessThan(cases.length);
  expect(ordered.slice(0, 4).map(({ scenario }) => scenario.key)).toEqual([
    ...["first-up", "destroy", "first-up", "destroy"],
  ]);
  expect(new Set(ordered.slice(0, 10).map(({ kind }) => kind)).size).toBe(5);
});

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
