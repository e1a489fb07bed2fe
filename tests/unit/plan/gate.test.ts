import { BootstrapState, MachineState } from "../../../components/azure/state";
import { checkGate, decideGate, GateArgs } from "../../../components/plan/gate";
import { MachineChange, PreviousOutputs } from "../../../components/plan/machine-changes";
import { machinesOf } from "../../../components/settings/topology";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { freePort } from "../../support/listen";
import { validSettings } from "../../support/sample";

const now = "2026-11-23T17:41:28.123Z";
const name = (word: string) => `zoned-test-${word}`;
const step = (state: string): BootstrapState => ({ state, requestedAt: "then" });

/** How Azure may show a control plane. */
const shown: Readonly<Record<string, BootstrapState | undefined>> = {
  well: step("Succeeded"),
  failed: step("Failed"),
  running: step("Updating"),
  /** No member of etcd any more. */
  outside: step("Succeeded"),
  unjoined: undefined,
  /** Off. */
  stopped: step("Succeeded"),
  /** Off, and started by this update. */
  started: step("Succeeded"),
};

interface Scene {
  /** Control planes in turn, in words of the list above, or gone. */
  readonly machines?: string;
  /** What is done to which, such as `replace cp-1`. */
  readonly changes?: string;
  /** Control planes of which the cluster says that they are not well. */
  readonly sick?: string;
  readonly problems?: readonly string[];
  readonly areEtcds?: boolean;
  readonly isSilent?: boolean;
  /** How many members etcd lists. */
  readonly members?: number;
  /** How many the last update that ended well had; none where there was no such update. */
  readonly had?: number;
}

const args = ({ machines = "well well well", changes = "replace cp-1", had = 3 }: Scene) => {
  const words = machines.split(" ");
  const leaving = [...changes.matchAll(/remove (cp-\d)/g)].map(([, word]) => word!);
  const wanted = { ...validSettings, controlPlaneCount: words.length, workerPools: [] };
  const azureMachines = words.flatMap((word, index): [string, MachineState][] =>
    word === "gone"
      ? []
      : [
          [
            name(`cp-${index + 1}`),
            {
              size: "Standard_D2s_v5",
              initialization: word === "left" ? "0-before" : "1-then",
              bootstrap: shown[word],
              power: ["stopped", "started"].includes(word) ? "deallocated" : "running",
              removedFromEtcd: word === "outside",
            },
          ],
        ],
  );
  for (const word of leaving) {
    azureMachines.push([name(word), { size: "Standard_D2s_v5", bootstrap: step("Succeeded") }]);
  }
  const memory = {
    machines: Object.fromEntries(
      Array.from({ length: had }, (_, index) => [name(`cp-${index + 1}`), {}]),
    ),
  } as unknown as PreviousOutputs;
  return {
    settings: wanted,
    initialization: { id: "1-then" },
    changes: changes.split(", ").map((change): MachineChange => {
      const [does, machine] = change.split(" ");
      return { action: does as MachineChange["action"], machine: name(machine!), reasons: [] };
    }),
    controlPlanes: machinesOf(wanted),
    azure: { machines: new Map(azureMachines) },
    started: new Set(
      words.flatMap((word, index) => (word === "started" ? [name(`cp-${index + 1}`)] : [])),
    ),
    previous: had > 0 ? memory : undefined,
    kubeconfig: undefined,
    now,
  } satisfies GateArgs;
};

const decide = (scene: Scene) =>
  decideGate(args(scene), {
    problems: scene.problems ?? [],
    areEtcds: scene.areEtcds,
    isSilent: scene.isSilent,
    members: scene.members ?? 3,
    unhealthy: new Map((scene.sick?.split(" ") ?? []).map((word) => [name(word), ["it is ill"]])),
  });

const all = "replace cp-1, replace cp-2, replace cp-3";

