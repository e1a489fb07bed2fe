import {
  authoritiesVariable,
  stageText,
} from "../../../components/kubeadm/certificate-authorities";
import {
  clusterConfigurationOf,
  configurationOf,
  kubeadmFiles,
} from "../../../components/kubeadm/kubeadm";
import { machinesOf } from "../../../components/settings/topology";
import { areFirst, nextKeys, only, type RotationState } from "../../../components/kubeadm/rotation";
import { specOf, validSettings } from "../../support/sample";
import { parseAllDocuments } from "yaml";

const [controlPlane, ...others] = machinesOf(validSettings);
const worker = others.find(({ role }) => role === "worker")!;

const specWith = (cas?: RotationState) => specOf(validSettings, cas && { cas });

const clusterWith = (cas?: RotationState) => {
  const files = kubeadmFiles(specWith(cas), controlPlane!);
  const { content } = files.find(({ path }) => path === "/etc/zoned/kubeadm-init.yaml")!;
  return parseAllDocuments(content)
    .map((document) => document.toJS())
    .find(({ kind }) => kind === "ClusterConfiguration");
};

const stages = [nextKeys(only(1), 2), nextKeys(nextKeys(only(1), 2), 2), only(2, [1])] as const;

it("takes three updates to other CAs, each of which says what the next one does", () => {
  const says: (string | undefined)[] = [];
  let now = only(1);
  for (let up = 0; up < 4; up++) {
    const next = nextKeys(now, 2);
    says.push(stageText(now, next, 2));
    now = next;
  }

  expect(says).toEqual([
    "this update has all machines and new pods trust CA 2; get the kubeconfig anew after that, and restart your pods that ask the API. " +
      "Run pulumi up again when it has ended: it has every certificate signed by CA 2",
    "this update has every certificate signed by CA 2. Run pulumi up again when it has ended: it has nobody trust CA 1 any more",
    "this update has nobody trust CA 1 any more",
    undefined,
  ]);
});

it("changes nothing of a cluster that keeps its first CAs", () => {
  expect(areFirst(only(1))).toBe(true);
  expect(clusterWith(only(1))).toEqual(clusterWith());
  expect(JSON.stringify(clusterWith())).not.toMatch(/ZONED_|cluster-signing/);
});

it("changes every static pod at every stage, so that kubeadm renews its certificates and starts it anew", () => {
  for (const stage of stages) {
    const extraEnvs = [authoritiesVariable(stage)];
    expect(clusterWith(stage)).toMatchObject({
      apiServer: { extraEnvs },
      controllerManager: { extraEnvs },
      scheduler: { extraEnvs },
      etcd: { local: { extraEnvs } },
    });
  }
  expect(new Set(stages.map((stage) => authoritiesVariable(stage).value)).size).toBe(3);
});

it("has the controller manager sign by one certificate as long as ca.crt has several", () => {
  const signing = stages.map((stage) =>
    clusterWith(stage).controllerManager.extraArgs.filter(
      ({ name }: { name: string }) => name === "cluster-signing-cert-file",
    ),
  );
  const file = { name: "cluster-signing-cert-file", value: "/etc/kubernetes/pki/signing-ca.crt" };

  expect(signing).toEqual([[file], [file], []]);
});

it("has every machine configured anew at every stage, workers too", () => {
  for (const machine of [controlPlane!, worker]) {
    const hashes = [undefined, ...stages].map((stage) => configurationOf(specWith(stage), machine));
    expect(new Set(hashes).size).toBe(4);
  }
  const shared = [undefined, ...stages].map((stage) => clusterConfigurationOf(specWith(stage)));
  expect(new Set(shared).size).toBe(4);
});
