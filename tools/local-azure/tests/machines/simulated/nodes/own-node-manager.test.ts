import { spawn } from "node:child_process";
import * as fs from "node:fs";
import type { AddressInfo } from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { CloudNodeManager } from "../../../../../../components/add-ons/cloud-provider/cloud-node-manager";
import { isMachine, machineOf } from "../../../../arm/types/compute/virtual-machine";
import { type LocalAzure, startLocalAzure } from "../../../../daemon/local-azure";
import type { VirtualMachine } from "../../../../machines/machines";
import { metadataOf } from "../../../../machines/qemu/network/machine-metadata";
import { serveMetadata } from "../../../../machines/qemu/network/metadata";
import { networksOf } from "../../../../machines/qemu/network/network-view";
import {
  Api,
  type Body as KubernetesObject,
  kubeconfigOf,
} from "../../../../machines/simulated/api";
import { initialized } from "../../../../machines/simulated/nodes/cloud-provider";
import { nodeOf, uninitialized } from "../../../../machines/simulated/nodes/node";
import { nodeManager } from "../../../../../programs/controllers";
import { placesOf } from "../../../../../programs/installs";
import { compute, network, valid, withChange } from "../../../support/arm/valid-resources";
import { Recorder } from "../../../../../../tests/support/record";
import { validSettings } from "../../../../../../tests/support/sample";
import { firstBoot, newFixture, scriptOf } from "../../../support/simulated/fixture";
import { describeUnless } from "../../../../../../tests/support/unless";

const state = fs.mkdtempSync(path.join(os.tmpdir(), "zoned-node-manager-"));
afterAll(() => fs.rmSync(state, { recursive: true, force: true }));

const binaries = process.env.ZONED_BINARIES;
const obstacle = binaries === undefined ? "ZONED_BINARIES names no folder" : undefined;

const apiName = "demo.westeurope.cloudapp.azure.com";

