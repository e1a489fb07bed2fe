import { setTimeout as wait } from "node:timers/promises";

import { Reboots } from "../../../components/add-ons/reboots";
import { Api, type Body } from "../../../tools/local-azure/machines/simulated/api";
import { kindOf } from "../../../tools/local-azure/plugins/kubernetes/objects";
import { startApiServer } from "../../support/api-server";
import { Recorder } from "../../support/record";

const system = "/api/v1/namespaces/kube-system";
const daemonSets = "/apis/apps/v1/namespaces/kube-system/daemonsets";
const lock = "weave.works/kured-node-lock";

let server: Awaited<ReturnType<typeof startApiServer>>;
let operator: Api;
/** Whoever has read the token that is on every machine. */
let kured: Api;

/** Applies what the program makes, in its order. */
async function applyAll(): Promise<void> {
  const recorder = await Recorder.start();
  new Reboots(
    "reboots",
    {
      settings: { drainMinutes: 15 },
      window: { days: ["sun"], from: "02:00", to: "05:00" },
    },
    { transformations: [recorder.watch] },
  );
  for (const { inputs } of await recorder.objects()) {
    const { plural, isNamespaced } = kindOf(inputs);
    const group = inputs["apiVersion"] === "v1" ? "/api/v1" : `/apis/${inputs["apiVersion"]}`;
    await operator.post(
      `${group}${isNamespaced ? "/namespaces/kube-system" : ""}/${plural}`,
      inputs,
    );
  }
}

const changed = async (by: Api, change: (daemonSet: Body) => void): Promise<string> => {
  const daemonSet = await by.get(`${daemonSets}/kured`);
  change(daemonSet);
  return by.put(`${daemonSets}/kured`, daemonSet).then(
    () => "done",
    ({ message }: Error) => message,
  );
};
/** An update that changes nothing is no other image. */
let tries = 0;
const runOther = (daemonSet: Body) => {
  daemonSet["spec"].template.spec.containers[0].image = `somebody/elses:${tries++}`;
};
const takeLock = (daemonSet: Body) => {
  daemonSet["metadata"].annotations[lock] = JSON.stringify({ nodeID: "workers-1" });
};

beforeAll(async () => {
  // kubeadm sets it.
  server = await startApiServer({ "allow-privileged": "true" });
  operator = server.api;
  await applyAll();
  const { status } = await operator.post(`${system}/serviceaccounts/kured/token`, { spec: {} });
  kured = new Api(server.place, { token: status.token });
  // A policy is in force some time after it was made.
  while ((await changed(kured, runOther)) === "done" && tries < 100) await wait(200);
});
afterAll(() => server?.stop());

it("takes its lock by an update of its DaemonSet", async () => {
  expect(await changed(kured, takeLock)).toBe("done");

  const { metadata } = await operator.get(`${daemonSets}/kured`);
  expect(metadata.annotations[lock]).toContain("workers-1");
});

it("cannot have its DaemonSet run anything else, whoever has its token", async () => {
  expect(await changed(kured, runOther)).toMatch(
    /zoned-kured-lock.*kured may change annotations of its DaemonSet, and nothing that runs/,
  );
  expect(await changed(kured, ({ spec }) => (spec.template.spec.hostNetwork = true))).toMatch(
    /zoned-kured-lock/,
  );
});

it("is changed by its operator", async () => {
  expect(await changed(operator, runOther)).toBe("done");
});
