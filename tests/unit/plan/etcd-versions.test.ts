import type { MachineState } from "../../../components/azure/state";
import { etcdVersionProblems } from "../../../components/plan/upgrade";
import type { MachineChange } from "../../../components/plan/machine-changes";
import { machinesOf } from "../../../components/settings/topology";
import { minors } from "../../../components/versions";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { validSettings } from "../../support/sample";

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

/** An API whose kubelets run etcdctl at once. */
beforeAll(async () => {
  kubeconfig = await serveKubernetesApi((request, response) => {
    const { method, url = "" } = request;
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      if (method === "PATCH") {
        const { spec } = JSON.parse(body);
        asked.push(spec.containers[0].command);
        ranOn.push(spec.nodeName);
      }
      const status = versions
        ? { phase: "Succeeded" }
        : {
            phase: "Failed",
            containerStatuses: [{ state: { terminated: { exitCode: 1, message: "silence" } } }],
          };
      const endpoints = versions?.map((version, index) => ({
        Endpoint: `https://${controlPlanes[index]!.address}:2379`,
        Status: { version },
      }));
      response.end(
        url.includes("/log?")
          ? JSON.stringify(endpoints)
          : JSON.stringify({
              items: [],
              spec: { containers: [{ name: "etcd", image: "etcd" }] },
              status,
            }),
      );
    });
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
