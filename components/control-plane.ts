import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as compute from "@pulumi/azure-native/compute";
import * as pulumi from "@pulumi/pulumi";

import { ApiBalancer } from "./api-balancer";
import { bootstrapScript, PayloadFile } from "./bootstrap";
import { Certificates } from "./certificates";
import { Identity } from "./identity";
import { kubeadmFiles } from "./kubeadm";
import { proxyModules } from "./kube-proxy";
import { Machine } from "./machine";
import { Network } from "./network";
import { Plan } from "./plan";

export interface ControlPlaneArgs {
  readonly resourceGroup: ResourceGroup;
  readonly plan: Plan;
  readonly network: Network;
  readonly api: ApiBalancer;
  readonly certificates: Certificates;
  readonly identity: Identity;
}

/**
 * The machines that run etcd and the API. The first one founds the cluster; the others join one after
 * another, since etcd admits one learner at a time.
 *
 * On the first `up` all machines are made side by side. In a founded cluster each waits until the one
 * before it is a healthy member again, so that never two are gone together.
 */
export class ControlPlane extends pulumi.ComponentResource {
  readonly machines: Machine[] = [];
  /** Bootstrap steps in the order in which they run. */
  readonly steps: compute.VirtualMachineExtension[] = [];
  private readonly args: ControlPlaneArgs;
  private readonly founder: pulumi.Output<string>;

  constructor(name: string, args: ControlPlaneArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:ControlPlane", name, {}, opts);
    this.args = args;
    const { founding } = args.plan;

    const first = this.machine(0);
    this.founder = founding.founded ? pulumi.output(founding.founder ?? "nobody") : first.vm.vmId;
    this.step(first, [args.api, args.network]);
    this.registerOutputs();
  }

  /** Ends when the API answers; from then on there is a cluster to apply things to. */
  get founded(): pulumi.Output<string> {
    const step = this.steps[0]!;
    // A step that failed has an id all the same; its state is unknown until it has run again.
    return this.args.plan.founding.founded ? step.id : step.provisioningState;
  }

  /**
   * Makes all machines but the first.
   *
   * @param nodeAddOns what makes nodes Ready, since a step ends when its node is
   */
  join(nodeAddOns: pulumi.Resource): void {
    const { plan } = this.args;
    for (let index = 1; index < plan.controlPlanes.length; index++) {
      this.step(this.machine(index), [nodeAddOns, ...this.steps.slice(-1)]);
    }
  }

  private machine(index: number): Machine {
    const { plan, resourceGroup, network, api, identity } = this.args;
    const machinePlan = plan.controlPlanes[index]!;
    const replaces = plan.founding.founded && plan.azure.machines.has(machinePlan.name);
    const machine = new Machine(
      {
        resourceGroup,
        settings: plan.settings,
        plan: machinePlan,
        subnetId: network.subnetIds.get(machinePlan.zone)!,
        poolId: api.poolId,
        identityId: identity.resourceId,
        customData: plan.customData,
        after: replaces ? this.steps.slice(-1) : [],
      },
      { parent: this },
    );
    this.machines.push(machine);
    return machine;
  }

  private step(machine: Machine, after: readonly pulumi.Resource[]): void {
    const { plan, certificates } = this.args;
    const script = pulumi.all([this.founder, pkiFiles(certificates)]).apply(([founder, pki]) =>
      bootstrapScript({
        machine: machine.plan.name,
        role: "control-plane",
        founder,
        apiName: plan.apiServer.name,
        apiPort: plan.apiServer.port,
        kubernetesVersion: plan.settings.kubernetesVersion,
        nodeAddress: machine.plan.address,
        modules: proxyModules(plan.settings),
        awaitsReady: plan.settings.cni !== "none",
        files: [...pki, ...kubeadmFiles(plan.settings, machine.plan, plan.apiServer.name)],
      }),
    );
    this.steps.push(
      machine.bootstrap({
        facts: plan.azure.machines.get(machine.plan.name),
        now: plan.now,
        founder: this.founder,
        script,
        after,
      }),
    );
  }
}

/** What kubeadm finds in its certificate directory and therefore does not make itself. */
const pkiFiles = (certificates: Certificates): pulumi.Output<PayloadFile[]> => {
  const { cluster, frontProxy, etcd, serviceAccount } = certificates;
  return pulumi.all([cluster, frontProxy, etcd, serviceAccount]).apply((pairs) =>
    ["ca", "front-proxy-ca", "etcd/ca", "sa"].flatMap((stem, index) => {
      const path = `/etc/kubernetes/pki/${stem}`;
      const { cert, key } = pairs[index]!;
      return [
        { path: `${path}.${stem === "sa" ? "pub" : "crt"}`, mode: "0644", content: cert },
        { path: `${path}.key`, mode: "0600", content: key },
      ];
    }),
  );
};
