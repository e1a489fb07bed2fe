import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Api, Body } from "../../../../machines/simulated/api";
import { PodProcesses } from "../../../../machines/simulated/nodes/pod-processes";
import { newFixture, vmOf } from "../../../support/simulated/fixture";

let certificate: string;
let key: string;
beforeAll(async () => {
  const { pki } = await newFixture("api.example");
  ({ "ca.crt": certificate = "", "ca.key": key = "" } = pki);
});

let folder: string;
/** Whether the program has been built. */
let isThere: boolean;
let processes: PodProcesses;
/** Where the local Azure answers. */
let port: number | undefined;
beforeEach(() => {
  port = 4711;
  folder = mkdtempSync(join(tmpdir(), "zoned-processes-"));
  isThere = true;
  const program = join(folder, "program");
  // Writes down what it got, and is as healthy as a file says, whose lack ends it.
  writeFileSync(
    program,
    `#!${process.execPath}
    const { existsSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
    const health = "${folder}/health";
    const got = [process.argv.slice(2), process.env, process.cwd()];
    writeFileSync("${folder}/starting-" + process.pid, JSON.stringify(got));
    renameSync("${folder}/starting-" + process.pid, "${folder}/ran/" + process.pid);
    if (!existsSync(health)) process.exit(3);
    const tls = ${JSON.stringify({ cert: certificate, key })};
    const [, port = 0] = /--secure-port=(\\d+)/.exec(process.argv.join(" ")) ?? [];
    require("node:https")
      .createServer(tls, ({ url }, response) => {
        response.statusCode = url === "/healthz" ? Number(readFileSync(health, "utf8")) : 404;
        response.end();
      })
      .listen(port, "127.0.0.1");\n`,
    { mode: 0o755 },
  );
  mkdirSync(join(folder, "ran"));
  be(200);
  const machine = vmOf("demo-control-plane-1", "1", "172.16.1.4");
  processes = new PodProcesses({
    ...{ authority: "/azure-ca.crt", folder: join(folder, "own"), log: () => undefined },
    programs: Object.fromEntries(
      [
        ...["azure-cloud-controller-manager", "azure-cloud-node-manager"],
        ...["azuredisk-csi", "csi-provisioner"],
      ].map((name) => [name, () => (isThere ? program : undefined)]),
    ),
    vmOf: (name) => (name === machine.name ? machine : undefined),
    kubeletOf: () => kubelet,
    ports: () =>
      port === undefined
        ? undefined
        : { ...{ resourceManager: port, proxy: 4712 }, blob: 4713, login: 4714, registry: 4715 },
  });
});
afterEach(async () => {
  await processes.pause();
  processes.close();
  rmSync(folder, { recursive: true });
});

const be = (status: number): void => writeFileSync(join(folder, "health"), `${status}`);

/** What the kubelet has said of pods, the last first. */
let said: Body[];
beforeEach(() => (said = []));
const kubelet = {
  patch: async (_path: string, { status }: Body) => {
    said.unshift(status);
    return {};
  },
} as unknown as Api;

const podOf = (uid: string, node = "demo-control-plane-1"): Body => ({
  metadata: { namespace: "kube-system", name: `ccm-${uid}`, uid },
  spec: {
    nodeName: node,
    serviceAccountName: "robot",
    containers: [
      {
        image: "mcr/azure-cloud-controller-manager:v1",
        name: "ccm",
        args: ["--cloud-config=/etc/azure/cloud-config", "--secure-port=10268", "--v=2"],
        volumeMounts: [{ name: "cloud-config", mountPath: "/etc/azure" }],
        readinessProbe: { httpGet: { path: "/healthz" } },
      },
    ],
    volumes: [
      { name: "cloud-config", secret: { secretName: "azure" } },
      { name: "certificates", hostPath: { path: "/etc/ssl" } },
    ],
  },
  status: {
    containerStatuses: [{ name: "ccm", ready: false, restartCount: 0, state: { running: {} } }],
  },
});

const azureJsonFor = (readBy?: string): string =>
  JSON.stringify({
    resourceManagerEndpoint: "http://127.0.0.1:4711",
    useInstanceMetadata: true,
    vmType: "standard",
    readBy,
  });

