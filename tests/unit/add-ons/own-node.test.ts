import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { NodeAddOns } from "../../../components/add-ons/node-add-ons";
import { type Api, ApiError, type Body } from "../../../tools/local-azure/machines/simulated/api";
import { pathOf } from "../../../tools/local-azure/plugins/kubernetes/objects";
import { startApiServer } from "../../support/api-server";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

describe("who has the token of a pod that runs on every machine", () => {
  const accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
  const own = "workers-1";
  const other = "cp-1";
  const role = "node-role.kubernetes.io/control-plane";

  let operator: Api;
  /** Of a token that is bound to a pod on {@link own}, and of one that is bound to none. */
  let bound: Api;
  let unbound: Api;

  /** Applies what the program makes, in its order. */
  async function applyAll(): Promise<void> {
    const recorder = await Recorder.start();
    const settings = { ...validSettings, cni: "flannel", diskDriver: false } as const;
    new NodeAddOns(
      "node-add-ons",
      {
        settings,
        apiServer: { name: "api.example", port: 6443 },
        manifests: new Map(),
        machineRecords: new Map(),
      },
      { transformations: [recorder.watch] },
    );
    for (const { inputs } of await recorder.objects()) {
      await operator.post(dirname(pathOf(inputs)), inputs);
    }
  }

  const changed = (by: Api, node: string, change: Body): Promise<string> =>
    by.patch(`/api/v1/nodes/${node}`, change).then(
      () => "done",
      (error: ApiError) => `${error.status} ${error.message}`,
    );
  /** A patch that changes nothing is none. */
  let tries = 0;
  const zone = () => ({ metadata: { labels: { "topology.kubernetes.io/zone": `${tries++}` } } });

  beforeAll(async () => {
    const server = await startApiServer();
    operator = server.api;
    await applyAll();
    for (const name of [own, other]) await operator.post("/api/v1/nodes", { metadata: { name } });
    const name = "cloud-node-manager";
    const { metadata } = await operator.post("/api/v1/namespaces/kube-system/pods", {
      metadata: { name },
      spec: { nodeName: own, serviceAccountName: name, containers: [{ name, image: name }] },
    });
    const tokenOf = async (account: string, spec: Body) => {
      const { status } = await operator.post(`${accounts}/${account}/token`, { spec });
      return server.of({ token: status.token });
    };
    const pod = { apiVersion: "v1", kind: "Pod", name, uid: metadata.uid };
    bound = await tokenOf(name, { boundObjectRef: pod });
    unbound = await tokenOf(name, {});
    // A policy is in force some time after it was made.
    while ((await changed(bound, other, zone())) === "done" && tries < 100) await wait(200);
  });

  it("may change its own Node", async () => {
    expect(await changed(bound, own, zone())).toBe("done");
    expect(await changed(bound, `${own}/status`, { status: { phase: "Running" } })).toBe("done");
  });

  it.each<[string, () => Api, string, () => Body]>([
    ["another one", () => bound, other, zone],
    ["another one's status", () => bound, `${other}/status`, zone],
    ["one by a token that is bound to no pod", () => unbound, own, zone],
  ])("may not change %s", async (_, by, node, change) => {
    expect(await changed(by(), node, change())).toMatch(
      /^422 .*zoned-own-node.*may change its own Node, and no other/,
    );
  });

  it.each([own, `${own}/status`])("may make no control plane of its machine: %s", async (node) => {
    expect(await changed(bound, node, { metadata: { labels: { [role]: "" } } })).toMatch(
      /^422 .*zoned-own-node.*may give no Node a label node-role\.kubernetes\.io\//,
    );
  });

  it("may change its Node where that is a control plane", async () => {
    const labels = { [role]: "" };

    expect(await changed(operator, own, { metadata: { labels } })).toBe("done");
    expect(await changed(bound, own, zone())).toBe("done");
  });

  it("hinders no operator", async () => {
    expect(await changed(operator, other, zone())).toBe("done");
  });
});
