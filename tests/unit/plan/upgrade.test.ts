import { MachineState } from "../../../components/azure/state";
import { type MachineChange, PreviousOutputs } from "../../../components/plan/machine-changes";
import {
  ControlPlaneChanges,
  etcdVersionProblems,
  upgradeProblems,
} from "../../../components/plan/upgrade";
import { machinesOf } from "../../../components/settings/topology";
import { minors } from "../../../components/versions";
import { etcdctlPod, serveKubernetesObjects } from "../../support/kubernetes-api";
import { validSettings } from "../../support/sample";

const untouched: ControlPlaneChanges = { lost: [], replaced: [], removed: [] };
const settingsOf = (kubernetesVersion: string) => ({ ...validSettings, kubernetesVersion });

/** Machines of one role, by the version that their steps say. */
const machinesOfVersions = (role: "cp" | "workers", versions: readonly string[]) =>
  versions.map((kubernetesVersion, index): [string, MachineState] => [
    `zoned-test-${role}-${index + 1}`,
    { size: "any", bootstrap: { state: "Succeeded", kubernetesVersion } },
  ]);

const problems = (
  wanted: string,
  versions: readonly string[],
  changes: Partial<ControlPlaneChanges> = {},
) => {
  const machines = new Map(machinesOfVersions("cp", versions));
  return upgradeProblems(settingsOf(wanted), { machines }, undefined, { ...untouched, ...changes });
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

  expect(upgradeProblems(settingsOf("1.36.2"), { machines: new Map() }, memory, untouched)).toEqual(
    [expect.stringContaining("cannot go back")],
  );
});

it.each([
  ["on with an upgrade that no worker has made", "1.37.2", ["1.36.3", "1.36.3"], []],
  ["back while no worker has made it", "1.36.3", ["1.36.3", "1.36.3"], []],
  [
    "not back once a worker has",
    "1.36.3",
    ["1.37.2", "1.36.3"],
    ["zoned-test-workers-1 run 1.37.2"],
  ],
])(
  "goes %s where the cluster is restored, whatever control planes run that are made anew for it",
  (_, wanted, workers, says) => {
    const machines = new Map([
      ...machinesOfVersions("cp", ["1.37.2", "1.36.3"]),
      ...machinesOfVersions("workers", workers),
    ]);
    const memory = { machines: { "zoned-test-cp-3": { kubernetesVersion: "1.35.0" } } };

    expect(
      upgradeProblems(settingsOf(wanted), { machines }, memory as unknown as PreviousOutputs),
    ).toEqual(says.map((text) => expect.stringContaining(text)));
  },
);