/** An API with these pods, which says by whom azure.json was read. */
const apiOf = (pods: readonly Body[], user?: string): Api =>
  ({
    as: (other: string) => apiOf(pods, other),
    get: async (path: string) =>
      path.startsWith("/api/v1/pods")
        ? { items: pods }
        : path.endsWith("/configmaps/kube-root-ca.crt")
          ? { data: { "ca.crt": "the cluster's CA" } }
          : { data: { "cloud-config": Buffer.from(azureJsonFor(user)).toString("base64") } },
    post: async (path: string, { spec }: Body) => ({
      status: {
        token: `${path} for ${[spec.boundObjectRef.uid, ...(spec.audiences ?? [])].join(" and ")}`,
      },
    }),
  }) as unknown as Api;

const server = { host: "127.0.0.1", port: 6443, serverName: "api.example", ca: "" };
const follow = (...pods: Body[]) => processes.follow(apiOf(pods), server);

/** Follows these pods until something is so. */
async function untilSo(isSo: () => boolean, ...pods: Body[]): Promise<void> {
  do {
    await sleep(20);
    await follow(...pods);
  } while (!isSo());
}

type Got = [args: string[], env: Record<string, string>, cwd: string];

/** What programs got, once as many run. */
async function ran(count = 1): Promise<Got[]> {
  const at = join(folder, "ran");
  while (readdirSync(at).length < count) await sleep(20);
  return readdirSync(at).map((file) => JSON.parse(readFileSync(join(at, file), "utf8")) as Got);
}

const own = (name: string): string => readFileSync(join(folder, "own", name), "utf8");

it("runs the program with the arguments, files and credentials of its pod", async () => {
  await follow(podOf("a"));

  const [[args, env, cwd]] = (await ran()) as [Got];
  expect(cwd).toBe(join(folder, "own/ccm-a"));
  expect(args).toEqual([
    "--cloud-config=/proc/self/cwd/cloud-config/cloud-config",
    expect.stringMatching(/^--secure-port=[23]\d{4}$/),
    "--v=2",
    "--kubeconfig=/proc/self/cwd/kubeconfig",
  ]);
  expect(env).toMatchObject({
    SSL_CERT_FILE: "/azure-ca.crt",
    HTTP_PROXY: "http://demo-control-plane-1@127.0.0.1:4711",
    HTTPS_PROXY: "http://127.0.0.1:4712",
  });
  expect(env).not.toHaveProperty("HOME");
  expect(env).not.toHaveProperty("AZURE_CREDENTIAL_FILE");
  expect(JSON.parse(own("ccm-a/cloud-config/cloud-config"))).toEqual({
    resourceManagerEndpoint: "https://127.0.0.1:4711",
    useInstanceMetadata: true,
    vmType: "standard",
  });
  expect(own("ccm-a/token")).toBe(
    "/api/v1/namespaces/kube-system/serviceaccounts/robot/token for a",
  );
  expect(JSON.parse(own("ccm-a/kubeconfig"))).toMatchObject({
    clusters: [{ cluster: { server: "https://127.0.0.1:6443", "tls-server-name": "api.example" } }],
    users: [{ user: { tokenFile: join(folder, "own/ccm-a/token") } }],
  });
});

it("has what Azure's libraries look for where its pod has it, and the token of its volume there", async () => {
  const pod = podOf("a");
  const [container] = pod.spec.containers;
  const mountPath = "/var/run/secrets/azure/tokens";
  container.env = [
    { name: "AZURE_CLIENT_ID", value: "the-client" },
    { name: "AZURE_FEDERATED_TOKEN_FILE", value: `${mountPath}/azure-identity-token` },
    { name: "KUBERNETES_SERVICE_HOST", value: "api.example" },
  ];
  container.volumeMounts.push({ name: "identity", mountPath });
  const serviceAccountToken = { audience: "entra", path: "azure-identity-token" };
  pod.spec.volumes.push({ name: "identity", projected: { sources: [{ serviceAccountToken }] } });

  await follow(pod);

  const [[, env]] = (await ran()) as [Got];
  expect(env).toMatchObject({
    AZURE_CLIENT_ID: "the-client",
    AZURE_FEDERATED_TOKEN_FILE: "/proc/self/cwd/identity/azure-identity-token",
  });
  expect(env).not.toHaveProperty("KUBERNETES_SERVICE_HOST");
  expect(own("ccm-a/identity/azure-identity-token")).toMatch(/ for a and entra$/);
});

