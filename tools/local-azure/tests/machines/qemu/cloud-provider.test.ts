import { X509Certificate } from "node:crypto";

import type { Payload } from "../../../../../components/machine/payload";
import { administratorOf, reconcileNodes } from "../../../machines/qemu/simulated-cloud-provider";
import type { Api, Body } from "../../../machines/simulated/api";
import { providerId } from "../../../machines/simulated/nodes/cloud-provider";
import { uninitialized } from "../../../machines/simulated/nodes/node";
import { vmOf } from "../../support/simulated/fixture";
import { newPrivateKey, selfSigned, signingKey } from "../../../x509";

const vm = vmOf("demo-workers-1", "2", "172.16.2.16");

const nodeWith = (ready: string, taints: readonly object[] = []) => ({
  metadata: { name: vm.name, labels: { mine: "kept" }, creationTimestamp: "2026-01-01T00:00:00Z" },
  spec: { taints },
  status: { conditions: [{ type: "Ready", status: ready }] },
});
const fresh = nodeWith("True", [uninitialized, { key: "mine" }]);

/** What is asked of a cluster with this one node. */
async function asked(node: object, { vms = [vm], ownManager = false } = {}) {
  const requests: { verb: string; path: string; body?: Body }[] = [];
  const ask =
    (verb: string) =>
    async (path: string, body?: object): Promise<object> => {
      requests.push({ verb, path, body });
      return {};
    };
  const api = {
    get: async (path: string) => (path === "/api/v1/nodes" ? { items: [node] } : node),
    find: async () => (ownManager ? {} : undefined),
    ...Object.fromEntries(["put", "patch", "delete"].map((verb) => [verb, ask(verb)])),
  } as unknown as Api;
  await reconcileNodes(api, (name) => vms.find((one) => one.name === name));
  return requests;
}

it("gives a new node its id and zone, and takes off no taint but its own", async () => {
  const request = (await asked(fresh)).find(({ verb }) => verb === "put");

  expect(request).toMatchObject({ path: `/api/v1/nodes/${vm.name}` });
  expect(request!.body!.spec).toEqual({ providerID: providerId(vm), taints: [{ key: "mine" }] });
  expect(request!.body!.metadata.labels).toMatchObject({
    mine: "kept",
    "topology.kubernetes.io/zone": "westeurope-2",
  });
});

it("deletes the node of a machine that is gone, once its kubelet is silent", async () => {
  expect(await asked(nodeWith("Unknown"), { vms: [] })).toEqual([
    { verb: "delete", path: `/api/v1/nodes/${vm.name}`, body: undefined },
  ]);
  expect(await asked(nodeWith("True"), { vms: [] })).toEqual([]);
});

it("leaves a node alone whose machine is there and which is initialized", async () => {
  expect(await asked(nodeWith("Unknown"))).toEqual([]);
});

it("leaves everything to a cluster that runs a node manager of its own", async () => {
  expect(await asked(fresh, { ownManager: true })).toEqual([]);
});

const payloadWith = (files: Readonly<Record<string, string>>): Payload =>
  ({
    apiName: "demo",
    files: Object.entries(files).map(([path, content]) => ({ path, content, mode: "0600" })),
  }) as unknown as Payload;

it("is an administrator by a certificate of the CA that a control plane is handed", async () => {
  const { privateKeyPem } = await newPrivateKey();
  const { certPem } = await selfSigned(
    await signingKey(privateKeyPem, "the CA's key"),
    { commonName: "kubernetes" },
    {
      allowedUses: ["cert_signing"],
      validityPeriodHours: 1,
      isCaCertificate: true,
      setSubjectKeyId: true,
    },
  );
  const files = {
    "/etc/kubernetes/pki/ca.crt": certPem,
    "/etc/kubernetes/pki/ca.key": privateKeyPem,
  };

  const { user } = (await administratorOf(payloadWith(files)))!;

  const certificate = new X509Certificate(user.cert!);
  expect(certificate.subject).toBe("O=system:masters\nCN=local-azure:cloud-provider");
  expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
  expect(certificate.verify(new X509Certificate(certPem).publicKey)).toBe(true);
  expect(user.key).toContain("PRIVATE KEY");
});

it("is nobody by what a worker is handed", async () => {
  expect(await administratorOf(payloadWith({}))).toBeUndefined();
});
