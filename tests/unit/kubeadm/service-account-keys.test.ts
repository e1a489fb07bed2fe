import { parseAllDocuments } from "yaml";

import {
  clusterConfigurationOf,
  configurationOf,
  kubeadmFiles,
} from "../../../components/kubeadm/kubeadm";
import { nextKeys, only, type RotationState } from "../../../components/kubeadm/rotation";
import {
  serviceAccountKeysVariable,
  stageText,
} from "../../../components/kubeadm/service-account-keys";
import { machinesOf } from "../../../components/settings/topology";
import { specOf, validSettings } from "../../support/sample";

const [controlPlane, ...others] = machinesOf(validSettings);
const worker = others.find(({ role }) => role === "worker")!;

const specWith = (serviceAccountKeys: RotationState) =>
  specOf(validSettings, { serviceAccountKeys });

const clusterWith = (keys: RotationState, cas = only(1)) => {
  const files = kubeadmFiles({ ...specWith(keys), cas }, controlPlane!);
  const { content } = files.find(({ path }) => path === "/etc/zoned/kubeadm-init.yaml")!;
  return parseAllDocuments(content)
    .map((document) => document.toJS())
    .find(({ kind }) => kind === "ClusterConfiguration");
};

const stages = [nextKeys(only(1), 2), nextKeys(nextKeys(only(1), 2), 2), only(2, [1])] as const;

it("takes three updates to another key, each of which says what the next one does", () => {
  const says = [only(1), ...stages].map((now) => stageText(now, nextKeys(now, 2), 2));

  expect(says).toEqual([
    "this update has every API server admit tokens of service account key 2; publish /openid/v1/jwks anew after that where others verify tokens. " +
      "Run pulumi up again when it has ended: it has every token signed by service account key 2",
    "this update has every token signed by service account key 2. " +
      "Run pulumi up again when it has ended: it has no API server admit tokens of service account key 1 any more",
    "this update has no API server admit tokens of service account key 1 any more",
    undefined,
  ]);
});

it("changes at every stage the static pods that read the keys, and no other, so that kubeadm starts them anew", () => {
  for (const stage of stages) {
    const { apiServer, controllerManager, scheduler, etcd } = clusterWith(stage);
    const extraEnvs = [serviceAccountKeysVariable(stage)];
    expect([apiServer.extraEnvs, controllerManager.extraEnvs]).toEqual([extraEnvs, extraEnvs]);
    expect([scheduler.extraEnvs, etcd.local.extraEnvs]).toEqual([undefined, undefined]);
  }
  const values = stages.map((stage) => serviceAccountKeysVariable(stage).value);
  expect(new Set(values).size).toBe(3);
});

it("leaves the sign of other CAs beside it", () => {
  const { apiServer, scheduler } = clusterWith(stages[0], only(2));

  expect(apiServer.extraEnvs).toHaveLength(2);
  expect(scheduler.extraEnvs).toHaveLength(1);
});

it("has every control plane configured anew at every stage, and no worker", () => {
  const all = [only(1), ...stages].map(specWith);

  expect(new Set(all.map((spec) => configurationOf(spec, controlPlane!))).size).toBe(4);
  expect(new Set(all.map(clusterConfigurationOf)).size).toBe(4);
  expect(new Set(all.map((spec) => configurationOf(spec, worker))).size).toBe(1);
});
