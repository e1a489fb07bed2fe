import { MachineFacts } from "../components/azure-state";
import { machineChanges, Memory } from "../components/machine-changes";
import { machinesOf } from "../components/topology";
import { sound } from "./sample";

const settings = { ...sound, controlPlaneCount: 1 };
const wanted = machinesOf(settings).map((plan) => ({ plan, generation: "now" }));
const names = wanted.map(({ plan }) => plan.name);
const [controlPlane = "", first = ""] = names;

const well: MachineFacts = {
  size: "Standard_D2s_v5",
  generation: "now",
  initialization: "1-then",
  made: "then",
};

/** What an `up` does to machines of which one is otherwise. */
const changes = (other: Partial<MachineFacts> | undefined, memory?: Partial<Memory>) => {
  const machines = new Map(
    names.flatMap((name): [string, MachineFacts][] =>
      name !== first
        ? [[name, well]]
        : other === undefined
          ? []
          : [[name, { ...well, ...other }]],
    ),
  );
  return machineChanges("1-then", wanted, { machines }, memory as Memory | undefined);
};

it.each<[string, Partial<MachineFacts> | undefined, string | undefined]>([
  ["nothing of a machine that is as it shall be", {}, undefined],
  ["nothing of one that is gone, since it is made anew", undefined, undefined],
  ["nothing of one whose size is written otherwise", { size: "standard_d2s_V5" }, undefined],
  ["a resize of one of another size", { size: "Standard_B2s" }, "resize"],
  ["a replacement of one of another generation", { generation: "before" }, "replace"],
  ["nothing of what another initialization has left", { initialization: "0-before" }, undefined],
  ["only the replacement of one that also grows", { generation: "before", size: "x" }, "replace"],
  ["nothing of one that has lost its tags", { generation: undefined }, undefined],
  ["nothing of one of unknown initialization", { initialization: undefined }, undefined],
])("plans %s", (_, facts, does) => {
  expect(changes(facts)).toEqual(does === undefined ? [] : [{ machine: first, does }]);
});

it("believes the outputs where a tag is missing", () => {
  const machines = { [first]: { generation: "before", made: "then", run: "then" } };

  expect(changes({ generation: undefined }, { machines })).toEqual([
    { machine: first, does: "replace" },
  ]);
  expect(changes({ generation: "now" }, { machines })).toEqual([]);
});

it("removes what the settings no longer name, after everything else", () => {
  const machines = new Map([
    ["zoned-test-old-1", well],
    [controlPlane, { ...well, size: "Standard_B2s" }],
  ]);

  expect(machineChanges("1-then", wanted, { machines }, undefined)).toEqual([
    { machine: controlPlane, does: "resize" },
    { machine: "zoned-test-old-1", does: "remove" },
  ]);
});
