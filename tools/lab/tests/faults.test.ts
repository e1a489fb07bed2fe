import { readFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../tests/support/test-folder";
import type { LoggedRequest } from "../../local-azure/arm/requests";
import { type Case, casesOf, classOf, inOrder, nameOf } from "../faults/cases/cases";
import {
  firstUp,
  readsIn,
  type Request,
  scenarioOf,
  scenarios,
  writesIn,
} from "../faults/cases/scenarios";
import { Findings, summary } from "../faults/report";
import type { Result } from "../faults/trial";

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

describe("the suite's report", () => {
  let folder: string;
  beforeEach(() => (folder = testFolder()));

  const result = (more: Partial<Result>): Result => ({
    ...{
      scenario: "first-up",
      kind: "429",
      what: "PUT machines",
      title: "PUT virtualMachines/cp-1",
    },
    ending: "converged",
    ...{ commands: 1, seconds: 40, flaws: [], ...more },
  });
  const caseOf = (key: string, title: string): Case => ({
    scenario: scenarios.find((one) => one.key === key)!,
    ...{ kind: "429", what: "PUT machines", title },
    disturbance: { faults: [], mustEndWell: true },
  });
  const left = (pid: number) => [`left running: program (process ${pid})`];

  it("goes on with what an earlier run has found out", () => {
    new Findings(folder, "one").add(result({}));

    const later = new Findings(folder, "one");

    expect(later.has("first-up: 429: PUT virtualMachines/cp-1")).toBe(true);
    expect(later.has("first-up: 429: PUT virtualMachines/cp-2")).toBe(false);
  });

  it("begins anew when the program is another", () => {
    new Findings(folder, "one").add(result({}));

    expect(new Findings(folder, "other").report.results).toEqual([]);
  });

  it("tries again what it was asked to forget, and nothing else", () => {
    const findings = new Findings(folder, "one");
    findings.add(result({ title: "a" }));
    findings.add(result({ title: "b" }));

    findings.forget(new Set(["first-up: 429: a"]));

    expect(findings.report.results.map(({ title }) => title)).toEqual(["b"]);
  });

  it("forgets a case that a changed suite has no more, and no case of a scenario that it was not asked for", () => {
    const findings = new Findings(folder, "one");
    findings.setCases([caseOf("first-up", "a"), caseOf("destroy", "c")]);
    for (const one of [{ title: "a" }, { scenario: "destroy", title: "c" }]) {
      findings.add(result(one));
    }

    findings.setCases([caseOf("first-up", "b")]);

    expect(findings.report.cases.map(({ title }) => title)).toEqual(["c", "b"]);
    expect(findings.report.results.map(({ title }) => title)).toEqual(["c"]);
  });

  it("counts each kind by how it ended, and gathers under one cause what has one", () => {
    const findings = new Findings(folder, "one");
    findings.setCases([
      caseOf("first-up", "PUT virtualMachines/cp-1"),
      caseOf("first-up", "x"),
      { ...caseOf("first-up", "y"), what: "PUT groups" },
      { ...caseOf("first-up", "z"), what: "PUT networks" },
      { ...caseOf("first-up", "x"), kind: "500" },
      caseOf("destroy", "x"),
    ]);
    findings.add(result({}));
    findings.add(result({ title: "x", ending: "flawed", flaws: left(1), seconds: 90 }));
    findings.add(
      result({ what: "PUT groups", title: "y", ending: "flawed", flaws: left(2), seconds: 50 }),
    );

    const text = readFileSync(join(folder, "report.md"), "utf8");

    expect(summary(findings.report.results)).toBe("1 converged, 2 flawed");
    expect(text).toContain("3 of 6 cases tried, in 2 of 5 classes");
    expect(text).toContain("| 429 | 4 | 3 | 1 | 2 |  |  | 1 | 50 s, at most 1 min 30 s |");
    expect(text.match(/^### .*$/gm)).toEqual(["### 2 times: left running: program"]);
  });
});