describe("versions of etcd's members", () => {
  const now = "2026-11-25T02:00:00.000Z";
  const before = "1.36.3";
  const wanted = `${minors[0].minor}.2`;
  const controlPlanes = machinesOf({ ...validSettings, controlPlaneCount: 3 }).filter(
    ({ role }) => role === "control-plane",
  );
  const names = controlPlanes.map(({ name }) => name);

  /** Commands of the pods that were made. */
  let asked: string[][];
  /** Names of the machines that they ran on. */
  let ranOn: string[];
  /** What each member reports; nothing where its pod fails. */
  let versions: readonly string[] | undefined;
  let kubeconfig: string;

  beforeAll(async () => {
    kubeconfig = await serveKubernetesObjects((request) => {
      if (request.method === "PATCH") {
        const { spec } = request.body;
        asked.push(spec.containers[0].command);
        ranOn.push(spec.nodeName);
      }
      const endpoints = versions?.map((version, index) => ({
        Endpoint: `https://${controlPlanes[index]!.address}:2379`,
        Status: { version },
      }));
      return etcdctlPod(request, endpoints && JSON.stringify(endpoints));
    });
  });
  beforeEach(() => {
    asked = [];
    ranOn = [];
    versions = ["3.6.14", "3.6.14", "3.6.14"];
  });

  interface Scene {
    readonly kubernetesVersion?: string;
    readonly skipHealthCheckUntil?: string;
    /** Versions that the machines have, in their order. */
    readonly have?: readonly string[];
    /** What the step of the first was to upgrade it to when it failed. */
    readonly failedAt?: string;
    /** How many machines Azure has, the first ones. */
    readonly exist?: number;
    readonly removedFromEtcd?: string;
    /** What the update does to those of another version. */
    readonly action?: MachineChange["action"];
  }

  const problemsOf = ({
    kubernetesVersion = wanted,
    skipHealthCheckUntil = "",
    have = names.map(() => before),
    failedAt,
    exist = names.length,
    removedFromEtcd,
    action = "upgrade",
  }: Scene = {}) =>
    etcdVersionProblems({
      settings: { kubernetesVersion, skipHealthCheckUntil },
      controlPlanes,
      changes: names
        .filter((_, index) => have[index] !== kubernetesVersion)
        .map((machine): MachineChange => ({ machine, action, reasons: [] })),
      azure: {
        machines: new Map(
          names.slice(0, exist).map((name, index): [string, MachineState] => [
            name,
            {
              size: "any",
              ...(name === removedFromEtcd && { removedFromEtcd: true }),
              bootstrap:
                index === 0 && failedAt !== undefined
                  ? { state: "Failed", kubernetesVersion: failedAt }
                  : { state: "Succeeded", kubernetesVersion: have[index] },
            },
          ]),
        ),
      },
      previous: undefined,
      ...{ kubeconfig, now },
    });

  it("lets a cluster go to the next minor whose etcd is new enough, after a look at every member", async () => {
    versions = ["3.6.11", "3.6.14", "3.7.0"];

    expect(await problemsOf()).toEqual([]);
    const urls = controlPlanes.map(({ address }) => `https://${address}:2379`).join(",");
    expect(asked).toEqual([expect.arrayContaining([`--endpoints=${urls}`, "status"])]);
  });

  it("refuses the next minor while a member is older, and names it with the command that upgrades it", async () => {
    versions = ["3.6.14", "3.6.10", "3.6.8"];

    expect(await problemsOf()).toEqual([
      expect.stringMatching(
        `members from 3.6.11 on, and ${names[1]} reports 3.6.10, ${names[2]} reports 3.6.8. Nothing was changed; ` +
          `.*pulumi config set kubernetesVersion ${before}, pulumi up, then`,
      ),
    ]);
  });

  it("refuses it as well where the same update resizes the members", async () => {
    versions = ["3.6.14", "3.6.10", "3.6.8"];

    expect(await problemsOf({ action: "resize" })).toEqual([
      expect.stringContaining("members from 3.6.11 on"),
    ]);
  });

  it("refuses what nobody can vouch for", async () => {
    versions = undefined;

    expect(await problemsOf()).toEqual([
      expect.stringMatching(/nobody knows which version the members have: .*silence/),
    ]);
  });

  it("goes on with an upgrade that has begun, by a look at the members that it has not come to", async () => {
    expect(await problemsOf({ have: [wanted, before, before] })).toEqual([]);
    const [first, ...others] = controlPlanes.map(({ address }) => `https://${address}:2379`);
    expect(asked[0]).toContain(`--endpoints=${others.join(",")}`);
    expect(asked[0]!.join()).not.toContain(first);
  });

  const takenBack: Scene = { kubernetesVersion: before, failedAt: wanted };

  it("lets an upgrade to another minor be taken back while no other member has left the old one", async () => {
    versions = ["3.7.0", "3.6.14", "3.6.14"];

    expect(await problemsOf(takenBack)).toEqual([]);
    expect(asked).toHaveLength(1);
  });

  it("refuses to take it back once one of them has, whose etcd kubeadm would leave as it is", async () => {
    versions = ["3.7.0", "3.6.14", "3.7.0"];

    expect(await problemsOf(takenBack)).toEqual([
      expect.stringMatching(
        `and ${names[2]} reports 3.7.0: there is no way back, since kubeadm leaves .*` +
          `pulumi config set kubernetesVersion ${wanted}, pulumi up`,
      ),
    ]);
  });

  const endpointsOf = (...machines: readonly (typeof controlPlanes)[number][]): string =>
    `--endpoints=${machines.map(({ address }) => `https://${address}:2379`).join(",")}`;

  it.each<[string, Scene]>([
    ["is lost or not made yet", { exist: 2 }],
    ["has left etcd", { removedFromEtcd: names[2] }],
  ])(
    "asks about the way back neither a control plane that %s nor by the one that failed",
    async (_, scene) => {
      expect(await problemsOf({ ...takenBack, ...scene })).toEqual([]);
      expect(asked).toEqual([expect.arrayContaining([endpointsOf(controlPlanes[1]!)])]);
      expect(ranOn).toEqual([names[1]]);
    },
  );

  it("asks about the way back the control plane that failed where no other one is well", async () => {
    versions = ["3.7.0"];

    expect(await problemsOf({ ...takenBack, exist: 1 })).toEqual([
      expect.stringMatching(`${names[0]} reports 3.7.0: there is no way back`),
    ]);
    expect(ranOn).toEqual([names[0]]);
  });

  it("refuses to take it back once all members have, and names the way on", async () => {
    versions = ["3.7.0", "3.7.0", "3.7.0"];

    expect(await problemsOf(takenBack)).toEqual([
      expect.stringMatching(
        `etcd is 3.6.14, after an upgrade to ${wanted} that has not ended, and ${names[1]} reports 3.7.0, .*` +
          `no way back, .*pulumi config set kubernetesVersion ${wanted}, pulumi up`,
      ),
    ]);
  });

  it.each<[string, Scene]>([
    [
      "a patch that is taken back",
      { kubernetesVersion: before, have: names.map(() => before), failedAt: "1.36.9" },
    ],
    ["another patch of the same minor", { have: names.map(() => `${minors[0].minor}.1`) }],
    ["what the etcd of the minor before is for", { kubernetesVersion: before, have: ["1.35.4"] }],
    ["members that are made anew", { action: "replace" }],
    ["a cluster that the operator vouches for", { skipHealthCheckUntil: "29990101T000000Z" }],
  ])("asks nobody for %s", async (_, scene) => {
    versions = undefined;

    expect(await problemsOf(scene)).toEqual([]);
    expect(asked).toEqual([]);
  });
});
