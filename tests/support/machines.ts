import { ResourceGroup } from "@pulumi/azure-native/resources";
import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import { ApiBalancer } from "../../components/api-balancer";
import { type Hardware, plainHardware } from "../../components/azure/hardware";
import { apiName } from "../../components/api-server";
import type { RotationState } from "../../components/kubeadm/rotations";
import { Certificates } from "../../components/certificates";
import { InitialControlPlane, JoiningControlPlanes } from "../../components/control-plane";
import { Identity, type KubeletIdentity } from "../../components/identity";
import { parsePayload, Payload } from "../../components/machine/payload";
import { Network } from "../../components/network";
import { MachineState } from "../../components/azure/state";
import type { Federation } from "../../components/plan/federation";
import { fixedSettings } from "../../components/plan/fixed-settings";
import { turnsOf } from "../../components/plan/plan";
import { Initialization } from "../../components/plan/initialization";
import { MachineRecord } from "../../components/machine/generation";
import { Machine, type MachineArgs } from "../../components/machine/machine";
import { Settings } from "../../components/settings/settings";
import { machinesOf } from "../../components/settings/topology";
import { Workers } from "../../components/workers";
import { dependenciesOf, Recorded, Recorder, RecorderOptions, valueOf } from "./record";
import {
  alwaysLeft,
  firstKeys,
  machine as machinePlan,
  specOf,
  subscriptionId,
  validSettings,
} from "./sample";

export const vmType = "azure-native:compute:VirtualMachine";
export const stepType = "azure-native:compute:VirtualMachineExtension";

export interface Scene {
  /** Whether it is a preview, which knows of steps only how they were. */
  readonly preview?: boolean;
  readonly settings?: Partial<Settings>;
  readonly initialization?: Initialization;
  /** The control plane that comes first, since it is not well. */
  readonly repairFirst?: string;
  readonly encryptionKeys?: RotationState;
  readonly cas?: RotationState;
  readonly serviceAccountKeys?: RotationState;
  readonly federation?: Federation;
  /** Names of the machines that exist. */
  readonly existing?: readonly string[];
  /** Names of those that are no members of etcd any more. */
  readonly left?: readonly string[];
  /** Names of those that the stack's outputs have. */
  readonly remembered?: readonly string[];
}

const filledIn: NonNullable<RecorderOptions["filledIn"]> = {
  [vmType]: ({ name, inputs }) => ({
    name: inputs.vmName,
    vmId: `id of ${name}`,
    timeCreated: "2026-03-01T09:00:00Z",
  }),
  [stepType]: { provisioningState: "Succeeded" },
};

export const order: MachineRecord = {
  generation: "now",
  createdAt: "2026-01-01T00:00:00.000Z",
  bootstrapRequestedAt: "2026-02-01T00:00:00.000Z",
  kubernetesVersion: validSettings.kubernetesVersion,
  configuration: "now",
};

/** When an update orders what does not exist. */
export const now = "2026-03-01T10:00:00.000Z";

/** A cluster that does not exist yet, and one that does. */
const fresh: Initialization = { id: "1-then", exists: false, problems: [], warnings: [] };
export const existing: Initialization = {
  ...fresh,
  exists: true,
  initialControlPlane: "the-initial-vm",
};

const machine: MachineState = {
  size: "Standard_D2s_v5",
  generation: "now",
  bootstrap: {
    state: "Succeeded",
    kubernetesVersion: validSettings.kubernetesVersion,
    configuration: "now",
    requestedAt: "2026-02-01T00:00:00.000Z",
    initialControlPlane: "the-initial-vm",
  },
};

/** A part of the program that has its own tests, with what machines take from it. */
const part = <T extends pulumi.Resource>(name: string, outputs: Partial<T>): T =>
  Object.assign(new pulumi.ComponentResource(`test:index:${name}`, name), outputs) as unknown as T;

const pair = (name: string) => ({
  cert: pulumi.output(`cert of ${name}`),
  key: pulumi.secret(`private key of ${name}`),
});

const authority = (name: string) => ({
  ...pair(name),
  trusted: pulumi.output(`all certs of ${name}`),
});

/** One machine that is being made, with these changes. */
export function makeMachine(recorder: Recorder, change: Partial<MachineArgs> = {}): Machine {
  const own = new ResourceGroup("cluster", { resourceGroupName: "zoned-test" });
  return new Machine(
    {
      ...{ resourceGroup: { name: own.name, id: own.id, own }, endsWith: own, after: [] },
      ...{ settings: validSettings, plan: machinePlan, subnetId: "the-subnet", identityIds: [] },
      ...{ customData: "ZGF0YQ==", retained: false, current: undefined, exists: true },
      ...{ deallocates: false, starts: false, hardware: plainHardware, record: order },
      ...{ initialization: "1-then", kubeconfig: "the-kubeconfig" },
      certificates: new Certificates("pki", firstKeys),
      ...change,
    },
    { transformations: [recorder.watch] },
  );
}

