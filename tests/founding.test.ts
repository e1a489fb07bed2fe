import { BootstrapFacts, MachineFacts } from "../components/azure-facts";
import { decideFounding, Memory } from "../components/founding";
import { Settings } from "../components/settings";
import { machinesOf } from "../components/topology";
import { sound } from "./sample";

const step = (state: string): BootstrapFacts => ({ state, run: "then", founder: "the-founder" });

/** A machine as the last `up` left it. */
const well: MachineFacts = {
  generation: "now",
  kubernetesVersion: sound.kubernetesVersion,
  bootstrap: step("Succeeded"),
};

/** How a machine can be found; an old one is about to be replaced. */
const found: Readonly<Record<string, MachineFacts | undefined>> = {
  well,
  old: { ...well, generation: "before" },
  failed: { ...well, bootstrap: step("Failed") },
  "old-failed": { ...well, bootstrap: step("Failed"), generation: "before" },
  running: { ...well, bootstrap: step("Updating") },
  unbooted: { ...well, bootstrap: undefined },
  "old-unbooted": { ...well, bootstrap: undefined, generation: "before" },
  other: { ...well, kubernetesVersion: "9.9.9" },
  gone: undefined,
};

interface Scene {
  /** Control planes in turn, in words of the list above. */
  readonly machines: string;
  readonly workers?: string;
  /** How many control planes an `up` that ended well had; none ended well if undefined. */
  readonly had?: number;
  readonly version?: string;
  readonly groupState?: string;
  readonly settings?: Partial<Settings>;
}

const named = (name: string, machines: string) =>
  machines.split(" ").flatMap((word, index) => {
    const facts = found[word];
    return facts === undefined ? [] : [[`zoned-test-${name}-${index + 1}`, facts] as const];
  });

const decide = ({ machines, workers = "gone", had, version, groupState, settings }: Scene) => {
  const controlPlaneCount = machines.split(" ").length;
  const wanted = { ...sound, workerPools: [], controlPlaneCount, ...settings };
  const kubernetesVersion = version ?? sound.kubernetesVersion;
  const memory: Memory | undefined =
    had === undefined ? undefined : { founded: true, controlPlanes: had, kubernetesVersion };
  const existing = [...named("cp", machines), ...named("db", workers)];
  return decideFounding(
    wanted,
    machinesOf(wanted).map((plan) => ({ plan, generation: "now" })),
    { machines: new Map(existing), groupState },
    memory,
  );
};

it.each`
  cloud                                           | machines                      | workers      | had          | founded
  ${"is empty"}                                   | ${"gone gone gone"}           | ${undefined} | ${undefined} | ${false}
  ${"has machines whose steps never ran"}         | ${"unbooted unbooted"}        | ${undefined} | ${undefined} | ${false}
  ${"shows the founder's first run as failed"}    | ${"failed unbooted unbooted"} | ${undefined} | ${undefined} | ${false}
  ${"shows the founder's step as running"}        | ${"running"}                  | ${undefined} | ${undefined} | ${false}
  ${"shows one step that succeeded"}              | ${"well unbooted unbooted"}   | ${undefined} | ${undefined} | ${true}
  ${"shows the step of one that joined"}          | ${"gone well gone"}           | ${undefined} | ${undefined} | ${true}
  ${"shows a step that is ordered after another"} | ${"failed failed unbooted"}   | ${undefined} | ${undefined} | ${true}
  ${"shows a worker's step, however it ended"}    | ${"failed"}                   | ${"failed"}  | ${undefined} | ${true}
  ${"shows failures, and the outputs remember"}   | ${"failed failed failed"}     | ${undefined} | ${3}         | ${true}
`("takes a cluster for founded ($founded) when Azure $cloud", ({ founded, ...scene }) => {
  expect(decide(scene)).toMatchObject({ founded, problems: [] });
});

