import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as compute from "@pulumi/azure-native/compute";
import * as pulumi from "@pulumi/pulumi";

import { ApiBalancer } from "./api-balancer";
import { CertificateAuthority, Certificates } from "./certificates";
import { Identity } from "./identity";
import { areTaken, signingFile } from "./kubeadm/certificate-authorities";
import { encryptionFile } from "./kubeadm/encryption";
import { proxyModules } from "./kubeadm/kube-proxy";
import { clusterConfigurationOf, kubeadmFiles } from "./kubeadm/kubeadm";
import { isAdding, isRewriting, tagOf } from "./kubeadm/rotation";
import { adminKubeconfig } from "./kubeconfig";
import { firstBootFiles } from "./machine/custom-data";
import { bootstrapScript } from "./machine/payload";
import { PayloadFile } from "./kubeadm/payload-file";
import { snapshotFiles } from "./machine/etcd-backups";
import { renewalFiles } from "./machine/renewal";
import { Machine } from "./machine/machine";
import { Membership } from "./machine/membership";
import { Network } from "./network";
import { Plan } from "./plan/plan";
import { MachinePlan } from "./settings/topology";

export interface ControlPlaneArgs {
  readonly resourceGroup: ResourceGroup;
  readonly plan: Plan;
  readonly network: Network;
  readonly api: ApiBalancer;
  readonly certificates: Certificates;
  readonly identity: Identity;
}

/**
 * The machines that run etcd and the API. The first one initializes the cluster; the others join
 * one after another, since etcd admits one learner at a time.
 *
 * On the first update all machines are made side by side. In a living cluster each waits until the
 * one before it is a healthy member again, so that never two are gone together; one that is not
 * well comes first.
 */
export class ControlPlane extends pulumi.ComponentResource {
  /** vmId of the machine that runs, or has run, `kubeadm init`. */
  readonly initialControlPlane: pulumi.Output<string>;
  readonly machines: Machine[] = [];
  /** Bootstrap steps in the order in which they run. */
  readonly steps: compute.VirtualMachineExtension[] = [];
  /** Control planes leave one after another, the highest number first. */
  private readonly memberships: Membership[] = [];
  private readonly args: ControlPlaneArgs;
  /** Those that join after the API answers. */
  private readonly others: readonly MachinePlan[];

  constructor(name: string, args: ControlPlaneArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:ControlPlane", name, {}, opts);
    this.args = args;
    const { initialization, repairFirst, controlPlanes, azure } = args.plan;

    const urgency = ({ name }: MachinePlan): number =>
      name === repairFirst ? 2 : azure.machines.get(name)?.removedFromEtcd ? 1 : 0;
    const [first, ...others] = [...controlPlanes].sort((a, b) => urgency(b) - urgency(a));
    this.others = others;
    const machine = this.machine(first!);
    const isInitialized = initialization.exists && !initialization.isRestoring;
    this.initialControlPlane = isInitialized
      ? pulumi.output(initialization.initialControlPlane ?? "nobody")
      : machine.vm.vmId;
    // While a machine of the etcd before is left, two clusters might answer.
    const replaced = initialization.isRestoring ? others.map((one) => this.machine(one).vm) : [];
    this.step(machine, [args.api, args.network, ...replaced]);
    this.registerOutputs();
  }

  /**
   * Signals that the API answers, so that objects can be applied. The state of a
   * step that has failed is unknown until it has run again.
   */
  get initialized(): pulumi.Output<string> {
    return this.steps[0]!.provisioningState;
  }

  /**
   * Makes all machines but the first.
   *
   * @param nodeAddOns what makes nodes Ready, since a step ends when its node is
   */
  join(nodeAddOns: pulumi.Resource): void {
    for (const plan of this.others) {
      this.step(this.machine(plan), [nodeAddOns, ...this.steps.slice(-1)]);
    }
  }