/** All machines of a cluster, as index.ts makes them. */
export async function buildMachines({
  preview,
  existing: names = [],
  left = [],
  remembered = names,
  ...scene
}: Scene) {
  const { [vmType]: ofVm, ...ofSteps } = filledIn;
  const recorder = await Recorder.start({
    preview,
    filledIn: { [vmType]: ofVm!, ...(!preview && ofSteps) },
  });
  const settings = { ...validSettings, ...scene.settings };
  const machines = machinesOf(settings);
  const azure = {
    machines: new Map(
      names.map((name) => [name, { ...machine, removedFromEtcd: left.includes(name) }]),
    ),
  };
  const controlPlanes = machines.filter(({ role }) => role === "control-plane");
  const plan = {
    settings,
    subscriptionId,
    tenantId: "the-tenant",
    azure,
    shown: new Map(),
    initialization: scene.initialization ?? fresh,
    previous: {
      initialization: fresh.id,
      controlPlanes: remembered.length,
      settings: fixedSettings(settings),
      ...alwaysLeft,
      machines: Object.fromEntries(remembered.map((name) => [name, order])),
    },
    spec: specOf(settings, {
      apiName: apiName(settings, subscriptionId),
      encryptionKeys: scene.encryptionKeys,
      registries: settings.registries.map(() => "ourimages.azurecr.io"),
      ...(scene.cas && { cas: scene.cas }),
      ...(scene.serviceAccountKeys && { serviceAccountKeys: scene.serviceAccountKeys }),
    }),
    machineRecords: new Map(
      machines.map(({ name }) => [
        name,
        names.includes(name) ? order : { ...order, createdAt: now, bootstrapRequestedAt: now },
      ]),
    ),
    controlPlanes,
    turns: turnsOf(controlPlanes, azure, scene.repairFirst),
    workers: machines.filter(({ role }) => role === "worker"),
    retained: new Set(names),
    diskClasses: [],
    stepRefusals: new Map<string, string>(),
    started: new Set<string>(),
    deallocated: new Set<string>(),
    hardware: new Map<string, Hardware>(),
    customData: "ZGF0YQ==",
    apiServer: { name: apiName(settings, subscriptionId), port: 6443 },
    workloadClients: new Map<string, string>(),
    registries: [],
    federation: scene.federation ?? { isUsed: false, isOnMachines: true },
    manifests: new Map<string, string>(),
  };

  const watched = { transformations: [recorder.watch] };
  const own = new ResourceGroup("cluster", { resourceGroupName: settings.clusterName });
  const resourceGroup = { name: own.name, id: own.id, own };
  const network = part<Network>("network", {
    subnetIds: new Map(
      settings.zones.map((zone) => [zone, pulumi.output(`subnet of zone ${zone}`)]),
    ),
  });
  const api = part<ApiBalancer>("api", {
    lastsAsCluster: resourceGroup.own,
    poolId: pulumi.output("the-pool"),
    address: pulumi.output("20.0.0.4"),
  });
  const identity = part<Identity>("identity", {
    resourceId: pulumi.output("the-identity"),
    credential: { clientId: pulumi.output("the-client") },
  });
  const certificates = part<Certificates>("pki", {
    cluster: authority("ca"),
    admin: pair("admin"),
    frontProxy: authority("front-proxy-ca"),
    etcd: authority("etcd-ca"),
    serviceAccount: {
      key: pulumi.secret("private key of service-account"),
      trusted: pulumi.output("all public keys of service-account"),
    },
    joinSecret: pulumi.secret("private join secret"),
    encryptionSecret: pulumi.secret("private secret of Secrets"),
  });
  const kubeletIdentity = part<KubeletIdentity>("kubelets", {
    ...(settings.registries.length > 0 && {
      resourceId: pulumi.output("the-kubelets"),
      clientId: pulumi.output("client-of-kubelets"),
    }),
  });
  const parts = { resourceGroup, plan, network, api, certificates, identity, kubeletIdentity };
  const initial = new InitialControlPlane("initial-control-plane", parts, watched);
  const nodeAddOns = new pulumi.ComponentResource("test:index:NodeAddOns", "node-add-ons");
  const joining = new JoiningControlPlanes(
    "joining-control-planes",
    { ...parts, initial, nodeAddOns },
    watched,
  );
  const controlPlanesMade = [initial, ...joining.members];
  const cluster = new Provider("kubernetes", { kubeconfig: "{}" });
  const workers = new Workers(
    "workers",
    { ...parts, nodeAddOns, controlPlanes: controlPlanesMade, cluster },
    watched,
  );
  return { recorder, initial, workers, network, api, nodeAddOns, plan, resourceGroup };
}

/** Names of what a resource waits for, as the program calls it. */
export async function awaitedBy(request: Recorded): Promise<string[]> {
  const urns = (await dependenciesOf(request)).map(({ urn }) => valueOf(urn));
  return (await Promise.all(urns)).map((urn) => urn.split("::").pop()!).sort();
}

/**
 * Whose steps each machine's VM or step waits for, by the machines' names without the cluster's.
 */
export async function waits(recorder: Recorder, type: string): Promise<Record<string, string[]>> {
  const machineOf = (name: string) => name.replace(/^zoned-test-(.*)-(vm|bootstrap)$/, "$1");
  const entries = (await recorder.of(type)).map(async (request) => {
    const steps = (await awaitedBy(request)).filter((name) => name.endsWith("-bootstrap"));
    return [machineOf(request.name), steps.map(machineOf)];
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** The payload of a machine's bootstrap step. */
export async function payloadOf(recorder: Recorder, machine: string): Promise<Payload> {
  const step = (await recorder.of(stepType)).find(({ name }) => name === `${machine}-bootstrap`);
  const { script } = step!.inputs.protectedSettings.value;
  return parsePayload(Buffer.from(script, "base64").toString());
}
