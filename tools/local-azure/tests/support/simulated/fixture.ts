import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:https";
import type { TLSSocket } from "node:tls";
import { stringify } from "yaml";

import { encryptionAlgorithm } from "../../../../../components/key-algorithm";
import {
  authoritiesVariable,
  keysOfTag,
  signingFile,
} from "../../../../../components/kubeadm/rotations";
import {
  encryptionFile,
  encryptionFlags,
  encryptionVolume,
} from "../../../../../components/kubeadm/encryption";
import type { Payload } from "../../../../../components/machine/payload";
import { versions } from "../../../../../components/versions";
import { listen } from "../../../../../tests/support/listen";
import type { VirtualMachine } from "../../../machines/machines";
import { newPrivateKey, selfSigned, signingKey } from "../../../x509";

/**
 * What a careful operator would hand to the machines of one small cluster; for tests of this
 * folder.
 */
export interface Fixture {
  readonly apiName: string;
  readonly pki: Readonly<Record<string, string>>;
}

export const firstBoot = Buffer.from(
  `#cloud-config\n${JSON.stringify({
    write_files: [{ path: "/opt/zoned/first-boot.sh", content: "#!/bin/sh\n" }],
    runcmd: [["/opt/zoned/first-boot.sh"]],
  })}\n`,
).toString("base64");

/** A new authority's certificate, and its key. */
async function authority(commonName: string): Promise<[string, string]> {
  const { privateKeyPem } = await newPrivateKey();
  const key = await signingKey(privateKeyPem, "its key");
  const { certPem } = await selfSigned(
    key,
    { commonName },
    {
      ...{ allowedUses: ["digital_signature", "cert_signing"], validityPeriodHours: 24 },
      ...{ isCaCertificate: true, setSubjectKeyId: true },
    },
  );
  return [certPem, privateKeyPem];
}

export async function newFixture(apiName: string): Promise<Fixture> {
  const pki: Record<string, string> = {};
  for (const stem of ["ca", "front-proxy-ca", "etcd/ca"]) {
    [pki[`${stem}.crt`], pki[`${stem}.key`]] = await authority(stem);
  }
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  pki["sa.pub"] = `${publicKey.export({ type: "spki", format: "pem" })}`;
  pki["sa.key"] = `${privateKey.export({ type: "pkcs8", format: "pem" })}`;
  return { apiName, pki };
}

/** The cluster of the first ones, with the CAs of both: those of `signing` sign. */
export const trusting = (signing: Fixture, other: Fixture, first = signing): Fixture => ({
  ...first,
  pki: {
    ...first.pki,
    ...Object.fromEntries(
      ["ca", "front-proxy-ca", "etcd/ca"].flatMap((stem) => [
        [`${stem}.crt`, `${signing.pki[`${stem}.crt`]}\n${other.pki[`${stem}.crt`]}`],
        [`${stem}.key`, signing.pki[`${stem}.key`]],
      ]),
    ),
    "signing-ca.crt": signing.pki["ca.crt"]!,
  },
});

/**
 * Who serves HTTPS by a certificate of its own, with the status that the path names, and remembers of
 * each connection whether it resumed a session.
 */
export async function httpsServer() {
  const serverName = "api.example";
  const [ca, key] = await authority(serverName);
  const isResumed: boolean[] = [];
  const server = createServer({ cert: ca, key }, ({ url }, response) =>
    response.writeHead(Number(/^\/(\d+)$/.exec(url!)?.[1] ?? 200)).end("{}"),
  );
  server.on("secureConnection", (socket: TLSSocket) => isResumed.push(socket.isSessionReused()));
  const port = await listen(server);
  return { host: "127.0.0.1", port, serverName, ca, isResumed };
}

let machinesMade = 0;

export const vmOf = (name: string, zone: string, privateAddress: string): VirtualMachine => ({
  id: `/subscriptions/sub-1/resourceGroups/Demo/providers/Microsoft.Compute/virtualMachines/${name}`,
  name,
  vmId: `vm-${++machinesMade}`,
  zone,
  location: "westeurope",
  size: "Standard_D2s_v5",
  isOff: false,
  resourceGroup: "Demo",
  subscriptionId: "sub-1",
  customData: firstBoot,
  privateAddress,
  image: "Ubuntu 24.04",
  identities: [],
});

