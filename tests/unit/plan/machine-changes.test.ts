import { MachineState } from "../../../components/azure/state";
import { machineChanges, PreviousOutputs } from "../../../components/plan/machine-changes";
import { machinesOf } from "../../../components/settings/topology";
import { validSettings } from "../../support/sample";

const settings = { ...validSettings, controlPlaneCount: 1 };
const wanted = machinesOf(settings).map((plan) => ({
  plan,
  generation: "now",
  replacementInputs: { zone: plan.zone, osDiskSizeGb: "64" },
  imageVersion: "2",
  kubernetesVersion: "1.36.4",
  configuration: "now",
}));
const names = wanted.map(({ plan }) => plan.name);
const [controlPlane = "", first = ""] = names;

const step = { state: "Succeeded", kubernetesVersion: "1.36.4", configuration: "now" };

const well: MachineState = {
  bootstrap: step,
  size: "Standard_D2s_v5",
  image: "2",
  generation: "now",
  initialization: "1-then",
  createdAt: "then",
};

const remembered = {
  generation: "now",
  createdAt: "then",
  bootstrapRequestedAt: "then",
  kubernetesVersion: "1.36.4",
  configuration: "now",
};

/** What an update does to machines of which one is otherwise. */
const changes = (other: Partial<MachineState> | undefined, memory?: Partial<PreviousOutputs>) => {
  const machines = new Map(
    names.flatMap((name): [string, MachineState][] =>
      name !== first ? [[name, well]] : other === undefined ? [] : [[name, { ...well, ...other }]],
    ),
  );
  return machineChanges("1-then", wanted, { machines }, memory as PreviousOutputs | undefined);
};

it.each<[string, Partial<MachineState> | undefined, string | undefined]>([
  ["nothing of a machine that is as it shall be", {}, undefined],
  ["nothing of one that is gone, since it is made anew", undefined, undefined],
  ["nothing of one whose size is written otherwise", { size: "standard_d2s_V5" }, undefined],
  ["a resize of one of another size", { size: "Standard_B2s" }, "resize"],
  ["a replacement of one of another generation", { generation: "before" }, "replace"],
  ["nothing of what another initialization has left", { initialization: "0-before" }, undefined],
  ["a replacement of one of another image", { image: "1" }, "replace"],
  ["nothing of one of which Azure names no image", { image: undefined }, undefined],
  [
    "an upgrade of a member of another version",
    { bootstrap: { ...step, kubernetesVersion: "1.36.3" } },
    "upgrade",
  ],
  [
    "a reconfiguration of a member with other flags",
    { bootstrap: { ...step, configuration: "x" } },
    "reconfigure",
  ],
  [
    "nothing of one that has not joined yet",
    { bootstrap: undefined, size: "Standard_B2s" },
    undefined,
  ],
  ["only the replacement of one that also grows", { generation: "before", size: "x" }, "replace"],
  ["nothing of one that has lost its tags", { generation: undefined }, undefined],
  ["nothing of one of unknown initialization", { initialization: undefined }, undefined],
])("plans %s", (_, machine, does) => {
  expect(changes(machine)).toEqual(
    does === undefined ? [] : [{ machine: first, action: does, reasons: expect.anything() }],
  );
});

it("replaces a machine that etcd does not list any more, and says why", () => {
  expect(changes({ removedFromEtcd: true, bootstrap: step })).toEqual([
    {
      machine: first,
      action: "replace",
      reasons: [expect.stringMatching(/^it is no member of etcd/)],
    },
  ]);
});

it("believes the outputs where a tag is missing", () => {
  const machines = { [first]: { ...remembered, generation: "before" } };

  expect(changes({ generation: undefined }, { machines })).toEqual([
    { machine: first, action: "replace", reasons: [] },
  ]);
  expect(changes({ generation: "now" }, { machines })).toEqual([]);
});

