import { MachineState } from "../../../components/azure/state";
import { MachineChange } from "../../../components/plan/machine-changes";
import { startedMachines, stoppedMachines } from "../../../components/plan/stopped-machines";
import { machinesOf } from "../../../components/settings/topology";
import { validSettings } from "../../support/sample";

const name = (word: string) => `zoned-test-${word}`;
const running: MachineState = {
  size: "Standard_D2s_v5",
  power: "running",
  initialization: "1-then",
  bootstrap: { state: "Succeeded", requestedAt: "then" },
};
const off: MachineState = { ...running, power: "deallocated" };
const failed = { bootstrap: { state: "Failed" } };

interface Scene {
  /** Machines that do not simply run, by the ends of their names. */
  readonly machines?: Readonly<Record<string, MachineState>>;
  readonly changes?: string;
  readonly controlPlaneCount?: number;
  readonly exists?: boolean;
  readonly isRestoring?: boolean;
  /** The end of a machine's name that is made anew. */
  readonly replaced?: string;
}

function look({ machines = {}, changes = "", exists = true, ...scene }: Scene) {
  const controlPlaneCount = scene.controlPlaneCount ?? 3;
  const plans = machinesOf({ ...validSettings, controlPlaneCount });
  const azure = {
    machines: new Map(
      plans.map((plan) => [plan.name, machines[plan.name.slice(name("").length)] ?? running]),
    ),
  };
  const kept = plans.filter((plan) => plan.name !== name(scene.replaced ?? ""));
  const started = startedMachines(kept, azure);
  const { off, problems } = stoppedMachines({
    settings: validSettings,
    initialization: { id: "1-then", exists, isRestoring: scene.isRestoring },
    azure,
    retained: kept,
    changes: changes.split(", ").flatMap((change): MachineChange[] => {
      const [does, machine] = change.split(" ");
      return machine === undefined
        ? []
        : [{ action: does as MachineChange["action"], machine: name(machine), reasons: [] }];
    }),
    started: new Set(started),
  });
  return { off, problems, started };
}

const start = (...words: string[]) =>
  words.length === 1
    ? `az vm start --resource-group zoned-test --name ${name(words[0]!)}`
    : `for name in ${words.map(name).join(" ")}; do az vm start --resource-group zoned-test --name $name; done`;

it.each<[what: string, scene: Scene, says: string]>([
  [
    "whose step would run",
    { machines: { "workers-1": off }, changes: "upgrade workers-1" },
    `zoned-test-workers-1 is deallocated (this update would upgrade it): ${start("workers-1")}`,
  ],
  [
    "whose step has failed",
    { machines: { "workers-1": { ...off, ...failed, power: "stopped" } } },
    `zoned-test-workers-1 is stopped (its bootstrap step has to run again): ${start("workers-1")}`,
  ],
  [
    "whose step has failed, before there is a cluster",
    { machines: { "cp-1": { ...off, ...failed } }, exists: false },
    `zoned-test-cp-1 is deallocated (its bootstrap step has to run again): ${start("cp-1")}`,
  ],
  [
    "without which there is no API, though nothing changes",
    { machines: { "cp-1": off, "workers-2": off }, controlPlaneCount: 1 },
    `zoned-test-cp-1 is deallocated (no API answers without it), zoned-test-workers-2 is deallocated: ${start("cp-1", "workers-2")}`,
  ],
  [
    "of which etcd has no majority",
    { machines: { "cp-1": off, "cp-3": { ...off, power: "stopping" } } },
    `zoned-test-cp-1 is deallocated (no API answers without it), zoned-test-cp-3 is stopping (no API answers without it): ${start("cp-1", "cp-3")}`,
  ],
  [
    "of which half of an even number is no majority for etcd",
    {
      machines: { "cp-1": off, "cp-4": { ...off, power: "deallocating" } },
      controlPlaneCount: 4,
    },
    `zoned-test-cp-1 is deallocated (no API answers without it), zoned-test-cp-4 is deallocating (no API answers without it): ${start("cp-1", "cp-4")}`,
  ],
  [
    "of which etcd has no majority, beside one that gets another size",
    { machines: { "cp-1": { ...off, size: "Standard_D2as_v5" }, "cp-3": off } },
    `zoned-test-cp-3 is deallocated (no API answers without it): ${start("cp-3")}`,
  ],
  [
    "that would be replaced, where no API answers",
    { machines: { "cp-1": off }, controlPlaneCount: 1, replaced: "cp-1" },
    `zoned-test-cp-1 is deallocated (no API answers without it): ${start("cp-1")}`,
  ],
])("names a machine that is off %s, and what starts it", (_, scene, says) => {
  expect(look(scene).problems).toEqual([`${says}, then run pulumi up again`]);
});

it.each<[what: string, scene: Scene]>([
  ["nothing changes", { machines: { "cp-2": off, "workers-1": off } }],
  ["another machine changes", { machines: { "workers-1": off }, changes: "upgrade workers-2" }],
  ["a machine is made anew", { machines: { "workers-1": off }, replaced: "workers-1" }],
  [
    "the cluster is restored from a snapshot",
    { machines: { "cp-1": off }, controlPlaneCount: 1, isRestoring: true, replaced: "cp-1" },
  ],
  ["Azure says nothing of its power", { machines: { "cp-1": { ...off, power: undefined } } }],
])("has nothing against machines that are off where %s", (_, scene) => {
  expect(look(scene).problems).toEqual([]);
});

it.each<[what: string, machine: MachineState, isStarted: boolean]>([
  ["starts one that gets another size", { ...off, size: "Standard_D2as_v5" }, true],
  ["leaves one whose size differs in case", { ...off, size: "STANDARD_D2S_V5" }, false],
  ["starts one whose restart an update did not end", { ...off, drained: "now" }, true],
  [
    "leaves one whose restart has ended",
    { ...off, drained: "then", bootstrap: { state: "Succeeded", drained: "then" } },
    false,
  ],
  ["starts one that was drained for a size it never got", { ...off, stoppedForResize: true }, true],
  ["leaves one that runs", { ...running, drained: "now" }, false],
])("%s", (_, machine, isStarted) => {
  const { off, problems, started } = look({
    machines: { "cp-1": machine },
    controlPlaneCount: 1,
    changes: isStarted ? "resize cp-1" : "",
  });

  expect(started).toEqual(isStarted ? [name("cp-1")] : []);
  if (isStarted) expect({ off, problems }).toEqual({ off: [], problems: [] });
});
