import { controlPlaneMark, nodeOf } from "../../../../machines/simulated/nodes/node";
import { vmOf } from "../../../support/simulated/fixture";

const vm = vmOf("demo-workers-1", "2", "172.16.2.16");
const worker = { role: "worker", kubernetesVersion: "1.36.3" } as const;
const args = (values: Record<string, string>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

it("registers with the labels and taints that kubeadm's configuration gives a worker", () => {
  const { metadata, spec } = nodeOf(
    vm,
    {
      taints: [{ key: "gpu", value: "yes", effect: "NoSchedule" }],
      kubeletExtraArgs: args({
        "cloud-provider": "external",
        "node-labels": "a=1,b=",
        "register-with-taints": "c=d:NoExecute,e:NoSchedule",
      }),
    },
    worker,
  );

  expect(metadata.labels).toMatchObject({ a: "1", b: "", "kubernetes.io/hostname": vm.name });
  expect(spec.taints).toEqual([
    { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" },
    { key: "c", value: "d", effect: "NoExecute" },
    { key: "e", effect: "NoSchedule" },
    { key: "gpu", value: "yes", effect: "NoSchedule" },
  ]);
});

it("has nothing of a cloud without a cloud provider", () => {
  const { metadata, spec } = nodeOf(vm, {}, worker);

  expect(spec.taints).toEqual([]);
  expect(metadata.annotations).toEqual({
    "kwok.x-k8s.io/node": "fake",
    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
  });
});

it("goes by the last of several arguments of the same name, as a kubelet does", () => {
  const [first] = args({ "node-labels": "a=1" });
  const [last] = args({ "node-labels": "b=2" });

  const { labels } = nodeOf(vm, { kubeletExtraArgs: [first!, last!] }, worker).metadata;

  expect(labels).toMatchObject({ b: "2" });
  expect(labels).not.toHaveProperty("a");
});

it("refuses an address that the machine does not have", () => {
  const registration = { kubeletExtraArgs: args({ "node-ip": "172.16.9.9" }) };

  expect(() => nodeOf(vm, registration, worker)).toThrow(/no interface of the machine has it/);
});

it("leaves a control plane's taints to the mark that kubeadm gives it afterwards", () => {
  const taints = [{ key: "own", effect: "NoSchedule" }];

  const node = nodeOf(vm, { taints }, { ...worker, role: "control-plane" });

  expect(node.spec.taints).toEqual([]);
});

const present = [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }];

it.each([
  {
    given: "nothing",
    registration: {},
    spec: {
      taints: [...present, { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" }],
    },
  },
  { given: "an empty list", registration: { taints: [] }, spec: undefined },
  {
    given: "one of another effect",
    registration: { taints: [{ ...present[0]!, effect: "NoExecute" }] },
    spec: { taints: [...present, { ...present[0]!, effect: "NoExecute" }] },
  },
  { given: "one that is there", registration: { taints: present }, spec: undefined },
])("marks a control plane with the taint that $given means", ({ registration, spec }) => {
  const mark = controlPlaneMark(registration, present);

  expect(mark.metadata.labels).toEqual({
    "node-role.kubernetes.io/control-plane": "",
    // Of which Azure's cloud provider makes no backend of Services.
    "node.kubernetes.io/exclude-from-external-load-balancers": "",
  });
  expect(mark.spec).toEqual(spec);
});

it.each([
  { size: "Standard_B2s", architecture: "amd64", cpu: "2", memory: "4Gi" },
  { size: "Standard_E4s_v5", architecture: "amd64", cpu: "4", memory: "32Gi" },
  { size: "Standard_D4ps_v5", architecture: "arm64", cpu: "4", memory: "16Gi" },
])(
  "gives the Node of a $size what Azure lists for that size",
  ({ size, architecture, ...rest }) => {
    const { status } = nodeOf({ ...vm, size }, {}, worker);

    expect(status).toMatchObject({ nodeInfo: { architecture }, capacity: rest, allocatable: rest });
  },
);
