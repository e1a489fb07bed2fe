import { createServer, Server } from "node:https";
import { AddressInfo } from "node:net";

import { renderKubeconfig } from "../../../../components/kubeconfig";
import { amissAmong, leave } from "../../../../components/machine/leave";
import { serverCertificate } from "../../../support/plugins/server-certificate";

const vmId = "46bb8116-3ea4-4e93-b476-be1ffcde1f3d";
const swapped = "1681bb46-a43e-934e-b476-be1ffcde1f3d";
const limits = { drainMinutes: 1, isGivenUp: false, goesUnasked: false };

let server: Server;
let kubeconfig: string;
let systemUUID: string | undefined;
let status = 200;
const writes: string[] = [];

beforeAll(async () => {
  const { key, cert } = await serverCertificate("localhost", "the-administrator");
  server = createServer({ key, cert }, ({ method = "", url = "" }, response) => {
    const { pathname } = new URL(url, "https://localhost");
    if (method !== "GET") writes.push(`${method} ${pathname}`);
    const isNode = pathname === "/api/v1/nodes/one";
    const node = {
      metadata: { name: "one" },
      spec: {},
      status: { nodeInfo: { systemUUID }, conditions: [{ type: "Ready", status: "True" }] },
    };
    response
      .writeHead(isNode && systemUUID === undefined ? 404 : status)
      .end(JSON.stringify(isNode ? node : { items: [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  kubeconfig = renderKubeconfig({
    clusterName: "zoned-test",
    server: `https://localhost:${(server.address() as AddressInfo).port}`,
    caCert: cert,
    clientCert: cert,
    clientKey: key,
  });
});
afterAll(() => void server.close());
beforeEach(() => {
  writes.length = 0;
  status = 200;
  systemUUID = vmId;
});

const worker = () => ({ machine: "one", role: "worker" as const, vmId, kubeconfig });

it.each([vmId.toUpperCase(), swapped])(
  "drains and deletes the Node of its own VM, %s",
  async (uuid) => {
    systemUUID = uuid;

    await leave(worker(), limits);

    expect(writes).toEqual(["PATCH /api/v1/nodes/one", "DELETE /api/v1/nodes/one"]);
  },
);

it("leaves the Node of a machine that has taken its place alone", async () => {
  systemUUID = "0ba39847-2d92-42ae-851d-95ffdc1b6832";

  await leave(worker(), limits);

  expect(writes).toEqual([]);
});

it("takes a Node that is gone for left", async () => {
  systemUUID = undefined;

  await leave(worker(), limits);

  expect(writes).toEqual(["DELETE /api/v1/nodes/one"]);
});

it("touches nothing where the API is not ready, unless nobody is to ask it", async () => {
  status = 503;

  await expect(leave(worker(), limits)).rejects.toThrow(/not drained, and nothing was changed/);
  await leave(worker(), { ...limits, goesUnasked: true });

  expect(writes).toEqual([]);
});

describe("an etcd member beside those of the control planes that stay", () => {
  const amiss = amissAmong(["cp-1", "cp-2"], "cp-1");
  const member = { id: "8e9e05c52164694d", clientUrl: "", hasStarted: true, isLearner: false };

  it("is what a failed join has left, and is named with the command that removes it", () => {
    const problems = [
      ...amiss({ ...member, name: "cp-3" }),
      ...amiss({ ...member, name: "", hasStarted: false, isLearner: true }),
    ];

    expect(problems).toHaveLength(2);
    for (const problem of problems) {
      expect(problem).toMatch(/belongs to no control plane/);
      expect(problem).toMatch(/exec etcd-cp-1 -- etcdctl .* member remove 8e9e05c52164694d$/);
    }
  });

  it("is none of them, unless it is a learner", () => {
    expect(amiss({ ...member, name: "cp-2" })).toEqual([]);
    expect(amiss({ ...member, name: "cp-2", isLearner: true })).toEqual([
      "etcd member cp-2 is a learner",
    ]);
  });
});
