import type { Unwrap } from "@pulumi/pulumi";

import type { CertificateAuthority, Certificates, TokenKey } from "./certificates";
import { areTaken, isAdding, isRewriting, signingFile } from "./kubeadm/rotations";
import { encryptionFile } from "./kubeadm/encryption";
import { proxyModules } from "./kubeadm/kube-proxy";
import {
  clusterConfigurationOf,
  discoveryKubeconfig,
  kubeadmFiles,
  roomOf,
} from "./kubeadm/kubeadm";
import { PayloadFile } from "./kubeadm/payload-file";
import { registryCredentialFiles, registryHostFiles, registryLogin } from "./kubeadm/registries";
import { firstBootFiles } from "./machine/custom-data";
import { Payload, Task, unitFile } from "./machine/payload";
import { renewalFiles, snapshotFiles } from "./machine/timers";
import { Plan } from "./plan/plan";
import { goNumber } from "./settings/rules/argument-types";
import type { Settings } from "./settings/settings";
import { MachinePlan } from "./settings/topology";
import { tokenIssuerOf } from "./token-issuer";
import { plainHardware } from "./azure/hardware";
import { adminKubeconfig } from "./kubeconfig";
import type { MachineArgs } from "./machine/machine";

type Authority = Unwrap<CertificateAuthority>;

/** What Azure and other resources say only once they exist, of every machine. */
interface MachineValues {
  readonly kubeletFiles: readonly PayloadFile[];
  /** Of the identity by which the kubelet pulls images; empty without registries. */
  readonly kubeletClientId: string;
}

/** The same of a control plane. */
export interface ControlPlaneValues extends MachineValues {
  readonly role: "control-plane";
  readonly initialControlPlane: string;
  /** Of the API's balancer. */
  readonly apiAddress: string;
  readonly cas: Readonly<Record<"cluster" | "frontProxy" | "etcd", Authority>>;
  readonly serviceAccount: Unwrap<TokenKey>;
  readonly encryptionSecret: string;
  /** Of the identity that writes snapshots and repairs machines; empty where nothing does. */
  readonly clientId: string;
}

/** The same of a worker, which gets no key of the cluster's. */
export interface WorkerValues extends MachineValues {
  readonly role: "worker";
  /** The CAs that it trusts. */
  readonly caCerts: string;
  readonly joinToken: string;
}

/** All that the bootstrap step of a machine gets. */
export function payloadFor(
  machine: MachinePlan,
  plan: Plan,
  values: ControlPlaneValues | WorkerValues,
): Payload {
  const { settings, apiServer, spec } = plan;
  const shared = {
    machine: machine.name,
    apiName: apiServer.name,
    apiPort: apiServer.port,
    kubernetesVersion: settings.kubernetesVersion,
    configuration: plan.machineRecords.get(machine.name)!.configuration,
    tasks: tasksOf(machine, plan),
    drainMinutes: settings.drainMinutes,
    maxPods: maxPodsOf(machine, settings),
    room: roomOf(settings, maxPodsOf(machine, settings)),
    nodeAddress: machine.address,
    modules: proxyModules(settings),
    awaitsReady: settings.cni !== "none",
  };
  const files = [
    ...values.kubeletFiles,
    ...firstBootFiles(settings, apiServer.name),
    ...kubeadmFiles(spec, machine),
    ...registryHostFiles(settings, spec.registries),
    ...registryCredentialFiles(settings),
    unitFile("zoned-maintenance.service"),
    ...(values.kubeletClientId === ""
      ? []
      : [
          registryLogin({
            ...{ clientId: values.kubeletClientId, tenantId: plan.tenantId },
            resourceManagerEndpoint: settings.resourceManagerEndpoint,
          }),
        ]),
  ];
  if (values.role === "worker") {
    const discovery = discoveryKubeconfig(apiServer.name, values.caCerts, values.joinToken);
    return {
      ...shared,
      role: "worker",
      ...(machine.ephemeralOsDisk !== undefined && { isEphemeral: true }),
      files: [{ path: "/etc/zoned/discovery.conf", mode: "0600", content: discovery }, ...files],
    };
  }
  const { initialControlPlane, apiAddress, clientId } = values;
  const isPrivate = settings.apiAccess === "private";
  const { restoredFrom } = plan.initialization;
  return {
    ...shared,
    role: "control-plane",
    initialControlPlane,
    ...(isPrivate ? { isApiPrivate: true } : { apiAddress }),
    clusterConfiguration: clusterConfigurationOf(spec),
    ...(restoredFrom !== undefined && { restoredFrom }),
    files: [
      ...pkiFiles(values),
      ...snapshotFiles(settings, clientId, values.encryptionSecret, loginOf(plan)),
      ...(settings.autoRepair ? [repairFile(settings, clientId)] : []),
      ...(spec.encryptionKeys === undefined
        ? []
        : [encryptionFile(values.encryptionSecret, spec.encryptionKeys)]),
      ...renewalFiles(plan.controlPlanes.indexOf(machine)),
      ...files,
    ],
  };
}

