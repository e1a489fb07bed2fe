import { spawn } from "node:child_process";
import * as fs from "node:fs";
import type { AddressInfo } from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { azureJson } from "../../../../../../components/add-ons/cloud-provider/azure-json";
import { CloudConfig } from "../../../../../../components/add-ons/cloud-provider/cloud-config";
import { CloudControllerManager } from "../../../../../../components/add-ons/cloud-provider/cloud-controller-manager";
import { CloudNodeManager } from "../../../../../../components/add-ons/cloud-provider/cloud-node-manager";
import { account, subscriptionPath } from "../../../../arm/resources/ids";
import type { Body } from "../../../../arm/resources/resource";
import { isMachine, machineOf } from "../../../../arm/types/compute/virtual-machine";
import { type LocalAzure, startLocalAzure } from "../../../../daemon/local-azure";
import type { VirtualMachine } from "../../../../machines/machines";
import { useOwnPrograms } from "../../../../machines/own-programs";
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
import { controllerManager, nodeManager } from "../../../../../programs/controllers";
import { placesOf } from "../../../../../programs/installs";
import {
  compute,
  group,
  network,
  roleDefinition,
  valid,
} from "../../../support/arm/valid-resources";
import { Recorder } from "../../../../../../tests/support/record";
import { validSettings } from "../../../../../../tests/support/sample";
import { firstBoot, type Knobs, newFixture, scriptOf } from "../../../support/simulated/fixture";
import { cniDaemonSet, tokenOf } from "../../../support/simulated/workloads";
import { describeUnless } from "../../../../../../tests/support/unless";

const state = fs.mkdtempSync(path.join(os.tmpdir(), "zoned-manager-"));
afterAll(() => fs.rmSync(state, { recursive: true, force: true }));

const binaries = process.env.ZONED_BINARIES;
const obstacle = binaries === undefined ? "ZONED_BINARIES names no folder" : undefined;