it.each`
  change                                                         | scene                                                                          | first
  ${"all of a cluster that is well"}                             | ${{ changes: all }}                                                            | ${undefined}
  ${"workers of a cluster that is well"}                         | ${{ changes: "resize workers-1" }}                                             | ${undefined}
  ${"all, and begins with the one that is sick"}                 | ${{ changes: all, sick: "cp-3" }}                                              | ${"cp-3"}
  ${"the sick one alone"}                                        | ${{ changes: "replace cp-2", sick: "cp-2" }}                                   | ${"cp-2"}
  ${"the rest, where a replacement has failed"}                  | ${{ machines: "well failed well", changes: "replace cp-3" }}                   | ${"cp-2"}
  ${"the rest, where a step's end was not awaited"}              | ${{ machines: "running well well" }}                                           | ${"cp-1"}
  ${"the rest, where one was deleted"}                           | ${{ machines: "well well gone" }}                                              | ${"cp-3"}
  ${"all, while others are added for the first time"}            | ${{ machines: "well well well gone gone", changes: all }}                      | ${undefined}
  ${"the rest, where two have left etcd"}                        | ${{ machines: "well outside outside", sick: "cp-2" }}                          | ${"cp-2"}
  ${"nothing but that the sick one leaves, first of all"}        | ${{ changes: "remove cp-4, remove cp-5", sick: "cp-5" }}                       | ${undefined}
  ${"the one that others are added to, which no update came to"} | ${{ machines: "well unjoined unjoined", changes: "reconfigure cp-1", had: 1 }} | ${undefined}
  ${"it, after the one of these that has begun to join"}         | ${{ machines: "well failed unjoined", changes: "reconfigure cp-1", had: 1 }}   | ${"cp-2"}
  ${"it, after half a first update, as after any other"}         | ${{ machines: "well failed unjoined", changes: "resize cp-1", had: 0 }}        | ${"cp-2"}
  ${"one, among those that another initialization has left"}     | ${{ machines: "well left left", had: 0 }}                                      | ${undefined}
  ${"all, and begins with the one that it starts"}               | ${{ machines: "well started well", changes: all, sick: "cp-2" }}               | ${"cp-2"}
`("lets an update change $change", ({ scene, first }) => {
  expect(decide(scene)).toEqual({ problems: [], repairFirst: first && name(first) });
});

it.each`
  danger                                                       | scene                                                                  | says
  ${"one while another is sick"}                               | ${{ sick: "cp-3" }}                                                    | ${["cp-3: it is ill", "az vm delete", "unless it is an upgrade"]}
  ${"a resize of the one that is sick itself"}                 | ${{ changes: "resize cp-2", sick: "cp-2" }}                            | ${["cp-2: it is ill"]}
  ${"workers while a control plane is sick"}                   | ${{ changes: "remove workers-2", sick: "cp-1" }}                       | ${["remove zoned-test-workers-2"]}
  ${"all while two are sick"}                                  | ${{ changes: all, sick: "cp-1 cp-2" }}                                 | ${["cp-1: it is ill", "cp-2: it is ill"]}
  ${"a sick one while another is gone"}                        | ${{ machines: "well gone well", sick: "cp-1" }}                        | ${["cp-1: it is ill", "cp-2: Azure has no such VM"]}
  ${"one that is sick while another has left etcd"}            | ${{ machines: "well outside well", sick: "cp-1" }}                     | ${["cp-1: it is ill", "cp-2: it is no member of etcd any more"]}
  ${"one while two that were members have not joined yet"}     | ${{ machines: "well unjoined unjoined", changes: "reconfigure cp-1" }} | ${["cp-2: it has not joined yet", "cp-3: it has not joined yet"]}
  ${"one while another that leaves is sick"}                   | ${{ changes: "replace cp-1, remove cp-4, remove cp-5", sick: "cp-5" }} | ${["cp-5: it is ill"]}
  ${"fewer where one leaves before the sick one"}              | ${{ changes: "remove cp-4, remove cp-5", sick: "cp-4" }}               | ${["cp-4: it is ill"]}
  ${"two that leave and are sick"}                             | ${{ changes: "remove cp-4, remove cp-5", sick: "cp-4 cp-5" }}          | ${["cp-4: it is ill", "cp-5: it is ill"]}
  ${"one beside the Node of a machine that is gone"}           | ${{ sick: "cp-7" }}                                                    | ${["cp-7: Azure has no such VM; it is ill", "kubectl delete node zoned-test-cp-7"]}
  ${"anything of a cluster that does not answer"}              | ${{ problems: ["the API is silent"] }}                                 | ${["the API is silent", "skipHealthCheckUntil 20261123T184128Z"]}
  ${"one while another is off"}                                | ${{ machines: "well stopped well", sick: "cp-2" }}                     | ${["cp-2: its VM is deallocated; it is ill", "az vm start --resource-group zoned-test --name zoned-test-cp-2"]}
  ${"others while one is off that it starts, and one is sick"} | ${{ machines: "well started well", sick: "cp-3" }}                     | ${["cp-2: its VM is deallocated", "cp-3: it is ill"]}
`("refuses to change $danger, with every reason", ({ scene, says }) => {
  const { problems, repairFirst } = decide(scene);

  expect(problems).toHaveLength(1);
  expect(repairFirst).toBeUndefined();
  for (const text of says) expect(problems[0]).toContain(text);
});

