import { BootstrapState, MachineState } from "../../../components/azure/state";
import { fixedSettings } from "../../../components/plan/fixed-settings";
import { decideInitialization } from "../../../components/plan/initialization";
import { PreviousOutputs } from "../../../components/plan/machine-changes";
import { MachineRecord } from "../../../components/machine/generation";
import { Settings } from "../../../components/settings/settings";
import { machinesOf } from "../../../components/settings/topology";
import { alwaysLeft, subscriptionId, validSettings } from "../../support/sample";

const now = "2026-11-23T17:41:28.123Z";
const id = "1-20260101T000000Z";
const step = (state: string): BootstrapState => ({
  state,
  requestedAt: "then",
  initialControlPlane: "the-initial-vm",
});

/** A machine as the last update left it. */
const well: MachineState = {
  size: "Standard_D2s_v5",
  generation: "now",
  initialization: id,
  createdAt: "then",
  bootstrap: step("Succeeded"),
};
const bare = { generation: undefined, initialization: undefined, createdAt: undefined };

/** States of a machine; an old one is about to be replaced. */
const states: Readonly<Record<string, MachineState | undefined>> = {
  well,
  old: { ...well, generation: "before" },
  failed: { ...well, bootstrap: step("Failed") },
  "old-failed": { ...well, bootstrap: step("Failed"), generation: "before" },
  running: { ...well, bootstrap: step("Updating") },
  unbooted: { ...well, bootstrap: undefined, createdAt: "later" },
  "old-unbooted": { ...well, bootstrap: undefined, createdAt: "later", generation: "before" },
  untagged: { ...well, ...bare },
  stepless: { ...well, bootstrap: undefined },
  ninth: { ...well, initialization: "9-20260202T000000Z" },
  tenth: { ...well, initialization: "10-20260101T000000Z" },
  /** Made for the initialization after this one. */
  next: { ...well, initialization: "2-20260202T000000Z", bootstrap: undefined },
  "next-well": { ...well, initialization: "2-20260202T000000Z" },
  /** Made to restore the cluster from a snapshot, and a control plane since it was restored. */
  restoring: { ...well, initialization: `${id}-20260303T000000Z`, bootstrap: undefined },
  "restoring-failed": {
    ...well,
    initialization: `${id}-20260303T000000Z`,
    bootstrap: step("Failed"),
  },
  /** By a step that may have restored another snapshot than the last one. */
  "restoring-older": {
    ...well,
    initialization: `${id}-20260303T000000Z`,
    bootstrap: { ...step("Failed"), restoredFrom: "older.db" },
  },
  restored: {
    ...well,
    initialization: `${id}-20260303T000000Z`,
    bootstrap: { ...step("Succeeded"), restoredFrom: "latest" },
  },
  gone: undefined,
};

interface Scene {
  /** Control planes in turn, in words of the list above. */
  readonly machines: string;
  readonly workers?: string;
  /** How many control planes an update that ended well had; none ended well if undefined. */
  readonly had?: number;
  readonly groupState?: string;
  readonly settings?: Partial<Settings>;
  /** The setting `restoreFrom` of that update. */
  readonly restoreFrom?: string;
}

const named = (name: string, machines: string) =>
  machines.split(" ").flatMap((word, index) => {
    const machine = states[word];
    return machine === undefined ? [] : [[`zoned-test-${name}-${index + 1}`, machine] as const];
  });

const remembered: MachineRecord = {
  generation: "now",
  createdAt: "then",
  bootstrapRequestedAt: "then",
  kubernetesVersion: "1.36.3",
  configuration: "now",
};

