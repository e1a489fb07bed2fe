import { readFileSync } from "node:fs";
import { join } from "node:path";

import { turns } from "../../../components/add-ons/turns";
import { KubernetesApi } from "../../../components/cluster/kubernetes-api";
import { endTurn, endTurnIfGone, takeTurn, turnsName } from "../../../components/cluster/turns";
import { Api, type Body, kubeconfigOf } from "../../../tools/local-azure/machines/simulated/api";
import { type RealApiServer, startApiServer } from "../../support/api-server";
import { FakeMachine } from "../../support/fake-machine";
import { Recorder } from "../../support/record";
import { built, output } from "../../support/tools";

jest.setTimeout(600_000);

const configMaps = "/api/v1/namespaces/kube-system/configmaps";
let server: RealApiServer;
let api: Api;
let operator: KubernetesApi;
let nobodyIsDown: Body;

/** A machine whose kubelet has this name, with the real curl. */
function machineNamed(name: string): FakeMachine {
  const machine = new FakeMachine({});
  const text = output(built("kubeadm"), [
    ...["kubeconfig", "user", "--config", server.configuration, "--org", "system:nodes"],
    ...["--client-name", `system:node:${name}`],
  ]);
  const { user } = kubeconfigOf(text);
  machine.write("/var/lib/kubelet/pki/kubelet-client-current.pem", `${user.cert}${user.key}`);
  machine.write("/etc/kubernetes/pki/ca.crt", readFileSync(join(server.pki, "ca.crt"), "utf8"));
  machine.ship("bootstrap.sh", "/opt/zoned/bootstrap.sh");
  machine.write("/run/zoned/it", "");
  machine.write(
    "/var/lib/zoned/variables",
    `machine=${name}\nrole=worker\napi_name=127.0.0.1\napi_port=${server.port}\ndrain_minutes=15\nversion=1.36.3\n`,
  );
  return machine;
}

const on = (machine: FakeMachine, ...words: string[]) =>
  machine.run("/opt/zoned/bootstrap.sh", words);
const written = async (): Promise<Record<string, string>> =>
  (await api.get(`${configMaps}/${turnsName}`)).data ?? {};

let one: FakeMachine;
let two: FakeMachine;

beforeAll(async () => {
  server = await startApiServer({
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
  });
  ({ api } = server);
  operator = new KubernetesApi(server.kubeconfig);
  const recorder = await Recorder.start();
  turns(["one", "two"], { transformations: [recorder.watch] });
  nobodyIsDown = (await recorder.object("ConfigMap", turnsName)).inputs as Body;
  const places: Record<string, string> = {
    ConfigMap: configMaps,
    Role: "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
    RoleBinding: "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
  };
  for (const [kind, path] of Object.entries(places)) {
    await api.post(path, (await recorder.object(kind, turnsName)).inputs as Body);
  }
  for (const name of ["one", "two"]) await api.post("/api/v1/nodes", { metadata: { name } });
  [one, two] = [machineNamed("one"), machineNamed("two")];
});
beforeEach(() => api.put(`${configMaps}/${turnsName}`, nobodyIsDown));
afterAll(() => operator?.close());

it("lets one of two machines be down that want to be at the same moment", async () => {
  const ends = await Promise.all([one, two].map((each) => on(each, "take_turn", "Reboot", "30")));

  expect(ends.map(({ code }) => code).sort()).toEqual([0, 1]);
  expect(Object.keys(await written())).toHaveLength(1);
});

it("lets an update wait for a machine that is down, and go on when that is back", async () => {
  await on(one, "take_turn", "Redeploy", "30");
  const waiting = { api: operator, machine: "two", minutes: 0 };

  await expect(takeTurn(waiting)).rejects.toThrow(
    /two was not touched[^]*one is down for Redeploy/,
  );
  await on(one, "end_turn", "other");
  await takeTurn(waiting);

  expect(Object.keys(await written())).toEqual(["two"]);
  expect((await on(one, "take_turn", "Redeploy", "30")).stdout).toContain("two is down for update");
  await endTurn(waiting);
  expect(await written()).toEqual({});
});

it("lets an update go on with the very machine that is repaired, and with no other one", async () => {
  const repair = `repair ${new Date(Date.now() + 600_000).toISOString()}`;
  await api.put(`${configMaps}/${turnsName}`, { ...nobodyIsDown, data: { "repair.two": repair } });

  await expect(takeTurn({ api: operator, machine: "one", minutes: 0 })).rejects.toThrow(
    /repair\.two is down for repair/,
  );
  await takeTurn({ api: operator, machine: "two", minutes: 0 });

  expect((await written())["two"]).toMatch(/^update /);
});

