import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { NodeAddOns } from "../../../components/add-ons/node-add-ons";
import { Reboots } from "../../../components/add-ons/reboots";
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
  /** Of one of kured's, which may be bound to any machine's. */
  let kured: Api;

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
    new Reboots(
      "reboots",
      { settings, window: { days: ["sun"], from: "02:00", to: "05:00" } },
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

  const daemonSets = "/apis/apps/v1/namespaces/kube-system/daemonsets";
  const reran = async (by: Api, change: (daemonSet: Body) => void): Promise<string> => {
    const daemonSet = await by.get(`${daemonSets}/kured`);
    change(daemonSet);
    return by.put(`${daemonSets}/kured`, daemonSet).then(
      () => "done",
      ({ message }: Error) => message,
    );
  };
  const runOther = (daemonSet: Body) => {
    daemonSet["spec"].template.spec.containers[0].image = `somebody/elses:${tries++}`;
  };

  beforeAll(async () => {
    // kubeadm sets it.
    const server = await startApiServer({ "allow-privileged": "true" });
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
    kured = await tokenOf("kured", {});
    // A policy is in force some time after it was made.
    while ((await changed(bound, other, zone())) === "done" && tries < 100) await wait(200);
    while ((await reran(kured, runOther)) === "done" && tries < 200) await wait(200);
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

  it("takes kured's lock by an update of its DaemonSet", async () => {
    const lock = "weave.works/kured-node-lock";
    const takeLock = (daemonSet: Body) => {
      daemonSet["metadata"].annotations[lock] = JSON.stringify({ nodeID: "workers-1" });
    };

    expect(await reran(kured, takeLock)).toBe("done");

    const { metadata } = await operator.get(`${daemonSets}/kured`);
    expect(metadata.annotations[lock]).toContain("workers-1");
  });

  it("cannot have kured's DaemonSet run anything else, as its operator can", async () => {
    expect(await reran(kured, runOther)).toMatch(
      /zoned-kured-lock.*kured may change annotations of its DaemonSet, and nothing that runs/,
    );
    expect(await reran(kured, ({ spec }) => (spec.template.spec.hostNetwork = true))).toMatch(
      /zoned-kured-lock/,
    );
    expect(await reran(operator, runOther)).toBe("done");
  });
});