const decide = ({ machines, workers = "gone", had, groupState, settings, restoreFrom }: Scene) => {
  const controlPlaneCount = machines.split(" ").length;
  const wanted = { ...validSettings, workerPools: [], controlPlaneCount, ...settings };
  const memory: PreviousOutputs | undefined =
    had === undefined
      ? undefined
      : {
          initialization: id,
          initialControlPlane: "the-remembered",
          settings: fixedSettings(validSettings),
          controlPlanes: had,
          ...alwaysLeft,
          restoreFrom,
          subscriptionId,
          machines: Object.fromEntries(
            Array.from({ length: had }, (_, index) => [`zoned-test-cp-${index + 1}`, remembered]),
          ),
        };
  const existing = [...named("cp", machines), ...named("db", workers)];
  return decideInitialization(
    wanted,
    machinesOf(wanted).map((plan) => ({
      plan,
      generation: "now",
      replacementInputs: {},
      imageVersion: "",
      kubernetesVersion: "1.36.3",
      configuration: "now",
    })),
    { machines: new Map(existing), groupState },
    memory,
    now,
  );
};

it.each`
  cloud                                           | machines                      | workers      | had          | exists
  ${"is empty"}                                   | ${"gone gone gone"}           | ${undefined} | ${undefined} | ${false}
  ${"has machines whose steps never ran"}         | ${"unbooted unbooted"}        | ${undefined} | ${undefined} | ${false}
  ${"shows the first step as failed"}             | ${"failed unbooted unbooted"} | ${undefined} | ${undefined} | ${false}
  ${"shows the first step as running"}            | ${"running"}                  | ${undefined} | ${undefined} | ${false}
  ${"shows one step that succeeded"}              | ${"well unbooted unbooted"}   | ${undefined} | ${undefined} | ${true}
  ${"shows the step of one that joined"}          | ${"gone well gone"}           | ${undefined} | ${undefined} | ${true}
  ${"shows a step that is ordered after another"} | ${"failed failed unbooted"}   | ${undefined} | ${undefined} | ${true}
  ${"shows a worker's step, however it ended"}    | ${"failed"}                   | ${"failed"}  | ${undefined} | ${true}
  ${"shows failures, and the outputs remember"}   | ${"failed failed failed"}     | ${undefined} | ${3}         | ${true}
`("takes a cluster for initialized ($exists) when Azure $cloud", ({ exists, ...scene }) => {
  expect(decide(scene)).toMatchObject({ exists, problems: [] });
});

it("keeps the initial control plane that the steps name, else the one that the outputs remember", () => {
  expect(decide({ machines: "gone well well", had: 3 }).initialControlPlane).toBe("the-initial-vm");
  expect(decide({ machines: "gone stepless stepless", had: 3 }).initialControlPlane).toBe(
    "the-remembered",
  );
  expect(decide({ machines: "failed unbooted unbooted" }).initialControlPlane).toBeUndefined();
});

it("calls the first initialization by the time of this update, and a later update by the same", () => {
  expect(decide({ machines: "gone" }).id).toBe("1-20261123T174128Z");
  expect(decide({ machines: "unbooted" }).id).toBe(id);
  expect(decide({ machines: "gone", had: 1 }).id).toBe(id);
  expect(decide({ machines: "untagged untagged untagged", had: 3 }).id).toBe(id);
});

it.each`
  change                                             | machines                                  | had
  ${"an image, with all machines well"}              | ${"old old old"}                          | ${3}
  ${"an image, half-way through"}                    | ${"well old old"}                         | ${3}
  ${"nothing, with a machine missing"}               | ${"well gone well"}                       | ${3}
  ${"an image, when the machine before is missing"}  | ${"gone old old"}                         | ${3}
  ${"an image, when the machine before failed"}      | ${"failed old old"}                       | ${3}
  ${"what keeps that very machine from joining"}     | ${"well old-failed old"}                  | ${3}
  ${"what keeps that very machine from booting"}     | ${"well old-unbooted old"}                | ${3}
  ${"an image, with one not booted and one missing"} | ${"old-unbooted well well well gone"}     | ${5}
  ${"an image of machines that are about to join"}   | ${"well old-unbooted old-unbooted"}       | ${undefined}
  ${"the count, from one to three"}                  | ${"well gone gone"}                       | ${1}
  ${"an image, before anything is initialized"}      | ${"old-failed old-unbooted old-unbooted"} | ${undefined}
  ${"an image, before the only machine initialized"} | ${"old-failed"}                           | ${undefined}
`("lets change $change", ({ machines, had }) => {
  expect(decide({ machines, had }).problems).toEqual([]);
});

