import { casesOf, nameOf } from "../../faults/cases";
import type { Request } from "../../faults/requests";
import { firstUp } from "../../faults/scenarios";
import { spread } from "../../faults/suite";

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

it("lets Azure go wrong once for each type and verb, and only Azure", () => {
  const other = request("PUT", "Microsoft.Compute/virtualMachines", "cp-2");
  const read = request("GET", "Microsoft.Resources/resourceGroups", "group");
  const cases = casesOf(firstUp, { writes: [machine, other, object], reads: [read] });

  const wrong = cases.filter(({ disturbance }) => "fault" in disturbance);

  expect(new Set(wrong.map(({ title }) => title))).toEqual(new Set([machine.title, read.title]));
});

it.each([1, 3, 7, 10, 20])("takes %i of ten, spread over all of them", (count) => {
  const all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

  const some = spread(all, count);

  expect(some).toHaveLength(Math.min(count, 10));
  const gaps = some.slice(1).map((number, index) => number - some[index]!);
  expect(Math.max(0, ...gaps) - Math.min(10, ...gaps)).toBeLessThanOrEqual(1);
});
