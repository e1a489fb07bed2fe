import { MachineState } from "../../../components/azure/state";
import { PreviousOutputs } from "../../../components/plan/machine-changes";
import { ControlPlaneChanges, isNewer, upgradeProblems } from "../../../components/plan/upgrade";

const untouched: ControlPlaneChanges = { lost: [], replaced: [], removed: [] };

/** Machines by the version that their steps say, and the outputs where a step has failed. */
const problems = (
  wanted: string,
  versions: readonly string[],
  changes: Partial<ControlPlaneChanges> = {},
) => {
  const machines = new Map(
    versions.map((kubernetesVersion, index): [string, MachineState] => [
      `zoned-test-cp-${index + 1}`,
      { size: "any", bootstrap: { state: "Succeeded", kubernetesVersion } },
    ]),
  );
  return upgradeProblems({ kubernetesVersion: wanted }, { machines }, undefined, {
    ...untouched,
    ...changes,
  });
};

it.each([
  ["what runs already", "1.36.3", ["1.36.3"]],
  ["a later patch", "1.36.10", ["1.36.9"]],
  ["the next minor", "1.36.0", ["1.35.9"]],
  ["what an interrupted upgrade has begun", "1.36.4", ["1.36.4", "1.36.3", "1.36.3"]],
])("admits %s", (_, wanted, versions) => {
  expect(problems(wanted, versions)).toEqual([]);
});

it.each([
  ["an older patch", "1.36.2", ["1.36.3"], "set kubernetesVersion 1.36.3"],
  ["an older minor", "1.35.9", ["1.36.0"], "set kubernetesVersion 1.36.0"],
  ["to go back half-way", "1.36.3", ["1.36.4", "1.36.3"], "zoned-test-cp-1 run 1.36.4"],
  ["two minors at once", "1.36.3", ["1.34.9"], "go to 1.35 first"],
  ["another major", "2.0.0", ["1.36.3"], "one minor at a time"],
])("refuses %s", (_, wanted, versions, says) => {
  expect(problems(wanted, versions)).toEqual([expect.stringContaining(says)]);
});

const one = ["zoned-test-cp-2"];

it.each<[string, Partial<ControlPlaneChanges>]>([
  ["makes a control plane anew that is lost", { lost: one }],
  ["replaces one", { replaced: one }],
])("refuses another version in the update that %s", (_, changes) => {
  expect(problems("1.36.4", ["1.36.3"], changes)).toEqual([
    expect.stringMatching(
      /zoned-test-cp-2 would be made anew in the same update.*set kubernetesVersion 1\.36\.3 and/,
    ),
  ]);
  expect(problems("1.36.3", ["1.36.3"], changes)).toEqual([]);
});

it("lets a lost control plane come back in the midst of an upgrade, which cannot be taken back", () => {
  const versions = ["1.36.4", "1.36.3", "1.36.3"];

  expect(problems("1.36.3", versions, { lost: one })).toEqual([
    expect.stringContaining("cannot go back"),
  ]);
  expect(problems("1.36.4", versions, { lost: one })).toEqual([]);
  expect(problems("1.36.4", versions, { replaced: one })).toEqual([
    expect.stringMatching(/made anew.*take that change back, .* until the upgrade has ended/),
  ]);
});

it("refuses to remove a control plane in the update that leaves it behind the kubelets, and none that is as new", () => {
  expect(problems("1.36.4", ["1.36.3", "1.36.3"], { removed: one })).toEqual([
    expect.stringContaining("zoned-test-cp-2 would be removed at the end"),
  ]);
  expect(problems("1.36.4", ["1.36.3", "1.36.4"], { removed: one })).toEqual([]);
});

it("believes the outputs where no step says a version", () => {
  const machines = { "zoned-test-cp-1": { kubernetesVersion: "1.36.3" } };
  const memory = { machines } as unknown as PreviousOutputs;

  expect(
    upgradeProblems({ kubernetesVersion: "1.36.2" }, { machines: new Map() }, memory, untouched),
  ).toEqual([expect.stringContaining("cannot go back")]);
});

it("compares versions by their numbers", () => {
  expect(isNewer("1.36.10", "1.36.9")).toBe(true);
  expect(isNewer("1.36.9", "1.36.10")).toBe(false);
  expect(isNewer("1.36.9", "1.36.9")).toBe(false);
});