describeUnless(obstacle)(`the program's node manager (${nodeManager.version})`, () => {
  jest.setTimeout(600_000);
  let azure: LocalAzure;

  const admin = () => {
    const file = path.join(state, "machines/clusters", apiName, "root/etc/kubernetes/admin.conf");
    const { ca, user } = kubeconfigOf(fs.readFileSync(file, "utf8"));
    const address = azure.machines.apiAddress(apiName)!;
    return new Api({ ...address, serverName: apiName, ca }, user);
  };
  const vm = (name: string): VirtualMachine => {
    const resource = azure.arm.view.find(compute(`virtualMachines/${name}`))!;
    if (!isMachine(resource)) throw new Error(`${name} is no machine`);
    return machineOf(resource, azure.arm.view);
  };
  const eventually = async <T>(
    what: string,
    look: () => Promise<T | undefined> | T | undefined,
  ) => {
    for (const until = Date.now() + 300_000; Date.now() < until; await wait(300)) {
      const seen = await look();
      if (seen !== undefined) return seen;
    }
    throw new Error(`${what}: not within five minutes`);
  };

  /** Creates a machine at this address of the first zone. */
  async function create(name: string, address: string): Promise<VirtualMachine> {
    const nic = network(`networkInterfaces/${name}-nic`);
    const configuration = "ipConfigurations.0";
    await azure.arm.put(
      nic,
      withChange("nic", {
        [`${configuration}.privateIPAddress`]: address,
        [`${configuration}.loadBalancerBackendAddressPools`]: undefined,
      }),
    );
    await azure.arm.put(
      compute(`virtualMachines/${name}`),
      withChange("machine", {
        "networkProfile.networkInterfaces.0.id": nic,
        "osProfile.computerName": name,
        "osProfile.customData": firstBoot,
        "storageProfile.osDisk.name": `${name}-os`,
      }),
    );
    return vm(name);
  }

  let fixture: Awaited<ReturnType<typeof newFixture>>;

  /** What the program applies for its node manager. */
  async function recorded(): Promise<[string, KubernetesObject][]> {
    const recorder = await Recorder.start();
    const opts = { transformations: [recorder.watch] };
    const settings = { ...validSettings, clusterName: "demo", controlPlaneCount: 1 };
    new CloudNodeManager("cnm", { settings, apiServer: { name: apiName, port: 6443 } }, opts);
    const own = async (kind: string, apiVersion: string, path: string) =>
      (await recorder.of(`kubernetes:${kind}`)).map(({ inputs }): [string, KubernetesObject] => [
        path,
        { ...inputs, apiVersion, kind: kind.split(":")[1] },
      ]);
    const rbac = "rbac.authorization.k8s.io/v1";
    const system = "namespaces/kube-system";
    return [
      ...(await own("core/v1:ServiceAccount", "v1", `/api/v1/${system}/serviceaccounts`)),
      ...(await own(`${rbac}:ClusterRole`, rbac, `/apis/${rbac}/clusterroles`)),
      ...(await own(`${rbac}:ClusterRoleBinding`, rbac, `/apis/${rbac}/clusterrolebindings`)),
      ...(await own("apps/v1:DaemonSet", "apps/v1", `/apis/apps/v1/${system}/daemonsets`)),
    ];
  }
  let objects: Awaited<ReturnType<typeof recorded>>;

  beforeAll(async () => {
    azure = await startLocalAzure({ state, binaries: binaries!, log: () => undefined });
    fixture = await newFixture(apiName);
    for (const [id, body] of [
      ...[valid.group, valid.securityGroup, valid.rule, valid.routeTable, valid.natIp],
      ...[valid.nat, valid.vnet, valid.subnet],
    ]) {
      await azure.arm.put(id, body);
    }
    const first = await create("cp-1", "172.16.1.4");
    const script = scriptOf(fixture, first, { initialControlPlane: first.vmId });
    const { exitCode, stderr } = await azure.machines.runScript(first, script);
    if (exitCode !== 0) throw new Error(stderr);
    objects = await recorded();
    for (const [at, object] of objects) await admin().post(at, object);
  });
  afterAll(async () => {
    await azure?.stop();
  });

  it("has Nodes that Azure's own node manager would not initialize otherwise", async () => {
    const machine = await create("workers-2", "172.16.1.17");
    const address = azure.machines.apiAddress(apiName)!;
    const registration = { kubeletExtraArgs: [{ name: "cloud-provider", value: "external" }] };
    const release = { role: "worker", kubernetesVersion: "1.36.3" } as const;
    const fresh = nodeOf(machine, registration, release);
    const { labels } = fresh.metadata;
    const nodeInfo = { ...fresh.status.nodeInfo, systemUUID: "of a machine that is not there" };
    // Nothing simulated takes it for one of its own.
    await admin().post("/api/v1/nodes", {
      ...fresh,
      metadata: { name: machine.name, labels },
      status: { ...fresh.status, nodeInfo },
    });
    const service = await serveMetadata({ address: "127.0.0.1", port: 0 }, () =>
      networksOf(azure.arm.view)
        .flatMap((one) => metadataOf(one, azure.arm.view))
        .find((one) => one.address === machine.privateAddress),
    );
    const account = "/api/v1/namespaces/kube-system/serviceaccounts/cloud-node-manager";
    const { status } = await admin().post(`${account}/token`, {
      ...{ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} },
    });
    const kubeconfig = path.join(state, "node-manager.conf");
    const cluster = {
      server: `https://${address.host}:${address.port}`,
      "tls-server-name": apiName,
      "certificate-authority-data": Buffer.from(fixture.pki["ca.crt"]!).toString("base64"),
    };
    fs.writeFileSync(
      kubeconfig,
      JSON.stringify({
        clusters: [{ name: "it", cluster }],
        users: [{ name: "it", user: { token: status.token } }],
        contexts: [{ name: "it", context: { cluster: "it", user: "it" } }],
        "current-context": "it",
      }),
    );
    const { spec } = objects.find(([, { kind }]) => kind === "DaemonSet")![1];
    const { args, env } = spec.template.spec.containers[0] as {
      args: string[];
      env: { name: string; valueFrom?: object }[];
    };
    const given = args.map((arg) => arg.replace("$(NODE_NAME)", machine.name));
    const own = env.flatMap(({ name, valueFrom }) => (valueFrom ? [[name, machine.name]] : []));
    const log = fs.openSync(path.join(state, "node-manager.log"), "w");
    const running = spawn(
      placesOf(nodeManager)[nodeManager.name]!,
      [...given, `--kubeconfig=${kubeconfig}`],
      {
        stdio: ["ignore", log, log],
        env: {
          ...(Object.fromEntries(own) as Record<string, string>),
          // The service's own address can be none of this host's.
          HTTP_PROXY: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
        },
      },
    );

    const node = await eventually("a Node without the taint", async () => {
      const seen = await admin().get(`/api/v1/nodes/${machine.name}`);
      const taints = (seen.spec.taints ?? []) as KubernetesObject[];
      return taints.some(({ key }) => key === uninitialized.key) ? undefined : seen;
    }).finally(() => {
      running.kill("SIGKILL");
      service.closeAllConnections();
      service.close();
    });

    const simulated = initialized(fresh, machine);
    expect(node.metadata.labels).toEqual(simulated.metadata.labels);
    expect(node.spec.providerID).toBe(simulated.spec.providerID);
    expect(new Set(node.status.addresses)).toEqual(new Set(fresh.status.addresses));
  });
});