const pidFile = (uid: string): string => join(folder, `own/ccm-${uid}_ccm.pid`);

it("has the pod ready while there is no program, and runs that once there is", async () => {
  isThere = false;
  await follow(podOf("a"));
  expect(said[0]!.containerStatuses).toMatchObject([{ ready: true }]);
  expect(existsSync(join(folder, "own/ccm-a"))).toBe(false);

  isThere = true;
  await follow(podOf("a"));

  expect(await ran()).toHaveLength(1);
});

it("keeps one for each pod that runs", async () => {
  await follow(podOf("a"));
  const first = readFileSync(pidFile("a"), "utf8");
  await follow(podOf("b"), podOf("a"));

  expect(existsSync(pidFile("b"))).toBe(true);
  expect(readFileSync(pidFile("a"), "utf8")).toBe(first);
});

it.each([
  { what: "is gone", pods: () => [] },
  { what: "is on a machine that is gone", pods: () => [podOf("a", "demo-control-plane-2")] },
  {
    what: "is being deleted",
    pods: () => {
      const { metadata, ...pod } = podOf("a");
      return [{ metadata: { ...metadata, deletionTimestamp: "now" }, ...pod }];
    },
  },
])("ends it when its pod $what", async ({ pods }) => {
  await follow(podOf("a"));
  await ran();

  await follow(...pods());

  expect(existsSync(pidFile("a"))).toBe(false);
});

it("starts nothing while it is paused", async () => {
  await processes.pause();
  await follow(podOf("a"));
  expect(existsSync(pidFile("a"))).toBe(false);

  processes.resume();
  await follow(podOf("a"));
  expect(existsSync(pidFile("a"))).toBe(true);
});

/** A pod of the disk driver's controller, in its first two containers and the last. */
const driverOf = (uid: string): Body => {
  const volumeMounts = [{ name: "socket-dir", mountPath: "/csi" }];
  return {
    metadata: { namespace: "kube-system", name: `disk-${uid}`, uid },
    spec: {
      nodeName: "demo-control-plane-1",
      serviceAccountName: "driver",
      containers: [
        {
          name: "csi-provisioner",
          image: "mcr.microsoft.com/oss/kubernetes-csi/csi-provisioner:v6.3.0",
          args: ["--csi-address=$(ADDRESS)", "--v=2"],
          env: [{ name: "ADDRESS", value: "/csi/csi.sock" }],
          volumeMounts,
        },
        { name: "liveness-probe", image: "mcr.microsoft.com/oss/livenessprobe:v2.19.0" },
        {
          name: "azuredisk",
          image: "mcr.microsoft.com/oss/kubernetes-csi/azuredisk-csi:v1.34.5",
          args: ["--endpoint=$(CSI_ENDPOINT)", "--metrics-address=0.0.0.0:29604"],
          env: [{ name: "CSI_ENDPOINT", value: "unix:///csi/csi.sock" }],
          volumeMounts,
        },
      ],
      volumes: [{ name: "socket-dir", emptyDir: {} }],
    },
    status: {
      containerStatuses: ["csi-provisioner", "liveness-probe", "azuredisk"].map((name) => ({
        ...{ name, ready: false, restartCount: 0, state: { running: {} } },
      })),
    },
  };
};

it("runs each container that has a program, with one socket, and azure.json as its ServiceAccount reads it", async () => {
  await follow(driverOf("a"));

  const got = await ran(2);
  const [args, env] = got.find(([words]) => words.some((word) => word.includes("metrics")))!;
  expect(args).toEqual([
    "--endpoint=unix:///proc/self/cwd/socket-dir/csi.sock",
    expect.stringMatching(/^--metrics-address=127\.0\.0\.1:[23]\d{4}$/),
    "--cloud-config-secret-name=none",
    "--kubeconfig=/proc/self/cwd/kubeconfig",
  ]);
  expect(env).toMatchObject({
    AZURE_CREDENTIAL_FILE: "/proc/self/cwd/azure.json",
    HTTP_PROXY: "http://demo-control-plane-1@127.0.0.1:4711",
  });
  expect(JSON.parse(own("disk-a/azure.json"))).toMatchObject({
    resourceManagerEndpoint: "https://127.0.0.1:4711",
    readBy: "system:serviceaccount:kube-system:driver",
  });
  expect(existsSync(join(folder, "own/disk-a/socket-dir"))).toBe(true);
  expect(got.map(([words]) => words[0])).toContain(
    "--csi-address=/proc/self/cwd/socket-dir/csi.sock",
  );
  await follow(driverOf("a"));
  expect(said[0]!.containerStatuses).toMatchObject([{ ready: true }, { ready: true }, {}]);
  expect(isReady(said[0]!)).toBe(true);
});