  private machine(machinePlan: MachinePlan): Machine {
    const { plan, resourceGroup, network, api, identity, certificates } = this.args;
    const { initialization } = plan;
    const made = this.machines.find((one) => one.plan === machinePlan);
    if (made !== undefined) return made;
    const { name } = machinePlan;
    // Of several that are lost, too, one joins after another.
    const isLiving =
      initialization.exists &&
      !initialization.isRestoring &&
      (plan.azure.machines.has(name) || plan.previous?.machines[name] !== undefined);
    const machine = new Machine(
      {
        resourceGroup,
        settings: plan.settings,
        plan: machinePlan,
        subnetId: network.subnetIds.get(machinePlan.zone)!,
        poolId: api.poolId,
        identityId: identity.resourceId,
        customData: plan.customData,
        retained: plan.retained.has(name),
        current: plan.azure.machines.get(name),
        deallocates: plan.deallocated.has(name),
        starts: plan.started.has(name),
        stepRefusal: plan.stepRefusals.get(name),
        accelerated: plan.accelerated.has(name),
        initialization: initialization.id,
        record: plan.machineRecords.get(name)!,
        certificates,
        kubeconfig: adminKubeconfig(plan, certificates),
        after: isLiving ? [...this.steps.slice(-1), ...this.memberships.slice(-1)] : [],
      },
      { parent: this },
    );
    this.machines.push(machine);
    return machine;
  }

  private step(machine: Machine, after: readonly pulumi.Resource[]): void {
    const { plan, api, certificates, identity } = this.args;
    const { settings, apiServer, spec } = plan;
    const { encryptionKeys, cas } = spec;
    const { restoredFrom } = plan.initialization;
    // What asks for no token waits for no identity.
    const client = settings.etcdBackups?.container && identity.credential.clientId;
    const isLast = machine.plan.name === (this.others.at(-1) ?? machine.plan).name;
    const script = pulumi
      .all([
        this.initialControlPlane,
        api.address,
        pkiFiles(certificates),
        machine.kubeletCertificate.files,
        client ?? "",
        certificates.encryptionSecret,
      ])
      .apply(([initialControlPlane, apiAddress, pki, kubeletFiles, clientId, encryptionSecret]) =>
        bootstrapScript({
          machine: machine.plan.name,
          role: "control-plane",
          initialControlPlane,
          apiName: apiServer.name,
          apiPort: apiServer.port,
          apiAddress,
          kubernetesVersion: settings.kubernetesVersion,
          configuration: plan.machineRecords.get(machine.plan.name)!.configuration,
          clusterConfiguration: clusterConfigurationOf(spec),
          rewritesSecrets: isLast && encryptionKeys !== undefined && isRewriting(encryptionKeys),
          takesAuthorities: areTaken(cas),
          restartsPods: isLast && isAdding(cas),
          drainMinutes: settings.drainMinutes,
          nodeAddress: machine.plan.address,
          modules: proxyModules(settings),
          awaitsReady: settings.cni !== "none",
          ...(settings.etcdBackups !== undefined && { takesSnapshots: true }),
          ...(restoredFrom !== undefined && { restoredFrom }),
          files: [
            ...pki,
            ...kubeletFiles,
            ...snapshotFiles(settings, clientId),
            ...(encryptionKeys === undefined
              ? []
              : [encryptionFile(encryptionSecret, encryptionKeys)]),
            ...firstBootFiles(settings),
            ...renewalFiles(plan.controlPlanes.indexOf(machine.plan)),
            ...kubeadmFiles(spec, machine.plan),
          ],
        }),
      );
    const { step, membership } = machine.bootstrap({
      initialControlPlane: this.initialControlPlane,
      restoredFrom,
      encryptionKeys: encryptionKeys && tagOf(encryptionKeys),
      cas: tagOf(cas),
      script,
      after,
      outlives: this.memberships.slice(-1),
    });
    this.steps.push(step);
    this.memberships.push(membership);
  }
}

const pki = "/etc/kubernetes/pki";

/** kubeadm signs with the first certificate of the file; what reads the file trusts them all. */
const authorityFiles = (
  stem: string,
  { trusted, key }: pulumi.Unwrap<CertificateAuthority>,
): PayloadFile[] => [
  { path: `${pki}/${stem}.crt`, mode: "0644", content: trusted },
  { path: `${pki}/${stem}.key`, mode: "0600", content: key },
];

/** What kubeadm finds in its certificate directory and therefore does not make itself. */
const pkiFiles = (certificates: Certificates): pulumi.Output<PayloadFile[]> => {
  const { cluster, frontProxy, etcd, serviceAccount } = certificates;
  return pulumi
    .all([cluster, frontProxy, etcd, serviceAccount])
    .apply(([cluster, frontProxy, etcd, { cert, key }]) => [
      ...authorityFiles("ca", cluster),
      { path: signingFile, mode: "0644", content: cluster.cert },
      ...authorityFiles("front-proxy-ca", frontProxy),
      ...authorityFiles("etcd/ca", etcd),
      { path: `${pki}/sa.pub`, mode: "0644", content: cert },
      { path: `${pki}/sa.key`, mode: "0600", content: key },
    ]);
};