it("keeps the founder that the steps name, also when that machine is gone", () => {
  expect(decide({ machines: "gone well well", had: 3 }).founder).toBe("the-founder");
  expect(decide({ machines: "failed unbooted unbooted" }).founder).toBeUndefined();
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
  ${"an image, before anything is founded"}          | ${"old-failed old-unbooted old-unbooted"} | ${undefined}
  ${"an image, before the only machine founded"}     | ${"old-failed"}                           | ${undefined}
`("lets change $change", ({ machines, had }) => {
  expect(decide({ machines, had }).problems).toEqual([]);
});

it.each`
  danger                                                       | machines                         | had          | says
  ${"founding anew when all machines are gone"}                | ${"gone gone gone"}              | ${3}         | ${"pulumi destroy"}
  ${"going on with one of three after an interrupted destroy"} | ${"gone gone well"}              | ${3}         | ${"has 1 of them left, fewer than the 2"}
  ${"going on with two of five"}                               | ${"well well gone gone gone"}    | ${5}         | ${"has 2 of them left, fewer than the 3"}
  ${"replacing a machine before one that is missing"}          | ${"old gone old"}                | ${3}         | ${"replace zoned-test-cp-1 while zoned-test-cp-2"}
  ${"replacing a machine before one that failed"}              | ${"old old failed"}              | ${3}         | ${"replace zoned-test-cp-1 while zoned-test-cp-3"}
  ${"replacing a machine before one whose step is running"}    | ${"well old running"}            | ${3}         | ${"replace zoned-test-cp-2 while zoned-test-cp-3"}
  ${"replacing one of two members after a failed first up"}    | ${"old old old-failed"}          | ${undefined} | ${"replace zoned-test-cp-1 while zoned-test-cp-3"}
  ${"replacing the founder after a failed first up"}           | ${"old old-failed old-unbooted"} | ${undefined} | ${"replace zoned-test-cp-1 while zoned-test-cp-3"}
  ${"replacing the only control plane"}                        | ${"old"}                         | ${1}         | ${"pulumi config set acceptDataLoss true"}
  ${"replacing the only control plane after its run failed"}   | ${"old-failed"}                  | ${1}         | ${"pulumi config set acceptDataLoss true"}
  ${"replacing the only member while others are added"}        | ${"old gone gone"}               | ${1}         | ${"pulumi config set acceptDataLoss true"}
  ${"another Kubernetes than a machine's"}                     | ${"well other well"}             | ${3}         | ${"pulumi config set kubernetesVersion 9.9.9"}
`("refuses $danger", ({ machines, had, says }) => {
  expect(decide({ machines, had })).toMatchObject({
    founded: true,
    problems: [expect.stringContaining(says)],
  });
});

it("refuses another Kubernetes than the outputs remember", () => {
  expect(decide({ machines: "gone well well", had: 3, version: "9.9.9" }).problems).toEqual([
    expect.stringContaining("the cluster runs 9.9.9"),
  ]);
});

it("refuses to take control planes away, and counts as one only what is called like one", () => {
  const scene = { machines: "well well well", workers: "well well well well" };

  expect(decide(scene).problems).toEqual([]);
  expect(decide({ ...scene, settings: { controlPlaneCount: 1 } }).problems).toEqual([
    expect.stringContaining("pulumi config set controlPlaneCount 3"),
  ]);
});

it("waits for a group that is being deleted, whatever lies in it", () => {
  expect(decide({ machines: "old gone well", had: 3, groupState: "Deleting" })).toEqual({
    founded: true,
    problems: [expect.stringContaining("still being deleted")],
  });
});

it("tells every problem in one go", () => {
  expect(decide({ machines: "old gone gone", had: 3, version: "9.9.9" }).problems).toHaveLength(3);
});

it("lets the only control plane go, to be founded anew, if its data may be lost", () => {
  const settings = { acceptDataLoss: true };

  expect(decide({ machines: "old", had: 1, settings })).toEqual({ founded: false, problems: [] });
  // The permission is for that case only.
  expect(decide({ machines: "well", had: 1, settings }).founded).toBe(true);
  expect(decide({ machines: "old gone old", had: 3, settings }).problems).toHaveLength(1);
});

it("founds anew only if told so", () => {
  const scene = { machines: "gone gone gone", had: 3 };

  expect(decide(scene).founded).toBe(true);
  expect(decide({ ...scene, settings: { refound: true } })).toEqual({
    founded: false,
    problems: [],
  });
});