it.each<[string, Scene]>([
  ["two are sick", { sick: "cp-2 cp-3" }],
  ["etcd has two members", { machines: "well well", sick: "cp-2", members: 2, had: 2 }],
  ["etcd has another member of no machine", { sick: "cp-3", problems: ["a stranger"], members: 4 }],
])("has nobody delete a VM that etcd's majority may need, as where %s", (_, scene) => {
  const { problems } = decide(scene);

  expect(problems[0]).toMatch(/bring what is named back to health, and delete no VM meanwhile/);
  expect(problems[0]).not.toContain("az vm delete");
});

it("has no Node deleted of a machine that is made anew", () => {
  const { problems } = decide({ machines: "well gone well", sick: "cp-1" });

  expect(problems[0]).toContain("cp-2: Azure has no such VM");
  expect(problems[0]).not.toContain("kubectl delete node");
});

it("asks nobody of an only control plane that is off, and that this update starts", async () => {
  const only = { machines: "started", changes: "resize cp-1", had: 1 };

  expect(await checkGate(args(only))).toEqual({ problems: [], repairFirst: name("cp-1") });
});

it("says how access is given back to this network by an update that is not held up", () => {
  const outside = "the API does not answer from here (apiAccessCidrs)";

  expect(decide({ problems: [outside] }).problems[0]).toMatch(
    /To go on:\s+- if apiAccessCidrs keeps this network out: .* without this change/,
  );
  expect(decide({ problems: ["etcd is silent"] }).problems[0]).not.toContain("apiAccessCidrs");
});

it("sends whom a private API does not answer to where it does, and to no setting of a public one", () => {
  const problems = ["the API does not answer from here (apiAccessCidrs)"];
  const settings = { ...validSettings, apiAccess: "private" } as const;

  const gate = decideGate({ ...args({ problems }), settings }, { problems, unhealthy: new Map() });

  expect(gate.problems[0]).toMatch(
    /To go on:\s+- if this network does not lead to the private API/,
  );
  expect(gate.problems[0]).not.toContain("without this change");
});

it("offers to go on unasked only where nobody could be asked: what is amiss with etcd stops each step", () => {
  const [problem] = decide({ problems: ["etcd takes no writes"], areEtcds: true }).problems;

  expect(problem).toMatch(
    /etcd takes no writes[^]*fix etcd[^]*skipHealthCheckUntil would not help/,
  );
  expect(problem).not.toContain("pulumi config set skipHealthCheckUntil");
});

it.each`
  what                           | change                 | isOffered
  ${"an upgrade"}                | ${"upgrade cp-1"}      | ${true}
  ${"a worker's replacement"}    | ${"replace workers-1"} | ${false}
  ${"a worker's removal"}        | ${"remove workers-1"}  | ${false}
  ${"a control plane's removal"} | ${"remove cp-3"}       | ${false}
`("offers skipHealthCheckUntil for $what where the API is silent: $isOffered", (row) => {
  const { problems } = decide({ changes: row.change, problems: ["silence"], isSilent: true });

  expect(problems[0]!.includes("skipHealthCheckUntil")).toBe(row.isOffered);
});

it("names everything that would be done", () => {
  const changes =
    "replace cp-1, replace workers-1, resize cp-2, upgrade cp-3, reconfigure workers-3, remove workers-2";

  expect(decide({ changes, sick: "cp-3" }).problems[0]).toContain(
    "would replace zoned-test-cp-1, zoned-test-workers-1, resize zoned-test-cp-2, upgrade zoned-test-cp-3, " +
      "reconfigure zoned-test-workers-3, remove zoned-test-workers-2,",
  );
});

it("asks nobody when no machine is touched", async () => {
  expect(await checkGate({ ...args({ machines: "failed well well" }), changes: [] })).toEqual({
    problems: [],
  });
});

it.each(["well failed gone", "well failed unjoined", "well failed outside"])(
  "puts the member whose machine is gone before one whose step has failed, and waits for it: %s",
  async (machines) => {
    const scene = { ...args({ machines }), changes: [] };

    expect(await checkGate(scene)).toEqual({ problems: [], repairFirst: name("cp-3") });
    // Before an update has ended well, nothing was a member that could be missed.
    if (!machines.endsWith("outside")) {
      expect(await checkGate({ ...scene, previous: undefined })).toEqual({ problems: [] });
    }
  },
);

it("refuses to touch machines of a cluster whose API does not answer, unless skipHealthCheckUntil allows it", async () => {
  const scene = args({});
  const until = (skipHealthCheckUntil: string) =>
    checkGate({ ...scene, settings: { ...scene.settings, skipHealthCheckUntil } });

  expect((await until("")).problems[0]).toContain("no output kubeconfig yet");
  expect((await until("20261123T174127Z")).problems).toHaveLength(1);
  expect((await until("20261123T174129Z")).problems).toEqual([]);
});