it("says of a machine that gets another size what version it becomes as well", () => {
  const bootstrap = { ...step, kubernetesVersion: "1.36.3" };

  expect(changes({ size: "Standard_B2s", bootstrap })).toEqual([
    {
      machine: first,
      action: "resize",
      reasons: ["Standard_B2s -> Standard_D2s_v5", "1.36.3 -> 1.36.4"],
    },
  ]);
});

it("removes what the settings no longer name, after everything else", () => {
  const machines = new Map([
    ["zoned-test-old-1", well],
    [controlPlane, { ...well, size: "Standard_B2s" }],
  ]);

  expect(machineChanges("1-then", wanted, { machines }, undefined)).toEqual([
    { machine: controlPlane, action: "resize", reasons: ["Standard_B2s -> Standard_D2s_v5"] },
    { machine: "zoned-test-old-1", action: "remove", reasons: [] },
  ]);
});

it("removes no machine that somebody else has made in the resource group, and one of its own without its tags", () => {
  const untagged = { ...well, generation: undefined, initialization: undefined };
  const machines = new Map([
    ["jump-host", untagged],
    ["zoned-test-old-1", untagged],
  ]);
  const memory = { machines: { "zoned-test-old-1": remembered } } as unknown as PreviousOutputs;

  expect(machineChanges("1-then", wanted, { machines }, memory)).toEqual([
    { machine: "zoned-test-old-1", action: "remove", reasons: [] },
  ]);
});

it("replaces no machine for the default of the image", () => {
  const unnamed = wanted.map((one) => ({ ...one, imageVersion: "" }));
  const machines = new Map(names.map((name) => [name, { ...well, image: "1" }]));

  expect(machineChanges("1-then", unnamed, { machines }, undefined)).toEqual([]);
});

it("says what a machine was made with, and what it would be made with", () => {
  const replacementInputs = { zone: "2", osDiskSizeGb: "32" };
  const machines = {
    [first]: { ...remembered, generation: "before", replacementInputs },
  };

  expect(changes({ generation: "before", image: "1" }, { machines })).toEqual([
    {
      machine: first,
      action: "replace",
      reasons: ["osDiskSizeGb 32 -> 64", "imageVersion 1 -> 2"],
    },
  ]);
});

it("says of a machine that is made anew what size and version it becomes as well, each once", () => {
  const bootstrap = { ...step, kubernetesVersion: "1.36.3" };
  const machine = { image: "1", size: "Standard_B2s", bootstrap };
  const { replacementInputs } = wanted[1]!;
  // As of a machine whose OS disk was its host's.
  const before = { ...replacementInputs, size: "standard_b2s" };
  const machines = { [first]: { ...remembered, replacementInputs: before } };

  for (const memory of [undefined, { machines }])
    expect(changes(machine, memory).flatMap(({ reasons }) => reasons)).toEqual([
      "imageVersion 1 -> 2",
      "size Standard_B2s -> Standard_D2s_v5",
      "1.36.3 -> 1.36.4",
    ]);
});

it("says what it was made without, and will be", () => {
  const before = { zone: wanted[1]!.plan.zone, osDiskSizeGb: "64", encryptionAtHost: "true" };
  const machines = {
    [first]: { ...remembered, generation: "before", replacementInputs: before },
  };
  const reasonsOf = (memory: Partial<PreviousOutputs>) =>
    changes({ generation: "before" }, memory).flatMap(({ reasons }) => reasons);

  expect(reasonsOf({ machines })).toEqual(["encryptionAtHost true -> not set"]);
});

it("believes the outputs of a member whose step has failed since", () => {
  const bootstrap = { ...step, state: "Failed" };
  const machines = { [first]: { ...remembered, kubernetesVersion: "1.36.3" } };

  expect(changes({ bootstrap }, { machines })).toEqual([
    { machine: first, action: "upgrade", reasons: ["1.36.3 -> 1.36.4"] },
  ]);
});
