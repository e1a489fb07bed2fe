import { stringify } from "yaml";

import { processOf } from "../../../../machines/simulated/control-plane/static-pods";

const ports = {
  api: 20_001,
  etcdClient: 20_002,
  etcdPeer: 20_003,
  etcdMetrics: 20_004,
  controllerManager: 20_005,
  scheduler: 20_006,
};

const pod = (command: readonly string[], mounts: Readonly<Record<string, string>> = {}) =>
  stringify({
    spec: {
      containers: [
        {
          command,
          volumeMounts: Object.keys(mounts).map((mountPath, index) => ({
            name: `${index}`,
            mountPath,
          })),
        },
      ],
      volumes: Object.values(mounts).map((path, index) => ({
        name: `${index}`,
        hostPath: { path },
      })),
    },
  });

const host = { binary: "/bin/it", root: "/state/root", ports, egressFile: "/state/egress.yaml" };

it("puts what a pod mounts from its host below the root, and only that", () => {
  const manifest = pod(
    [
      "kube-apiserver",
      "--a=/audit/policy.yaml",
      "--b=/elsewhere/x",
      "--c=/auditor",
      "--d=/etc/pki/ca",
      "--e=/state/root/etc/pki/ca",
    ],
    { "/audit": "/etc/zoned/audit", "/state/root/etc/pki": "/state/root/etc/pki" },
  );

  expect(processOf("kube-apiserver", manifest, host).slice(0, 6)).toEqual([
    "/bin/it",
    "--a=/state/root/etc/zoned/audit/policy.yaml",
    "--b=/elsewhere/x",
    "--c=/auditor",
    "--d=/state/root/etc/pki/ca",
    "--e=/state/root/etc/pki/ca",
  ]);
});

it("gives etcd ports of its own on loopback, each address once", () => {
  const manifest = pod([
    "etcd",
    "--initial-cluster=demo-cp-1=https://172.16.1.4:2380",
    "--listen-client-urls=https://127.0.0.1:2379,https://172.16.1.4:2379",
    "--listen-metrics-urls=http://127.0.0.1:2381",
    "--quota-backend-bytes=2379",
  ]);

  expect(processOf("etcd", manifest, host)).toEqual([
    "/bin/it",
    "--initial-cluster=demo-cp-1=https://127.0.0.1:20003",
    "--listen-client-urls=https://127.0.0.1:20002",
    "--listen-metrics-urls=http://127.0.0.1:20004",
    "--quota-backend-bytes=2379",
  ]);
});

it.each([
  {
    component: "kube-apiserver",
    given: [
      "--advertise-address=172.16.1.4",
      "--secure-port=6443",
      "--bind-address=0.0.0.0",
      "--shutdown-delay-duration=15s",
    ],
    runs: [
      "--advertise-address=172.16.1.4",
      "--bind-address=127.0.0.1",
      "--secure-port=20001",
      "--egress-selector-config-file=/state/egress.yaml",
      "--shutdown-delay-duration=0s",
    ],
  },
  {
    component: "kube-scheduler",
    given: ["--leader-elect=true"],
    runs: ["--leader-elect=true", "--bind-address=127.0.0.1", "--secure-port=20006"],
  },
  {
    component: "kube-controller-manager",
    given: ["--profiling=false"],
    runs: [
      "--profiling=false",
      "--bind-address=127.0.0.1",
      "--secure-port=20005",
      "--flex-volume-plugin-dir=/state/root/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
    ],
  },
] as const)(
  "lets $component listen nowhere but on this cluster's port",
  ({ component, given, runs }) => {
    const manifest = pod([component, ...given]);

    expect(processOf(component, manifest, host).slice(1)).toEqual(runs);
  },
);
