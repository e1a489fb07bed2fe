import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as compute from "@pulumi/azure-native/compute";
import { NodePatch } from "@pulumi/kubernetes/core/v1";
import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import { bootstrapScript } from "./bootstrap";
import { Certificates } from "./certificates";
import { ControlPlane } from "./control-plane";
import { JoinToken } from "./join-token";
import { proxyModules } from "./kube-proxy";
import { discoveryKubeconfig, kubeadmFiles } from "./kubeadm";
import { Machine } from "./machine";
import { Network } from "./network";
import { Plan } from "./plan";

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
   * Not a provider of this component: Pulumi would hold back all of it, machines too, until the provider's
   * kubeconfig is known, which is when the cluster is initialized.
   */
  readonly cluster: Provider;
}

/**
 * The worker pools. All machines are made and join side by side, but in a living cluster the existing ones
 * of a pool change one at a time, each after the one before it is a Ready node again.
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

    const lastOfPool = new Map<string, pulumi.Resource>();
    for (const worker of plan.workers) {
      const isLiving = plan.initialization.exists && azure.machines.has(worker.name);
      const order = plan.orders.get(worker.name)!;
      const before = [lastOfPool.get(worker.pool!) ?? []].flat();
      const machine = new Machine(
        {
          resourceGroup,
          settings,
          plan: worker,
          subnetId: network.subnetIds.get(worker.zone)!,
          customData: plan.customData,
          initialization: plan.initialization.id,
          order,
          after: isLiving ? [...controlPlane.steps, ...before] : [],
        },
        child,
      );
      this.machines.push(machine);

      const { token, resources } = new JoinToken(
        {
          resourceGroup,
          machine: worker.name,
          vmId: machine.vm.vmId,
          timeCreated: machine.vm.timeCreated,
          run: order.run,
          joinSecret: certificates.joinSecret,
        },
        inCluster,
      );
      const script = pulumi.all([token, certificates.cluster.cert]).apply(([bearer, caCert]) =>
        bootstrapScript({
          machine: worker.name,
          role: "worker",
          apiName: plan.apiServer.name,
          apiPort: plan.apiServer.port,
          kubernetesVersion: settings.kubernetesVersion,
          nodeAddress: worker.address,
          modules: proxyModules(settings),
          awaitsReady: settings.cni !== "none",
          files: [
            {
              path: "/etc/zoned/discovery.conf",
              mode: "0600",
              content: discoveryKubeconfig(plan.apiServer.name, caCert, bearer),
            },
            ...kubeadmFiles(settings, worker, plan.apiServer.name),
          ],
        }),
      );
      const step = machine.bootstrap({
        script,
        after: [nodeAddOns, network, ...resources],
      });
      this.steps.push(step);
      lastOfPool.set(worker.pool!, step);

      if (Object.keys(worker.labels).length > 0) {
        // A kubelet may not give itself every label, and labels change on a living node.
        new NodePatch(
          `${worker.name}-labels`,
          {
            metadata: {
              name: worker.name,
              labels: { ...worker.labels },
              // A replaced machine registers without them: this makes them come back.
              annotations: { "zoned/machine": machine.vm.vmId },
            },
          },
          { ...inCluster, deletedWith: resourceGroup, dependsOn: [step] },
        );
      }
    }
    this.registerOutputs();
  }
}