it.each`
  danger                                                       | machines                      | had  | says
  ${"initializing anew when all machines are gone"}            | ${"gone gone gone"}           | ${3} | ${"pulumi destroy"}
  ${"going on with one of three after an interrupted destroy"} | ${"gone gone well"}           | ${3} | ${"has 1 of them left, fewer than the 2"}
  ${"going on with two of five"}                               | ${"well well gone gone gone"} | ${5} | ${"has 2 of them left, fewer than the 3"}
  ${"replacing the only control plane"}                        | ${"old"}                      | ${1} | ${`pulumi config set reinitialize ${id}, then pulumi up`}
  ${"replacing the only control plane after its run failed"}   | ${"old-failed"}               | ${1} | ${"go to three control planes first"}
  ${"going on with one that was made anew and never joined"}   | ${"unbooted"}                 | ${1} | ${"has 0 of them left"}
  ${"replacing the only member while others are added"}        | ${"old gone gone"}            | ${1} | ${"run pulumi up until the other 2 have joined"}
`("refuses $danger", ({ machines, had, says }) => {
  expect(decide({ machines, had })).toMatchObject({
    exists: true,
    problems: [expect.stringContaining(says)],
  });
});

it("says of a lost cluster which resource group is not there, and where it was looked for", () => {
  const lost = (groupState?: string) =>
    decide({ machines: "gone", had: 1, groupState }).problems.join("\n");
  const missing = `There is no resource group zoned-test in subscription ${subscriptionId}.`;

  expect(lost()).toContain(missing);
  expect(lost("Succeeded")).not.toContain("There is no resource group");
});

it("takes no machine for replaced or lost because somebody took its tags or its step away", () => {
  for (const machines of ["untagged", "stepless"]) {
    expect(decide({ machines, had: 1 })).toMatchObject({ id, exists: true, problems: [] });
  }
});

it("lets control planes go, and counts them as members until they are gone", () => {
  for (const [machines, had] of [
    ["well well well", 3],
    ["well well well well well", 5],
    // What an update has left that ended among them: the outputs were written before.
    ["well well", 1],
  ] as const) {
    const settings = { controlPlaneCount: 1 };
    expect(decide({ machines, had, settings })).toMatchObject({ exists: true, problems: [] });
  }
});

it("counts as a control plane only what is called like one", () => {
  const scene = { machines: "well", workers: "well well", had: 3 };

  expect(decide(scene).problems).toEqual([
    expect.stringContaining("has 1 of them left, fewer than the 2"),
  ]);
});

it("waits for a group that is being deleted, whatever lies in it", () => {
  expect(decide({ machines: "old gone well", had: 3, groupState: "Deleting" })).toMatchObject({
    exists: true,
    problems: [expect.stringContaining("still being deleted")],
  });
});

it("tells every problem in one go", () => {
  expect(decide({ machines: "old gone gone", had: 3 }).problems).toHaveLength(2);
});

const reinitialize = (machines: string, had: number, named = id) =>
  decide({ machines, had, settings: { reinitialize: named } });

it.each([
  ["the only control plane is to be replaced", "old", 1],
  ["the only control plane is gone", "gone", 1],
  ["all of three are gone", "gone gone gone", 3],
  ["one of three still stands", "gone well gone", 3],
  ["two of five still stand", "well well gone gone gone", 5],
])("initializes anew if reinitialize names the initialization, when %s", (_, machines, had) => {
  expect(reinitialize(machines, had)).toEqual({
    id: "2-20261123T174128Z",
    exists: false,
    problems: [],
    warnings: [],
  });
  expect(reinitialize(machines, had, "1-20250101T000000Z").problems).toHaveLength(1);
});