const args = (values: Record<string, string>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

const apiVersion = "kubeadm.k8s.io/v1beta4";

const registration = (vm: VirtualMachine, kubelet: Record<string, string>) => ({
  name: vm.name,
  criSocket: "unix:///run/containerd/containerd.sock",
  taints: [],
  kubeletExtraArgs: args({
    "cloud-provider": "external",
    "node-ip": vm.privateAddress,
    ...kubelet,
  }),
});

const documents = (...all: object[]) => all.map((each) => stringify(each)).join("---\n");

export interface Knobs {
  readonly initialControlPlane?: string;
  readonly token?: string;
  readonly kubelet?: Record<string, string>;
  readonly apiServer?: Record<string, string>;
  /** Numbers of the keys of Secrets; 1 alone without. */
  readonly encryptionKeys?: string;
  /** Numbers of the CAs; the first ones without. */
  readonly authorities?: string;
}

const clusterConfiguration = (
  { apiName }: Fixture,
  { apiServer = {}, authorities = "1" }: Knobs,
  extraEnvs = authorities === "1" ? [] : [authoritiesVariable(keysOfTag(authorities))],
) => ({
  apiVersion,
  kind: "ClusterConfiguration",
  clusterName: "demo",
  kubernetesVersion: `v${versions.kubernetes}`,
  controlPlaneEndpoint: `${apiName}:6443`,
  encryptionAlgorithm,
  networking: { podSubnet: "10.244.0.0/16", serviceSubnet: "10.96.0.0/12" },
  apiServer: {
    certSANs: [apiName],
    extraArgs: args({ profiling: "false", ...encryptionFlags, ...apiServer }),
    extraVolumes: [encryptionVolume],
    extraEnvs,
  },
  controllerManager: {
    extraArgs: args({
      "cloud-provider": "external",
      ...(authorities.includes(" ") && { "cluster-signing-cert-file": signingFile }),
    }),
    extraEnvs,
  },
  scheduler: { extraEnvs },
  etcd: { local: { extraArgs: args({ "unsafe-no-fsync": "true" }), extraEnvs } },
});

const controlPlaneFiles = (fixture: Fixture, vm: VirtualMachine, knobs: Knobs) => {
  const localAPIEndpoint = { advertiseAddress: vm.privateAddress, bindPort: 6443 };
  const nodeRegistration = registration(vm, knobs.kubelet ?? {});
  return [
    ...Object.entries(fixture.pki).map(([name, content]) => ({
      path: `/etc/kubernetes/pki/${name}`,
      mode: "0600",
      content,
    })),
    encryptionFile("a key in the state", keysOfTag(knobs.encryptionKeys ?? "1")),
    {
      path: "/etc/zoned/kubeadm-init.yaml",
      mode: "0600",
      content: documents(
        { apiVersion, kind: "InitConfiguration", localAPIEndpoint, nodeRegistration },
        clusterConfiguration(fixture, knobs),
      ),
    },
    {
      path: "/etc/zoned/kubeadm-join.yaml",
      mode: "0600",
      content: documents({
        apiVersion,
        kind: "JoinConfiguration",
        discovery: { file: { kubeConfigPath: "/etc/zoned/discovery.conf" } },
        controlPlane: { localAPIEndpoint },
        nodeRegistration,
      }),
    },
  ];
};

const workerFiles = ({ apiName, pki }: Fixture, vm: VirtualMachine, knobs: Knobs) => [
  {
    path: "/etc/zoned/kubeadm-join.yaml",
    mode: "0600",
    content: documents({
      apiVersion,
      kind: "JoinConfiguration",
      discovery: { file: { kubeConfigPath: "/etc/zoned/discovery.conf" } },
      nodeRegistration: registration(vm, knobs.kubelet ?? {}),
    }),
  },
  {
    path: "/etc/zoned/discovery.conf",
    mode: "0600",
    content: JSON.stringify({
      clusters: [
        {
          name: "cluster",
          cluster: {
            server: `https://${apiName}:6443`,
            "certificate-authority-data": Buffer.from(pki["ca.crt"] ?? "").toString("base64"),
          },
        },
      ],
      users: [{ name: "machine", user: { token: knobs.token } }],
    }),
  },
];

/** The script of one machine's bootstrap step; a control plane's if it has the machine that may initialize. */
export function scriptOf(fixture: Fixture, vm: VirtualMachine, knobs: Knobs): string {
  const payload: Payload = {
    machine: vm.name,
    role: knobs.token ? "worker" : "control-plane",
    initialControlPlane: knobs.initialControlPlane,
    apiName: fixture.apiName,
    apiPort: 6443,
    kubernetesVersion: versions.kubernetes,
    configuration: "now",
    tasks: [],
    clusterConfiguration: JSON.stringify(knobs.apiServer ?? {}),
    drainMinutes: 15,
    nodeAddress: vm.privateAddress,
    maxPods: Number(knobs.kubelet?.["max-pods"] ?? 110),
    room: "as before",
    modules: [],
    files: knobs.token ? workerFiles(fixture, vm, knobs) : controlPlaneFiles(fixture, vm, knobs),
  };
  return `#!/bin/bash\nexit\n#--- payload ---\n${JSON.stringify(payload)}\n`;
}
