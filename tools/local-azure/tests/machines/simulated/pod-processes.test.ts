import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { testFolder } from "../../../../../tests/support/test-folder";
import type { Api, Body } from "../../../machines/simulated/api";
import {
  passesReadinessProbe,
  PodProcesses,
} from "../../../machines/simulated/nodes/pod-processes";
import { httpsServer, vmOf } from "../../support/simulated/fixture";

const node = "demo-control-plane-1";
const machine = vmOf(node, "1", "172.16.1.4");
/** What the kubelet has said of pods. */
let said: Body[];
const kubelet = {
  patch: async (_: string, { status }: Body) => void said.push(status),
} as unknown as Api;

/** Whether the programs are there, and whether the local Azure answers. */
let areThere: boolean;
let answers: boolean;
let folder: string;
let processes: PodProcesses;
beforeEach(() => {
  [said, areThere, answers] = [[], true, true];
  folder = testFolder();
  const program = join(folder, "program");
  // Writes down its environment.
  const writes = `env >"${folder}/env"; mv "${folder}/env" "${folder}/ran"`;
  writeFileSync(program, `#!/bin/sh\n${writes}\nexec sleep 600\n`, { mode: 0o755 });
  const images = ["azure-cloud-controller-manager", "azuredisk-csi", "csi-provisioner"];
  processes = new PodProcesses({
    ...{ authority: "/azure-ca.crt", folder: join(folder, "own"), log: () => undefined },
    programs: Object.fromEntries(
      images.map((name) => [name, () => (areThere ? program : undefined)]),
    ),
    vmOf: (name) => (name === node ? machine : undefined),
    kubeletOf: () => kubelet,
    ports: () =>
      answers
        ? { resourceManager: 4711, proxy: 4712, blob: 4713, login: 4714, registry: 4715 }
        : undefined,
  });
});
afterEach(async () => {
  await processes.pause();
  processes.close();
});

/** A pod with these containers, each of the image of its name. */
const podOf = (uid: string, names: readonly string[], change: object = {}): Body => ({
  metadata: { namespace: "kube-system", name: uid, uid, ...change },
  spec: {
    nodeName: node,
    serviceAccountName: "robot",
    containers: names.map((name) => ({ name, image: `mcr/${name}:v1` })),
  },
  status: {
    phase: "Running",
    containerStatuses: names.map((name) => ({
      ...{ name, ready: false, restartCount: 0, state: { running: {} } },
    })),
  },
});
const manager = (uid: string, change?: object) =>
  podOf(uid, ["azure-cloud-controller-manager"], change);
const driver = (uid: string, change?: object) =>
  podOf(uid, ["csi-provisioner", "azuredisk-csi"], change);

/** An API that says by whom azure.json was read. */
const apiOf = (readBy?: string): Api =>
  ({
    as: apiOf,
    get: async () => {
      const azureJson = Buffer.from(JSON.stringify({ readBy })).toString("base64");
      return { data: { "cloud-config": azureJson, "ca.crt": "" } };
    },
    post: async (path: string, { spec }: Body) => ({
      status: { token: `${path} for ${spec.boundObjectRef.uid}` },
    }),
  }) as unknown as Api;

const server = { host: "127.0.0.1", port: 6443, serverName: "api.example", ca: "" };
const follow = (...pods: Body[]) => processes.follow(pods, apiOf(), server);
const runs = (uid: string, name = "azure-cloud-controller-manager") =>
  existsSync(join(folder, `own/${uid}_${name}.pid`));
const own = (name: string): string => readFileSync(join(folder, "own", name), "utf8");

it("gives the program its pod's credentials, and nothing of its user's", async () => {
  await follow(manager("a"));

  while (!existsSync(join(folder, "ran"))) await sleep(20);
  expect(readFileSync(join(folder, "ran"), "utf8")).not.toMatch(/^(HOME|AZURE_CREDENTIAL_FILE)=/m);
  expect(own("a/token")).toBe("/api/v1/namespaces/kube-system/serviceaccounts/robot/token for a");
});

it("reads azure.json with the rights of the pod's ServiceAccount", async () => {
  await follow(driver("a"));

  expect(JSON.parse(own("a/azure.json"))).toMatchObject({
    readBy: "system:serviceaccount:kube-system:robot",
  });
});

const elsewhere = { ...manager("a"), spec: { ...manager("a").spec, nodeName: "gone" } };
it.each<[what: string, pods: Body[]]>([
  ["is gone", []],
  ["is on a machine that is gone", [elsewhere]],
  ["is being deleted", [manager("a", { deletionTimestamp: "now" })]],
  ["has ended", [{ ...manager("a"), status: { phase: "Failed" } }]],
])("ends it when its pod %s", async (_, pods) => {
  await follow(manager("a"));
  expect(runs("a")).toBe(true);

  await follow(...pods);

  expect(runs("a")).toBe(false);
});

it.each<[when: string, stop: () => unknown, go: () => unknown]>([
  ["it is paused", () => processes.pause(), () => processes.resume()],
  ["the local Azure does not answer", () => (answers = false), () => (answers = true)],
  ["there is no program", () => (areThere = false), () => (areThere = true)],
])("starts nothing while %s, and then it does", async (_, stop, go) => {
  await stop();
  await follow(manager("a"));
  expect(runs("a")).toBe(false);

  go();
  await follow(manager("a"));
  expect(runs("a")).toBe(true);
});

it("has a pod ready whose program is not there", async () => {
  areThere = false;

  await follow(manager("a"));

  expect(said).toMatchObject([{ containerStatuses: [{ ready: true }] }]);
});

const probe = (path: string) => ({ httpGet: { path } });
const slow = { ...probe("/200"), initialDelaySeconds: 3600 };
it.each<[what: string, isReady: boolean, probe?: Body, pid?: number]>([
  ["whose probe is answered", true, probe("/200"), 1],
  ["whose probe is refused", false, probe("/500"), 1],
  ["whose probe is not due yet", false, slow, 1],
  ["without a probe", true, undefined, 1],
  ["without a process", false, undefined, undefined],
])("takes a container %s for ready: %s", async (_, isReady, readinessProbe, pid) => {
  const { port } = await httpsServer();
  const process = { name: "it", pid, since: Date.now(), restarts: 0 };

  expect(await passesReadinessProbe(readinessProbe, process, port)).toBe(isReady);
});

it("runs one of several pods that elect a leader by the name of their host, and another when it is gone", async () => {
  const running = () => ["a", "b"].filter((uid) => runs(uid, "azuredisk-csi"));
  await follow(driver("a"));
  await follow(driver("b"), driver("a"));
  expect(running()).toEqual(["a"]);

  await follow(driver("b"));

  expect(running()).toEqual(["b"]);
});

it("runs no disk driver for a pod of its DaemonSet, which mounts what its machine has", async () => {
  const ownerReferences = [{ kind: "DaemonSet" }];
  await follow(podOf("a", ["azuredisk-csi"], { ownerReferences }));

  expect(existsSync(join(folder, "own/a"))).toBe(false);
});
