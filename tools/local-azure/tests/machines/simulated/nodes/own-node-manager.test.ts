import * as fs from "node:fs";
import * as path from "node:path";

import { CloudNodeManager } from "../../../../../../components/add-ons/cloud-provider/cloud-node-manager";
import { isMachine, machineOf } from "../../../../arm/types/compute/virtual-machine";
import { type LocalAzure, startLocalAzure } from "../../../../daemon/local-azure";
import type { VirtualMachine } from "../../../../machines/machines";
import { useOwnPrograms } from "../../../../machines/own-programs";
import {
  Api,
  type Body as KubernetesObject,
  kubeconfigOf,
} from "../../../../machines/simulated/api";
import { initialized } from "../../../../machines/simulated/nodes/cloud-provider";
import { uninitialized } from "../../../../machines/simulated/nodes/node";
import { nodeManager } from "../../../../../programs/controllers";
import { compute, network, valid, withChange } from "../../../support/arm/valid-resources";
import { Recorder } from "../../../../../../tests/support/record";
import { validSettings } from "../../../../../../tests/support/sample";
import { testFolder } from "../../../../../../tests/support/test-folder";
import { firstBoot, newFixture, scriptOf } from "../../../support/simulated/fixture";
import { describeUnless } from "../../../../../../tests/support/unless";
import { until } from "../../../../../../tests/support/until";

const state = testFolder();

const binaries = process.env.ZONED_BINARIES;
const obstacle = binaries === undefined ? "ZONED_BINARIES names no folder" : undefined;

const apiName = "demo.westeurope.cloudapp.azure.com";

describeUnless(obstacle)(`the program's node manager (${nodeManager.version})`, () => {
  jest.setTimeout(600_000);
  let azure: LocalAzure;
  let first: VirtualMachine;

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
  beforeAll(async () => {
    useOwnPrograms(state);
    azure = await startLocalAzure({ state, binaries: binaries!, log: () => undefined });
    const fixture = await newFixture(apiName);
    for (const [id, body] of [
      ...[valid.group, valid.securityGroup, valid.rule, valid.routeTable, valid.natIp],
      ...[valid.nat, valid.vnet, valid.subnet],
    ]) {
      await azure.arm.put(id, body);
    }
    first = await create("cp-1", "172.16.1.4");
    const script = scriptOf(fixture, first, { initialControlPlane: first.vmId });
    const { exitCode, stderr } = await azure.machines.runScript(first, script);
    if (exitCode !== 0) throw new Error(stderr);
  });
  afterAll(() => azure?.stop());

  it("initializes a Node in place of its pod, and as the simulated one does", async () => {
    const of = (name: string) => admin().get(`/api/v1/nodes/${name}`);
    const isFresh = ({ spec }: KubernetesObject): boolean =>
      (spec.taints ?? []).some(({ key }: KubernetesObject) => key === uninitialized.key);
    const fresh = await of("cp-1");
    expect(isFresh(fresh)).toBe(true);

    for (const [at, object] of await recorded()) await admin().post(at, object);

    const node = await until("a Node without the taint", async () => {
      const seen = await of("cp-1");
      return isFresh(seen) ? undefined : seen;
    });
    const simulated = initialized(fresh, first);
    expect(node.metadata.labels).toEqual(simulated.metadata.labels);
    expect(node.spec.providerID).toBe(simulated.spec.providerID);
    expect(new Set(node.status.addresses)).toEqual(new Set(fresh.status.addresses));
  });
});