it.each([
  ["back", -2],
  ["ahead", 2],
])(
  "has turns end by the API server's time where Pulumi's clock is two hours %s",
  async (_, hours) => {
    const now = Date.now;
    const line = `Reboot ${new Date(now() + 600_000).toISOString()}`;
    await api.put(`${configMaps}/${turnsName}`, { ...nobodyIsDown, data: { one: line } });
    const clock = jest.spyOn(Date, "now").mockImplementation(() => now() + hours * 3_600_000);

    try {
      await expect(takeTurn({ api: operator, machine: "two", minutes: 0 })).rejects.toThrow(
        /one is down for Reboot/,
      );
      await takeTurn({ api: operator, machine: "one", minutes: 15 });
    } finally {
      clock.mockRestore();
    }

    const until = Date.parse((await written())["one"]!.split(" ")[1]!);
    expect(Math.round((until - now()) / 3_600_000)).toBe(1);
  },
);

it("ends an update's turn of a machine that has left for good, and keeps that of one that is made anew", async () => {
  await takeTurn({ api: operator, machine: "one", minutes: 1 });
  await takeTurn({ api: operator, machine: "three", minutes: 1 });

  for (const machine of ["one", "three"])
    await endTurnIfGone({ api: operator, machine, minutes: 1 });

  expect(Object.keys(await written())).toEqual(["one"]);
});

it.each<[string, () => Promise<unknown>]>([
  ["a machine's step", () => on(two, "end_turn", "update")],
  ["a drain", () => endTurn({ api: operator, machine: "two", minutes: 1 })],
])("has no machine repaired in the quarter of an hour after %s of an update", async (_, end) => {
  await takeTurn({ api: operator, machine: "two", minutes: 1 });
  await end();

  const { code, stdout } = await on(one, "take_turn", "repair", "30");

  const [, until = ""] = /^an update has run, .* until (20[\dT:-]+Z)/.exec(stdout) ?? [];
  expect(code).toBe(1);
  expect(Date.parse(until)).toBeGreaterThan(Date.now() + 12 * 60_000);
  expect(await on(one, "take_turn", "Redeploy", "30")).toMatchObject({ code: 0 });
});

it("ends an update's turn on the machine that it has made anew", async () => {
  await takeTurn({ api: operator, machine: "two", minutes: 1 });

  expect(await on(two, "end_turn", "update")).toMatchObject({ code: 0 });

  expect(await written()).toEqual({});
});

it("is no way for a machine to change other objects", async () => {
  await api.post(configMaps, { metadata: { name: "another" } });
  const patch = (path: string) =>
    on(
      one,
      ...[
        "ask_as_kubelet",
        path,
        "--request",
        "PATCH",
        "--data",
        '{"metadata": {"annotations": {"a": "b"}}}',
      ],
      ...["--header", "Content-Type: application/merge-patch+json"],
    );

  for (const path of [`${configMaps}/another`, "/api/v1/nodes/two"]) {
    expect((await patch(path)).stderr).toContain("403");
  }
  // Which is why it is no Lease.
  await api.post("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", {
    metadata: { name: turnsName },
  });
  const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${turnsName}`;
  expect((await patch(lease)).stderr).toContain("403");
});

it("is all that a machine needs besides the rights of its kubelet: cordon, eviction, events", async () => {
  const account = { metadata: { name: "default" } };
  await api.post("/api/v1/namespaces/default/serviceaccounts", account);
  await api.post("/api/v1/namespaces/default/pods", {
    metadata: { name: "web" },
    spec: {
      ...{ nodeName: "one", containers: [{ name: "web", image: "web" }] },
      automountServiceAccountToken: false,
    },
  });

  expect(await on(one, "cordon", "zoned/cordoned-for-maintenance", "it")).toMatchObject({
    code: 0,
  });
  expect((await on(one, "held_pods")).stdout).toContain("default/web is being evicted");
  expect((await on(one, "held_pods")).stdout.trim()).toBe("default/web has not ended yet");
  await on(one, "say_on_node", "RebootScheduled", "Azure will");
  const { items } = await api.get("/api/v1/namespaces/default/events");
  // The API server has events of its own.
  expect(
    (items as Body[])
      .filter(({ involvedObject }) => involvedObject.kind === "Node")
      .map(({ reason, involvedObject }) => [reason, involvedObject.name]),
  ).toEqual([["RebootScheduled", "one"]]);
  expect((await api.get("/api/v1/nodes/one")).spec.unschedulable).toBe(true);
  expect(await on(one, "uncordon", "zoned/cordoned-for-maintenance")).toMatchObject({ code: 0 });
  expect((await api.get("/api/v1/nodes/one")).spec.unschedulable).toBeUndefined();
});