it.each([
  ["a cluster that is well", "well well well", 3],
  ["a new image of three control planes", "old old old", 3],
  ["two of three that still stand", "gone old well", 3],
  ["an only control plane that stays", "well", 1],
])("initializes nothing anew because the setting was left behind: %s", (_, machines, had) => {
  expect(reinitialize(machines, had)).toMatchObject({
    id,
    exists: true,
    problems: [],
    warnings: [expect.stringContaining("pulumi config rm reinitialize")],
  });
});

it("says that a setting is spent, on the very initialization that it asked for and after it", () => {
  for (const machines of ["next", "next-well"]) {
    const { id: after, warnings } = reinitialize(machines, 1);

    expect(after).toBe("2-20260202T000000Z");
    expect(warnings).toEqual([expect.stringContaining("does nothing any more")]);
  }
});

it("goes on with an initialization that was interrupted among machines of the one before", () => {
  expect(reinitialize("next well well", 3)).toMatchObject({
    id: "2-20260202T000000Z",
    exists: false,
    problems: [],
  });
  expect(reinitialize("next-well well well", 3)).toMatchObject({ exists: true });
});

describe("a cluster whose control plane is lost", () => {
  const container =
    "/subscriptions/1/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd";
  const etcdBackups = { container, every: "1h" };
  const restore = (machines: string, had: number, settings: Partial<Settings> = {}) =>
    decide({ machines, had, settings: { etcdBackups, restoreFrom: "latest", ...settings } });
  const restoration = {
    id: `${id}-20261123T174128Z`,
    exists: true,
    isRestoring: true,
    restoredFrom: "latest",
    problems: [],
    warnings: [],
  };

  it("is told first of its snapshots, where it has some, and then how all of it is lost", () => {
    const [problem = ""] = decide({
      machines: "gone gone gone",
      had: 3,
      settings: { etcdBackups },
    }).problems;

    expect(problem).toMatch(/set restoreFrom latest, then pulumi up.+set reinitialize 1-/);
    const folder = decide({
      machines: "gone",
      had: 1,
      settings: { etcdBackups: { every: "1h" } },
    }).problems;
    expect(folder).toEqual([expect.not.stringContaining("restoreFrom")]);
  });

  it.each([
    ["all of three", "gone gone gone"],
    ["two of three", "gone well gone"],
  ])("is restored when %s are lost", (_, machines) => {
    expect(restore(machines, 3)).toEqual(restoration);
  });

  it("is not restored by a setting that was left behind, unless the cluster is named as well", () => {
    const left = { etcdBackups, restoreFrom: "latest" };
    const lost = { machines: "gone well gone", had: 3, restoreFrom: "latest" };

    const refused = decide({ ...lost, settings: left });

    expect(refused.isRestoring).toBeUndefined();
    const [problem = ""] = refused.problems;
    expect(problem).toMatch(/^cluster zoned-test had 3 .*restoreFrom is latest, as it was before/);
    const [, named = ""] = /config set reinitialize (\S+),/.exec(problem) ?? [];
    expect(decide({ ...lost, settings: { ...left, reinitialize: named } })).toEqual(restoration);
    const [taken = ""] = decide({ ...lost, settings: { etcdBackups } }).problems;
    expect(taken).toContain(`set restoreFrom latest, pulumi config set reinitialize ${id}, then`);
    const other = { ...left, restoreFrom: "20251231T000000Z-7.db" };
    expect(decide({ ...lost, settings: other })).toMatchObject({ isRestoring: true });
  });

  it("is restored by choice only where a second setting names what may be lost", () => {
    expect(restore("well well well", 3)).toMatchObject({
      id,
      problems: [],
      warnings: [
        expect.stringMatching(
          new RegExp(`config rm restoreFrom.+pulumi config set reinitialize ${id}$`),
        ),
      ],
    });
    expect(restore("well well well", 3, { reinitialize: "1-20250101T000000Z" }).id).toBe(id);
    const chosen = { ...restoration, isByChoice: true };
    expect(restore("well well well", 3, { reinitialize: id })).toEqual(chosen);
    expect(restore("old", 1, { reinitialize: id })).toEqual(chosen);
  });

  it("goes on where a restoration has ended half-way, on the machines that were made for it", () => {
    for (const machines of ["restoring restoring well", "restoring-failed restoring restoring"]) {
      expect(restore(machines, 3)).toEqual({ ...restoration, id: `${id}-20260303T000000Z` });
    }
    const unnamed = restore("restoring restoring", 3, { restoreFrom: "" });
    expect(unnamed.problems).toEqual([expect.stringContaining("set restoreFrom latest")]);
    expect(unnamed.problems).toEqual([expect.not.stringContaining("az vm delete")]);
  });

  it("begins once more on other machines where a step was to restore another snapshot, which it may have done", () => {
    const machines = "restoring-older restoring restoring";

    expect(restore(machines, 3)).toEqual(restoration);
    expect(restore(machines, 3, { restoreFrom: "older.db" })).toMatchObject({
      id: `${id}-20260303T000000Z`,
      isRestoring: true,
    });
  });

  it("says how the cluster of before is kept while most of its control planes still stand", () => {
    const stopped = restore("restoring well well", 3, { restoreFrom: "" });
    expect(stopped.problems).toEqual([
      expect.stringMatching(
        /zoned-test-cp-2, zoned-test-cp-3 still stand: .*az vm delete --resource-group zoned-test --name zoned-test-cp-1 --yes\)$/,
      ),
    ]);
    // And as it says:
    expect(restore("gone well well", 3, { restoreFrom: "" })).toMatchObject({ id, problems: [] });
  });

  it("is not restored twice by settings that were left behind, and remembers its snapshot", () => {
    const settings = { reinitialize: id };
    for (const machines of ["restored restored restored", "restored restoring well"]) {
      const after = restore(machines, 3, settings);
      expect(after).toMatchObject({
        id: `${id}-20260303T000000Z`,
        exists: true,
        restoredFrom: "latest",
        problems: [],
      });
      expect(after.isRestoring).toBeUndefined();
      expect(after.warnings).toHaveLength(2);
    }
  });

  it("is not restored beside control planes that are to go, whose etcd might answer", () => {
    const fewer = { controlPlaneCount: 1, reinitialize: id };
    expect(restore("well well well", 3, fewer).problems).toEqual([
      expect.stringMatching(/zoned-test-cp-2, zoned-test-cp-3 would be deleted only after that/),
    ]);
    expect(restore("gone gone gone", 3, { controlPlaneCount: 1 })).toEqual(restoration);
  });

  it("gives the command that deletes each of them, in its group", () => {
    const fewer = { controlPlaneCount: 1, reinitialize: id, resourceGroup: "platform" };
    const deletion = (name: string) =>
      `az vm delete --resource-group platform --name ${name} --yes`;
    expect(restore("well well well", 3, fewer).problems).toEqual([
      expect.stringContaining(`(${deletion("zoned-test-cp-2")}; ${deletion("zoned-test-cp-3")})`),
    ]);
  });

  it("may still be given up for a new, empty one when no snapshot can be restored", () => {
    const settings = { restoreFrom: "", reinitialize: `${id}-20260303T000000Z` };
    expect(restore("restoring-failed restoring", 3, settings)).toMatchObject({
      id: "2-20261123T174128Z",
      exists: false,
    });
  });
});

it("counts initializations by their numbers", () => {
  expect(decide({ machines: "tenth ninth well" }).id).toBe("10-20260101T000000Z");
});