const apiName = "demo.westeurope.cloudapp.azure.com";
const cluster = "demo";
const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cluster`;
const location = "westeurope";

describeUnless(obstacle)(`the program's cloud provider (${controllerManager.version})`, () => {
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
  const peek = (id: string) => azure.arm.peek(id);
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
  async function create(name: string, address: string, more: Body = {}): Promise<VirtualMachine> {
    const nic = network(`networkInterfaces/${name}-nic`);
    await azure.arm.put(nic, {
      location,
      ipConfigurations: [
        {
          name: "ip",
          subnet: { id: valid.subnet[0] },
          privateIPAllocationMethod: "Static",
          privateIPAddress: address,
        },
      ],
    });
    const { storageProfile, osProfile, ...body } = valid.machine[1];
    await azure.arm.put(compute(`virtualMachines/${name}`), {
      ...{ ...body, ...more, networkProfile: { networkInterfaces: [{ id: nic }] } },
      osProfile: { ...osProfile, computerName: name, customData: firstBoot },
      storageProfile: {
        ...storageProfile,
        osDisk: { ...storageProfile.osDisk, name: `${name}-os` },
      },
    });
    return vm(name);
  }

  async function join(machine: VirtualMachine, knobs: Knobs): Promise<void> {
    const script = scriptOf(fixture, machine, knobs);
    const { exitCode, stderr } = await azure.machines.runScript(machine, script);
    if (exitCode !== 0) throw new Error(stderr);
  }

  let fixture: Awaited<ReturnType<typeof newFixture>>;

  /** The program's own objects, as it would apply them. */
  let objects: [string, KubernetesObject][];
  async function recorded(): Promise<typeof objects> {
    const recorder = await Recorder.start();
    const opts = { transformations: [recorder.watch] };
    const settings = { ...validSettings, clusterName: cluster, controlPlaneCount: 1 };
    const cloudConfig = new CloudConfig(
      "cloud-config",
      {
        ...{ settings, tenantId: account.tenantId, subscriptionId: account.subscriptionId },
        resourceGroup: new ResourceGroup("cluster", { resourceGroupName: "zoned" }),
        credential: { clientId: pulumi.output("client") },
      },
      opts,
    );
    const apiServer = { name: apiName, port: 6443 };
    new CloudControllerManager("ccm", { settings, apiServer, cloudConfig }, opts);
    new CloudNodeManager("cnm", { settings, apiServer }, opts);
    const { clientId } = peek(identity) as { clientId: string };
    const text = azureJson({
      ...{ tenantId: account.tenantId, subscriptionId: account.subscriptionId, clientId, location },
      resourceGroup: "zoned",
      virtualNetwork: "vnet",
      subnet: "nodes-1",
      securityGroup: "nsg",
      routeTable: "rt",
      resourceManagerEndpoint: `http://127.0.0.1:${azure.ports.resourceManager}`,
      tags: {},
    });
    const own = async (kind: string, apiVersion: string, path: string) =>
      (await recorder.of(`kubernetes:${kind}`)).map(({ inputs }): [string, KubernetesObject] => [
        path,
        { ...inputs, apiVersion, kind: kind.split(":")[1] },
      ]);
    const rbac = "rbac.authorization.k8s.io/v1";
    const system = "namespaces/kube-system";
    return [
      [
        `/api/v1/${system}/secrets`,
        {
          ...{ apiVersion: "v1", kind: "Secret", metadata: { name: "azure-cloud-provider" } },
          data: { "cloud-config": Buffer.from(text).toString("base64") },
        },
      ],
      ...(await own("core/v1:ServiceAccount", "v1", `/api/v1/${system}/serviceaccounts`)),
      ...(await own(`${rbac}:ClusterRole`, rbac, `/apis/${rbac}/clusterroles`)),
      ...(await own(`${rbac}:ClusterRoleBinding`, rbac, `/apis/${rbac}/clusterrolebindings`)),
      ...(await own(`${rbac}:RoleBinding`, rbac, `/apis/${rbac}/${system}/rolebindings`)),
      ...(await own("apps/v1:Deployment", "apps/v1", `/apis/apps/v1/${system}/deployments`)),
      ...(await own("apps/v1:DaemonSet", "apps/v1", `/apis/apps/v1/${system}/daemonsets`)),
    ];
  }

  beforeAll(async () => {
    useOwnPrograms(state);
    azure = await startLocalAzure({ state, binaries: binaries!, log: () => undefined });
    fixture = await newFixture(apiName);
    for (const [id, body] of [
      ...[valid.group, valid.securityGroup, valid.rule, valid.routeTable, valid.natIp],
      ...[valid.nat, valid.vnet, valid.subnet],
    ]) {
      await azure.arm.put(id, body);
    }
    await azure.arm.put(identity, { location });
    const { principalId } = peek(identity) as { principalId: string };
    const actions = {
      "attaches-disks": [group, ["Microsoft.Compute/virtualMachines/read"]],
      "reads-providers": [subscriptionPath, ["Microsoft.Resources/subscriptions/providers/read"]],
    } as const;
    const guid = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;
    const grants: [string, string][] = [
      [group, roleDefinition("4d97b98b-1d4f-4787-a291-c67834d212e7")],
    ];
    for (const [index, [roleName, [scope, allowed]]] of Object.entries(actions).entries()) {
      const id = roleDefinition(guid(index + 1));
      await azure.arm.put(id, {
        roleName,
        permissions: [{ actions: [...allowed] }],
        assignableScopes: [subscriptionPath],
      });
      grants.push([scope, id]);
    }
    for (const [index, [scope, roleDefinitionId]] of grants.entries()) {
      await azure.arm.put(
        `${scope}/providers/Microsoft.Authorization/roleAssignments/${guid(index)}`,
        { principalId, roleDefinitionId },
      );
    }
    const identities = { identity: { type: "UserAssigned", userAssignedIdentities: [identity] } };
    const first = await create("cp-1", "172.16.1.4", identities);
    await join(first, { initialControlPlane: first.vmId });
    objects = await recorded();
    for (const [at, object] of [...cniDaemonSet, ...tokenOf("workers-1").objects, ...objects]) {
      await admin().post(at, object as KubernetesObject);
    }
    await join(await create("workers-1", "172.16.1.16"), { token: tokenOf("workers-1").token });
  });
  afterAll(async () => {
    await azure?.stop();
  });

  const services = "/api/v1/namespaces/default/services";
  const expose = (name: string, more: object = {}) =>
    admin().post(services, {
      ...{ apiVersion: "v1", kind: "Service", metadata: { name, ...more } },
      spec: {
        type: "LoadBalancer",
        selector: { app: "web" },
        ports: [{ port: 80, targetPort: 8080 }],
      },
    });
  const addressOf = (name: string) =>
    eventually(
      `an address of ${name}`,
      async () =>
        (await admin().get(`${services}/${name}`)).status.loadBalancer.ingress?.[0]?.ip as
          string | undefined,
    );
  const balancer = (name = cluster) =>
    peek(network(`loadBalancers/${name}`)) as KubernetesObject | undefined;
  const rules = () =>
    ((peek(valid.securityGroup[0]) as KubernetesObject).securityRules as KubernetesObject[]).map(
      ({ name }) => name as string,
    );
  const publicAddresses = () => azure.arm.view.ofType("Microsoft.Network/publicIPAddresses");

  it("gives a Service a public address, a rule, a probe, its workers and a security rule, and takes all away with it", async () => {
    const before = { rules: rules(), addresses: publicAddresses().length };
    await expose("web");

    const address = await addressOf("web");

    expect(publicAddresses().map(({ body }) => body["ipAddress"])).toContain(address);
    const { backendAddressPools, loadBalancingRules, probes } = balancer()!;
    expect(
      backendAddressPools.flatMap((pool: KubernetesObject) =>
        pool.loadBalancerBackendAddresses.map((one: KubernetesObject) => one.ipAddress),
      ),
    ).toEqual(["172.16.1.16"]);
    expect(loadBalancingRules).toMatchObject([{ frontendPort: 80, protocol: "Tcp" }]);
    expect(probes).toHaveLength(1);
    expect(rules().length).toBe(before.rules.length + 1);

    await admin().delete(`${services}/web`);
    await eventually("the balancer to go", async () =>
      balancer() === undefined ? true : undefined,
    );
    await eventually("the Service to go", async () =>
      (await admin().find(`${services}/web`)) === undefined ? true : undefined,
    );
    expect({ rules: rules(), addresses: publicAddresses().length }).toEqual(before);
  });

  it("gives an internal Service an address of the network, and none of its own", async () => {
    const before = publicAddresses().length;
    await expose("inner", {
      annotations: { "service.beta.kubernetes.io/azure-load-balancer-internal": "true" },
    });

    expect(await addressOf("inner")).toMatch(/^172\.16\.1\./);

    expect(publicAddresses().length).toBe(before);
    expect(balancer(`${cluster}-internal`)).toBeDefined();
    await admin().delete(`${services}/inner`);
    await eventually("it to go", () =>
      balancer(`${cluster}-internal`) === undefined ? true : undefined,
    );
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
