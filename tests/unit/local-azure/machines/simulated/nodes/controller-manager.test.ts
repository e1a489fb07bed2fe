import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Api, Body } from "../../../../../../local-azure/machines/simulated/api";
import { ControllerManager } from "../../../../../../local-azure/machines/simulated/nodes/controller-manager";
import { vmOf } from "../../../../../support/simulated/fixture";

let folder: string;
let manager: ControllerManager;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zoned-manager-"));
  const program = join(folder, "program");
  // Writes down what it got, and stays.
  writeFileSync(
    program,
    `#!/bin/sh\n{ echo "$@"; /usr/bin/env; } > ${folder}/starting\n/bin/mv ${folder}/starting ${folder}/ran\nexec /bin/sleep 60\n`,
    { mode: 0o755 },
  );
  const machine = vmOf("demo-control-plane-1", "1", "172.16.1.4");
  manager = new ControllerManager({
    ...{ program, authority: "/azure-ca.crt", folder: join(folder, "own"), log: () => undefined },
    vmOf: (name) => (name === machine.name ? machine : undefined),
  });
});
afterEach(async () => {
  await manager.pause();
  manager.close();
  rmSync(folder, { recursive: true });
});

const podOf = (uid: string, node = "demo-control-plane-1"): Body => ({
  metadata: { namespace: "kube-system", name: `ccm-${uid}`, uid },
  spec: {
    nodeName: node,
    serviceAccountName: "robot",
    containers: [
      {
        image: "mcr/azure-cloud-controller-manager:v1",
        args: ["--cloud-config=/etc/azure/cloud-config", "--secure-port=10268", "--v=2"],
        volumeMounts: [{ name: "cloud-config", mountPath: "/etc/azure" }],
      },
    ],
    volumes: [
      { name: "cloud-config", secret: { secretName: "azure" } },
      { name: "certificates", hostPath: { path: "/etc/ssl" } },
    ],
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

/** What the program got, once it runs. */
async function ran(): Promise<string> {
  while (!existsSync(join(folder, "ran"))) await sleep(20);
  const text = readFileSync(join(folder, "ran"), "utf8");
  rmSync(join(folder, "ran"));
  return text;
}

const own = (name: string): string => readFileSync(join(folder, "own", name), "utf8");

it("runs the program with the arguments, files and credentials of its pod", async () => {
  await follow(podOf("a"));

  const got = await ran();
  const kubeconfig = join(folder, "own/kubeconfig");
  expect(got).toContain(
    `--cloud-config=${folder}/own/cloud-config/cloud-config --v=2 --kubeconfig=${kubeconfig}`,
  );
  expect(got).toMatch(/--secure-port=[23]\d{4}$/m);
  expect(got).toContain("SSL_CERT_FILE=/azure-ca.crt");
  expect(got).toContain(
    "IDENTITY_ENDPOINT=http://127.0.0.1:4711/local/machines/demo-control-plane-1/token",
  );
  expect(got).not.toContain("HOME=");
  expect(JSON.parse(own("cloud-config/cloud-config"))).toEqual({
    resourceManagerEndpoint: "https://127.0.0.1:4711",
    useInstanceMetadata: false,
    vmType: "standard",
  });
  expect(own("token")).toBe("/api/v1/namespaces/kube-system/serviceaccounts/robot/token for a");
  expect(JSON.parse(own("kubeconfig"))).toMatchObject({
    clusters: [{ cluster: { server: "https://127.0.0.1:6443", "tls-server-name": "api.example" } }],
    users: [{ user: { tokenFile: join(folder, "own/token") } }],
  });
});

it("keeps it running while its pod runs, and starts it anew for another", async () => {
  await follow(podOf("a"));
  await ran();
  await follow(podOf("b"), podOf("a"));
  expect(own("token")).toMatch(/for a$/);

  await follow(podOf("b"));

  await ran();
  expect(own("token")).toMatch(/for b$/);
});

const pidFile = (): string => join(folder, "own/cloud-controller-manager.pid");

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

  expect(existsSync(pidFile())).toBe(false);
});

it("starts nothing while it is paused", async () => {
  await manager.pause();
  await follow(podOf("a"));
  expect(existsSync(pidFile())).toBe(false);

  manager.resume();
  await follow(podOf("a"));
  expect(existsSync(pidFile())).toBe(true);
});
