import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { stringify } from "yaml";

import type { Payload } from "../../../../../components/machine/payload";
import {
  kubeletCertificatePath,
  kubeletKeyPath,
} from "../../../../../components/kubeadm/payload-file";
import { Api, kubeconfigOf } from "../../../machines/simulated/api";
import type { Binaries } from "../../../machines/simulated/control-plane/control-plane";
import { processOf } from "../../../machines/simulated/control-plane/static-pods";
import { SimulatedMachines } from "../../../machines/simulated/simulated";
import { certificateRequest, newPrivateKey, signed, signingKey } from "../../../x509";
import { type Fixture, newFixture, scriptOf, vmOf } from "../../support/simulated/fixture";
import { testFolder } from "../../../../../tests/support/test-folder";
import { built } from "../../../../../tests/support/tools";

const apiName = "kubelets.westeurope.cloudapp.azure.com";
const vm = vmOf("demo-cp-1", "1", "172.16.1.4");

/** A certificate for this address, signed by this cluster's CA. */
async function servingFiles({ pki }: Fixture, address: string): Promise<Payload["files"]> {
  const { privateKeyPem } = await newPrivateKey();
  const [authority, key] = await Promise.all(
    [pki["ca.key"]!, privateKeyPem].map((pem) => signingKey(pem, "key")),
  );
  const names = { dnsNames: [vm.name], ipAddresses: [address] };
  const { certPem } = await signed(
    authority!,
    pki["ca.crt"]!,
    await certificateRequest(key!, { commonName: vm.name }, names),
    {
      ...{ allowedUses: ["digital_signature", "server_auth"], validityPeriodHours: 1 },
      ...{ isCaCertificate: false, setSubjectKeyId: false },
    },
  );
  return [
    { path: kubeletCertificatePath, mode: "0644", content: certPem },
    { path: kubeletKeyPath, mode: "0600", content: privateKeyPem },
  ];
}

const bringing = (script: string, files: Payload["files"]): string => {
  const [program, text = ""] = script.split("\n#--- payload ---\n");
  const payload = JSON.parse(text) as Payload;
  return `${program}\n#--- payload ---\n${JSON.stringify({ ...payload, files: [...payload.files, ...files] })}\n`;
};

it("a kubelet proves itself by what its machine was given, which a real API server verifies, and by nothing else", async () => {
  const stateDir = testFolder();
  const names = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
  const binaries = Object.fromEntries(
    [...names, "kubeadm", "kwok"].map((name) => [name, built(name)]),
  ) as Binaries;
  const limits = { api: 60_000, ready: 60_000, peers: 60_000 };
  const machines = new SimulatedMachines({ stateDir, binaries, limits, log: () => undefined });
  try {
    const fixture = await newFixture(apiName);
    const apiServer = { "kubelet-certificate-authority": "/etc/kubernetes/pki/ca.crt" };
    const script = scriptOf(fixture, vm, { initialControlPlane: vm.vmId, apiServer });
    await machines.create(vm);
    expect(await machines.runScript(vm, script)).toMatchObject({ exitCode: 0 });
    const admin = join(stateDir, "clusters", apiName, "root/etc/kubernetes/admin.conf");
    const { ca, user } = kubeconfigOf(readFileSync(admin, "utf8"));
    const api = new Api({ ...machines.apiAddress(apiName)!, serverName: apiName, ca }, user);
    const pods = "/api/v1/namespaces/kube-system/pods";
    const pod = {
      metadata: { name: "it" },
      spec: { nodeName: vm.name, containers: [{ name: "it", image: "it" }] },
    };
    // Its namespace gets its service account from a controller.
    while (
      await api.post(pods, pod).then(
        () => false,
        () => true,
      )
    )
      await wait(100);
    const logs = (): Promise<string> =>
      api.get(`${pods}/it/log`).then(JSON.stringify, ({ message }: Error) => message);
    const give = async (files: Payload["files"]) =>
      expect(await machines.runScript(vm, bringing(script, files))).toMatchObject({ exitCode: 0 });

    expect(await logs()).toMatch(
      /x509: certificate signed by unknown authority|x509: cannot validate/,
    );
    await give(await servingFiles(fixture, "172.16.1.5"));
    expect(await logs()).toContain("x509: certificate is valid for 172.16.1.5, not 172.16.1.4");
    await give(await servingFiles(fixture, vm.privateAddress));
    // The kubelet's own answer: there is no log of this container.
    expect(await logs()).toContain("could not find the requested resource ( pods/log it)");
  } finally {
    await machines.stop();
  }
});

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

it("a component is given what its pod mounts from its host below the root, and only that", () => {
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

it.each([
  ["kube-apiserver", 20_001],
  ["kube-controller-manager", 20_005],
  ["kube-scheduler", 20_006],
] as const)("%s listens on loopback only, at this cluster's port %i", (component, port) => {
  const given = [component, "--bind-address=0.0.0.0", "--secure-port=6443"];

  const listens = processOf(component, pod(given), host).filter((word) =>
    /^--(bind-address|secure-port)=/.test(word),
  );

  expect(listens).toEqual(["--bind-address=127.0.0.1", `--secure-port=${port}`]);
});

it("etcd listens on loopback only, at this cluster's ports and at each once", () => {
  const words = processOf(
    "etcd",
    pod([
      "etcd",
      "--listen-client-urls=https://127.0.0.1:2379,https://172.16.1.4:2379",
      "--listen-metrics-urls=http://127.0.0.1:2381",
      "--listen-peer-urls=https://172.16.1.4:2380",
    ]),
    host,
  );

  expect(words).toEqual([
    "/bin/it",
    "--listen-client-urls=https://127.0.0.1:20002",
    "--listen-metrics-urls=http://127.0.0.1:20004",
    "--listen-peer-urls=https://127.0.0.1:20003",
  ]);
});
