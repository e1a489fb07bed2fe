import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Api, Body } from "../../../../../../local-azure/machines/simulated/api";
import { ControllerManager } from "../../../../../../local-azure/machines/simulated/nodes/controller-manager";
import { newFixture, vmOf } from "../../../../../support/simulated/fixture";

let certificate: string;
let key: string;
beforeAll(async () => {
  const { pki } = await newFixture("api.example");
  ({ "ca.crt": certificate = "", "ca.key": key = "" } = pki);
});

let folder: string;
let manager: ControllerManager;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zoned-manager-"));
  const program = join(folder, "program");
  // Writes down what it got, and is as healthy as a file says, whose lack ends it.
  writeFileSync(
    program,
    `#!${process.execPath}
    const { existsSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
    const health = "${folder}/health";
    writeFileSync("${folder}/starting", JSON.stringify([process.argv.slice(2), process.env]));
    renameSync("${folder}/starting", "${folder}/ran");
    if (!existsSync(health)) process.exit(3);
    const tls = ${JSON.stringify({ cert: certificate, key })};
    const port = /--secure-port=(\\d+)/.exec(process.argv.join(" "))[1];
    require("node:https")
      .createServer(tls, ({ url }, response) => {
        response.statusCode = url === "/healthz" ? Number(readFileSync(health, "utf8")) : 404;
        response.end();
      })
      .listen(port, "127.0.0.1");\n`,
    { mode: 0o755 },
  );
  be(200);
  const machine = vmOf("demo-control-plane-1", "1", "172.16.1.4");
  manager = new ControllerManager({
    ...{ program, authority: "/azure-ca.crt", folder: join(folder, "own"), log: () => undefined },
    vmOf: (name) => (name === machine.name ? machine : undefined),
    kubeletOf: () => kubelet,
  });
});
afterEach(async () => {
  await manager.pause();
  manager.close();
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

const azureJson = JSON.stringify({
  resourceManagerEndpoint: "http://127.0.0.1:4711",
  useInstanceMetadata: true,
  vmType: "standard",
});

/** An API with these pods. */
const apiOf = (pods: readonly Body[]): Api =>
  ({
    get: async (path: string) =>
      path.startsWith("/api/v1/pods")
        ? { items: pods }
        : path.endsWith("/configmaps/kube-root-ca.crt")
          ? { data: { "ca.crt": "the cluster's CA" } }
          : { data: { "cloud-config": Buffer.from(azureJson).toString("base64") } },
    post: async (path: string, { spec }: Body) => ({
      status: { token: `${path} for ${spec.boundObjectRef.uid}` },
    }),
  }) as unknown as Api;

const server = { host: "127.0.0.1", port: 6443, serverName: "api.example", ca: "" };
const follow = (...pods: Body[]) => manager.follow(apiOf(pods), server);

/** Follows these pods until something is so. */
async function untilSo(isSo: () => boolean, ...pods: Body[]): Promise<void> {
  do {
    await sleep(20);
    await follow(...pods);
  } while (!isSo());
}

/** What the program got, once it runs. */
async function ran(): Promise<[args: string[], env: Record<string, string>]> {
  while (!existsSync(join(folder, "ran"))) await sleep(20);
  const text = readFileSync(join(folder, "ran"), "utf8");
  rmSync(join(folder, "ran"));
  return JSON.parse(text) as [string[], Record<string, string>];
}

const own = (name: string): string => readFileSync(join(folder, "own", name), "utf8");

it("runs the program with the arguments, files and credentials of its pod", async () => {
  await follow(podOf("a"));

  const [args, env] = await ran();
  expect(args).toEqual([
    `--cloud-config=${folder}/own/ccm-a/cloud-config/cloud-config`,
    "--v=2",
    `--kubeconfig=${folder}/own/ccm-a/kubeconfig`,
    expect.stringMatching(/^--secure-port=[23]\d{4}$/),
  ]);
  expect(env).toMatchObject({
    SSL_CERT_FILE: "/azure-ca.crt",
    IDENTITY_ENDPOINT: "http://127.0.0.1:4711/local/machines/demo-control-plane-1/token",
  });
  expect(env).not.toHaveProperty("HOME");
  expect(JSON.parse(own("ccm-a/cloud-config/cloud-config"))).toEqual({
    resourceManagerEndpoint: "https://127.0.0.1:4711",
    useInstanceMetadata: false,
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

const pidFile = (uid: string): string => join(folder, `own/ccm-${uid}.pid`);

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
  await manager.pause();
  await follow(podOf("a"));
  expect(existsSync(pidFile("a"))).toBe(false);

  manager.resume();
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
  await untilSo(() => existsSync(join(folder, "ran")), slow);

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