it("runs one of several pods that elect a leader by the name of their host, and another when it is gone", async () => {
  await follow(driverOf("a"));
  await follow(driverOf("b"), driverOf("a"));
  const runs = (uid: string) => existsSync(join(folder, `own/disk-${uid}_azuredisk.pid`));
  expect([runs("a"), runs("b")]).toEqual([true, false]);

  await follow(driverOf("b"));

  expect([runs("a"), runs("b")]).toEqual([false, true]);
});

/** The same pod as one of a DaemonSet. */
const ofDaemonSet = ({ metadata, ...pod }: Body): Body => ({
  metadata: { ...metadata, ownerReferences: [{ kind: "DaemonSet" }] },
  ...pod,
});

it("runs no disk driver for a pod of its DaemonSet, which mounts what its machine has", async () => {
  const { spec, ...pod } = driverOf("a");
  const containers = spec.containers.slice(1);
  await follow(ofDaemonSet({ ...pod, spec: { ...spec, containers } }));

  expect(existsSync(join(folder, "own/disk-a"))).toBe(false);
});

it("tells the node manager of a machine which one it is on", async () => {
  const { spec, ...pod } = podOf("a");
  const container = {
    ...{ name: "ccm", image: "mcr/azure-cloud-node-manager:v1", args: ["--node-name=$(NODE)"] },
    env: [{ name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
  };
  await follow(ofDaemonSet({ ...pod, spec: { ...spec, containers: [container] } }));

  const [[args, env]] = (await ran()) as [Got];
  expect(args[0]).toBe("--node-name=demo-control-plane-1");
  expect(env).toMatchObject({ NODE: "demo-control-plane-1" });
});

it("waits until the local Azure answers", async () => {
  port = undefined;
  await follow(podOf("a"));
  expect(existsSync(pidFile("a"))).toBe(false);

  port = 4711;
  await follow(podOf("a"));
  expect(existsSync(pidFile("a"))).toBe(true);
});

const isReady = ({ conditions }: Body): boolean =>
  conditions.some(({ type, status }: Body) => type === "Ready" && status === "True");

it("has the pod ready when its probe says so, and no longer", async () => {
  be(500);
  await follow(podOf("a"));
  await ran();
  await follow(podOf("a"));
  expect(said).toEqual([]);

  be(200);
  await untilSo(() => said.length > 0, podOf("a"));

  expect(isReady(said[0]!)).toBe(true);
  expect(said[0]!.containerStatuses).toMatchObject([{ ready: true, restartCount: 0 }]);
  const ready = { ...podOf("a"), status: said[0]! };
  be(500);
  await untilSo(() => said.length > 1, ready);
  expect(isReady(said[0]!)).toBe(false);
});

it("gives the program the time that its probe does", async () => {
  const slow = podOf("a");
  slow.spec.containers[0].readinessProbe.initialDelaySeconds = 3600;
  await follow(slow);
  await ran();

  await follow(slow);

  expect(said).toEqual([]);
});

it("shows a pod whose program has ended as one that is started again, and not as ready", async () => {
  await untilSo(() => said.length > 0, podOf("a"));
  const ready = { ...podOf("a"), status: said[0]! };
  rmSync(join(folder, "health"));
  process.kill(JSON.parse(readFileSync(pidFile("a"), "utf8")).pid, "SIGKILL");

  await untilSo(() => said[0]!.containerStatuses[0].state.waiting, ready);

  expect(isReady(said[0]!)).toBe(false);
  expect(said[0]!.containerStatuses).toMatchObject([
    {
      ready: false,
      state: { running: null, waiting: { reason: "CrashLoopBackOff", message: "SIGKILL" } },
      lastState: { terminated: { exitCode: 137 } },
    },
  ]);
  const ended = { ...podOf("a"), status: said[0]! };
  await untilSo(() => said[0]!.containerStatuses[0].lastState.terminated.exitCode === 3, ended);
  expect(said[0]!.containerStatuses[0].restartCount).toBeGreaterThan(0);
});
