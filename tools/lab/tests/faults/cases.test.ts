import { classOf, nameOf } from "../../faults/cases/case";
import { casesOf } from "../../faults/cases/cases";
import { inOrder } from "../../faults/cases/order";
import type { Request } from "../../faults/cases/requests";
import { firstUp, scenarioOf } from "../../faults/cases/scenarios";

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
