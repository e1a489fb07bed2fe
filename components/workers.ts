import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as compute from "@pulumi/azure-native/compute";
import { NodePatch } from "@pulumi/kubernetes/core/v1";
import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import { Certificates } from "./certificates";
import { ControlPlane } from "./control-plane";
import { areTaken } from "./kubeadm/certificate-authorities";
import { proxyModules } from "./kubeadm/kube-proxy";
import { discoveryKubeconfig, kubeadmFiles } from "./kubeadm/kubeadm";
import { adminKubeconfig } from "./kubeconfig";
import { firstBootFiles } from "./machine/custom-data";
import { bootstrapScript } from "./machine/payload";
import { JoinToken } from "./machine/join-token";
import { Machine } from "./machine/machine";
import { Network } from "./network";
import { clusterIdOf } from "./plan/machine-changes";
import { Plan } from "./plan/plan";

export interface WorkersArgs {
  readonly resourceGroup: ResourceGroup;
  readonly plan: Plan;
  readonly network: Network;
  readonly certificates: Certificates;
  /** What makes nodes Ready: a join ends when its node is. */
  readonly nodeAddOns: pulumi.Resource;
  /** Machines of a living cluster are replaced after its own. */
  readonly controlPlane: ControlPlane;
  /**
   * Not a provider of this component: Pulumi would hold back all of it, machines too, until the
   * provider's kubeconfig is known, which is when the cluster is initialized.
   */
  readonly cluster: Provider;
}

/**
 * The worker pools. All machines are made and join side by side, but in a living cluster the
 * existing ones of a pool change one at a time (`maxUnavailable`), after the control plane, each when one before it is a Ready node again.
 */
export class Workers extends pulumi.ComponentResource {
  readonly machines: Machine[] = [];
  readonly steps: compute.VirtualMachineExtension[] = [];

  constructor(name: string, args: WorkersArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Workers", name, {}, opts);
    const { plan, resourceGroup, network, certificates, nodeAddOns, controlPlane } = args;
    const { settings, azure } = plan;
    const child = { parent: this };
    const inCluster = { ...child, provider: args.cluster };

    const stepsOfPool = new Map<string, (readonly pulumi.Resource[])[]>();
    for (const worker of plan.workers) {
      const isLiving = plan.initialization.exists && azure.machines.has(worker.name);
      const record = plan.machineRecords.get(worker.name)!;
      const pool = stepsOfPool.get(worker.pool!) ?? [];
      const { maxUnavailable } = settings.workerPools.find(({ name }) => name === worker.pool)!;
      // No kubelet may be newer than an API server, and no more of a pool's machines may change at
      // a time than it can do without.
      const inTurn = plan.initialization.exists
        ? [...controlPlane.steps, ...((isLiving && pool.at(-maxUnavailable)) || [])]
        : [];
      const machine = new Machine(
        {
          resourceGroup,
          settings,
          plan: worker,
          subnetId: network.subnetIds.get(worker.zone)!,
          customData: plan.customData,
          retained: plan.retained.has(worker.name),
          current: azure.machines.get(worker.name),
          deallocates: plan.deallocated.has(worker.name),
          starts: plan.started.has(worker.name),
          stepRefusal: plan.stepRefusals.get(worker.name),
          accelerated: plan.accelerated.has(worker.name),
          initialization: clusterIdOf(plan.initialization.id),
          record,
          certificates,
          kubeconfig: adminKubeconfig(plan, certificates),
          after: isLiving ? inTurn : [],
        },
        child,
      );
      this.machines.push(machine);

      const { token, resources } = new JoinToken(
        {
          machine: worker.name,
          run: record.bootstrapRequestedAt,
          joinSecret: certificates.joinSecret,
        },
        inCluster,
      );
      const script = pulumi
        .all([token, certificates.cluster.trusted, machine.kubeletCertificate.files])
        .apply(([bearer, caCert, kubeletFiles]) =>
          bootstrapScript({
            machine: worker.name,
            role: "worker",
            apiName: plan.apiServer.name,
            apiPort: plan.apiServer.port,
            kubernetesVersion: settings.kubernetesVersion,
            configuration: record.configuration,
            takesAuthorities: areTaken(plan.spec.cas),
            drainMinutes: settings.drainMinutes,
            nodeAddress: worker.address,
            modules: proxyModules(settings),
            awaitsReady: settings.cni !== "none",
            files: [
              {
                path: "/etc/zoned/discovery.conf",
                mode: "0600",
                content: discoveryKubeconfig(plan.apiServer.name, caCert, bearer),
              },
              ...kubeletFiles,
              ...firstBootFiles(settings),
              ...kubeadmFiles(plan.spec, worker),
            ],
          }),
        );
      const { step, membership } = machine.bootstrap({
        script,
        after: [nodeAddOns, network, ...resources, ...inTurn],
      });
      this.steps.push(step);
      if (isLiving) stepsOfPool.set(worker.pool!, [...pool, [step, membership]]);

      const joined = azure.machines.get(worker.name)?.bootstrap?.state === "Succeeded";
      // A kubelet may not give itself every label, and labels change on a living node. It is there
      // also without labels, which are then taken away by its update: deleted, it would be applied
      // once more, and that makes a Node where there is none any more.
      new NodePatch(
        `${worker.name}-labels`,
        {
          metadata: {
            name: worker.name,
            labels: { ...worker.labels },
            // A replaced machine registers without them: this makes them come back.
            annotations: { "zoned/machine": joined ? machine.vm.vmId : afterStep(machine, step) },
          },
        },
        { ...inCluster, dependsOn: [step], retainOnDelete: true },
      );
    }
    this.registerOutputs();
  }
}

/**
 * The id of a machine, unknown to a preview until its step has run: there may be no Node before
 * that, and the Kubernetes provider refuses to preview a change of one that is not there.
 */
const afterStep = ({ vm }: Machine, step: compute.VirtualMachineExtension): pulumi.Output<string> =>
  pulumi.all([vm.vmId, step.provisioningState]).apply(([vmId]) => vmId);
