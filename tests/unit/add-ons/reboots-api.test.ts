import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { Reboots } from "../../../components/add-ons/reboots";
import { Api, type Body, kubeconfigOf } from "../../../tools/local-azure/machines/simulated/api";
import { kindOf } from "../../../tools/local-azure/plugins/kubernetes/kinds";
import {
  apiIsReady,
  apiServerFlags,
  ended,
  makeCertificates,
  spawned,
  startEtcd,
} from "../../support/api-server";
import { freePort } from "../../support/listen";
import { Recorder } from "../../support/record";

jest.setTimeout(300_000);

const folder = mkdtempSync(join(tmpdir(), "zoned-reboots-api-"));
const system = "/api/v1/namespaces/kube-system";
const daemonSets = "/apis/apps/v1/namespaces/kube-system/daemonsets";
const lock = "weave.works/kured-node-lock";

let etcd: ChildProcess;
let server: ChildProcess;
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
  const port = await freePort();
  makeCertificates(folder, port);
  const started = await startEtcd(folder);
  etcd = started.etcd;
  const log = join(folder, "api.log");
  // kubeadm sets the latter.
  const flags = {
    ...apiServerFlags(started.url, port, join(folder, "pki")),
    "allow-privileged": "true",
  };
  server = spawned("kube-apiserver", flags, log);
  const text = readFileSync(join(folder, "super-admin.conf"), "utf8");
  const { server: url, ca, user } = kubeconfigOf(text);
  const place = { host: url.hostname, port: Number(url.port), serverName: "kubernetes", ca };
  operator = new Api(place, user);
  await apiIsReady(server, () => operator.isReady(), log);
  await applyAll();
  const { status } = await operator.post(`${system}/serviceaccounts/kured/token`, { spec: {} });
  kured = new Api(place, { token: status.token });
  // A policy is in force some time after it was made.
  while ((await changed(kured, runOther)) === "done" && tries < 100) await wait(200);
});
afterAll(async () => {
  await ended(server);
  await ended(etcd);
  rmSync(folder, { recursive: true });
});

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