/** Where neither is set, the kubelet's default. */
const maxPodsOf = ({ maxPods }: MachinePlan, { kubeadm }: Settings): number =>
  maxPods ?? goNumber(kubeadm.kubeletExtraArgs["max-pods"] ?? "110");

/** By tokens of service accounts, once Entra takes them. */
const loginOf = ({ federation, settings, subscriptionId, tenantId }: Plan) =>
  federation.isUsed ? { issuer: tokenIssuerOf(settings, subscriptionId), tenantId } : undefined;

/** By which a control plane asks Azure to restart a worker. */
function repairFile(
  { clusterName, resourceManagerEndpoint, workerPools }: Settings,
  clientId: string,
): PayloadFile {
  const ephemeral = workerPools.filter(({ ephemeralOsDisk }) => ephemeralOsDisk !== undefined);
  const pools = ephemeral.map(({ name }) => `${clusterName}-${name}`).join(" ");
  return {
    path: "/opt/zoned/repair.env",
    mode: "0600",
    content: `CLIENT_ID='${clientId}'\nRESOURCE_MANAGER='${resourceManagerEndpoint}'\nEPHEMERAL_POOLS='${pools}'\n`,
  };
}

/** What concerns the whole cluster is done by the control plane that is the last in turn. */
function tasksOf(machine: MachinePlan, { settings, spec, turns }: Plan): Task[] {
  const { cas, encryptionKeys, serviceAccountKeys } = spec;
  const isLast = machine.name === turns.at(-1)!.name;
  const tasks: Readonly<Record<Task, boolean>> = {
    registries: spec.registries.length > 0,
    "registry-credentials": Object.keys(settings.registryCredentials).length > 0,
    snapshots: machine.role === "control-plane" && settings.etcdBackups !== undefined,
    repair: machine.role === "control-plane" && settings.autoRepair,
    cas: areTaken(cas),
    "restart-pods": isLast && isAdding(cas),
    "rewrite-secrets": isLast && encryptionKeys !== undefined && isRewriting(encryptionKeys),
    "forget-account-keys": machine.role === "control-plane" && isRewriting(serviceAccountKeys),
  };
  return (Object.keys(tasks) as Task[]).filter((task) => tasks[task]);
}

const pki = "/etc/kubernetes/pki";

/** kubeadm signs with the first certificate of the file; what reads the file trusts them all. */
const authorityFiles = (stem: string, { trusted, key }: Authority): PayloadFile[] => [
  { path: `${pki}/${stem}.crt`, mode: "0644", content: trusted },
  { path: `${pki}/${stem}.key`, mode: "0600", content: key },
];

/** What kubeadm finds in its certificate directory and therefore does not make itself. */
const pkiFiles = ({ cas, serviceAccount }: ControlPlaneValues): PayloadFile[] => [
  ...authorityFiles("ca", cas.cluster),
  { path: signingFile, mode: "0644", content: cas.cluster.cert },
  ...authorityFiles("front-proxy-ca", cas.frontProxy),
  ...authorityFiles("etcd/ca", cas.etcd),
  { path: `${pki}/sa.pub`, mode: "0644", content: serviceAccount.trusted },
  { path: `${pki}/sa.key`, mode: "0600", content: serviceAccount.key },
];

/** What the plan says of one machine, whichever its role. */
export const plannedMachine = (
  machine: MachinePlan,
  plan: Plan,
  certificates: Certificates,
): Omit<
  MachineArgs,
  "resourceGroup" | "subnetId" | "identityIds" | "initialization" | "endsWith" | "after"
> => ({
  settings: plan.settings,
  plan: machine,
  customData: plan.customData,
  retained: plan.retained.has(machine.name),
  current: plan.azure.machines.get(machine.name),
  exists: plan.initialization.exists,
  deallocates: plan.deallocated.has(machine.name),
  starts: plan.started.has(machine.name),
  stepRefusal: plan.stepRefusals.get(machine.name),
  hardware: plan.hardware.get(machine.name) ?? plainHardware,
  record: plan.machineRecords.get(machine.name)!,
  certificates,
  kubeconfig: adminKubeconfig(plan, certificates),
});