it("goes by what Azure shows even where the cluster is not asked", async () => {
  const scene = args({ machines: "well failed failed" });
  const settings = { ...scene.settings, skipHealthCheckUntil: "20261123T180000Z" };

  expect((await checkGate({ ...scene, settings })).problems[0]).toContain(
    "cp-3: its bootstrap step",
  );
});

it("asks the cluster about the control planes that Azure has, and about no other", async () => {
  const kubeconfig = await serveKubernetesApi((_, response) => response.end('{"items":[]}'));

  const { problems } = await checkGate({ ...args({ machines: "well well gone" }), kubeconfig });

  expect(problems).toEqual([
    expect.stringMatching(
      /cp-1: it has no Node.*cp-2: it has no Node.*cp-3: Azure has no such VM$/ms,
    ),
  ]);
});

describe("a change that cannot be drained or cannot leave etcd", () => {
  const asked = (settings: object, changes: string) => {
    const scene = args({ changes });
    return checkGate({
      ...scene,
      settings: { ...scene.settings, ...settings },
      kubeconfig: undefined,
    });
  };

  it("is refused while the setting that gives up this very cluster is left behind", async () => {
    const { problems } = await asked({ reinitialize: "1-then" }, "remove workers-1");

    expect(problems).toEqual([expect.stringContaining("pulumi config rm reinitialize")]);
    const spent = { reinitialize: "0-before", skipHealthCheckUntil: "20261123T180000Z" };
    expect((await asked(spent, "remove workers-1")).problems).toEqual([]);
  });

  it("is refused for control planes where the API is not asked, and not for workers", async () => {
    const unasked = { skipHealthCheckUntil: "20261123T180000Z" };

    expect((await asked(unasked, "remove cp-5")).problems).toEqual([
      expect.stringMatching(/remove zoned-test-cp-5.*pulumi config rm skipHealthCheckUntil/),
    ]);
    expect((await asked(unasked, "remove workers-1")).problems).toEqual([]);
  });
});

describe("a cluster that is not asked how it is", () => {
  let unauthorized: string;
  let silent: string;
  beforeAll(async () => {
    unauthorized = await serveKubernetesApi((_, response) => response.writeHead(401).end());
    silent = unauthorized.replace(/localhost:\d+/, `localhost:${await freePort()}`);
  });
  const unasked = (changes: string, kubeconfig: string) => {
    const { settings, ...scene } = args({ changes });
    const skipHealthCheckUntil = "20261123T180000Z";
    return checkGate({ ...scene, settings: { ...settings, skipHealthCheckUntil }, kubeconfig });
  };

  it.each(["replace workers-1", "remove workers-2"])(
    "keeps the worker that a change would %s where no join token could be made, since no API answers",
    async (change) => {
      const { problems } = await unasked(`resize cp-1, ${change}`, silent);

      expect(problems).toEqual([
        expect.stringMatching(
          /^this change would \w+ zoned-test-workers-\d, and the API at .* does not answer from here/,
        ),
      ]);
      expect(problems[0]).toMatch(
        /Nothing was changed\. Run pulumi up where the API can be reached/,
      );
      // An answer, though of a kubeconfig that has ended.
      expect((await unasked(change, unauthorized)).problems).toEqual([]);
    },
  );

  it.each(["replace cp-1", "resize workers-1", "upgrade workers-1", "reconfigure workers-1"])(
    "lets a change %s where no API answers",
    async (change) => {
      expect((await unasked(change, silent)).problems).toEqual([]);
    },
  );
});

it("drains no machine while the cluster is restored, whatever has been left half done, and touches none by a setting left behind", async () => {
  const one = args({ changes: "resize workers-1" });
  const restoring = { ...one, initialization: { id: "1-then", isRestoring: true } };
  expect(await checkGate(restoring)).toEqual({
    problems: [
      expect.stringMatching(
        /would also resize .*workers-1: take that change back.* az vm delete .*workers-1/,
      ),
    ],
  });
  const half = args({ changes: "upgrade workers-1, reconfigure workers-2" });
  expect(await checkGate({ ...half, initialization: restoring.initialization })).toEqual({
    problems: [],
  });
  // One without a Node has nothing to be drained of, and no change to be taken back.
  const changed = args({ changes: "replace workers-1" });
  const nodeless: MachineState = { size: "s", lacksNode: true };
  changed.azure.machines.set(name("workers-1"), nodeless);
  expect(await checkGate({ ...changed, initialization: restoring.initialization })).toEqual({
    problems: [],
  });
  const left = { ...one, settings: { ...one.settings, restoreFrom: "latest" } };
  expect(await checkGate(left)).toEqual({
    problems: [expect.stringContaining("pulumi config rm restoreFrom")],
  });
});
