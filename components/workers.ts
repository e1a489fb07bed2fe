import { NodePatch } from "@pulumi/kubernetes/core/v1";
import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import type { ApiBalancer } from "./api-balancer";
import { payloadFor, plannedMachine } from "./bootstrap-payload";
import { Certificates } from "./certificates";
import type { ClusterGroup } from "./cluster-group";
import { Member } from "./control-plane";
import type { KubeletIdentity } from "./identity";
import { bootstrapScript } from "./machine/payload";
import { JoinToken } from "./machine/join-token";
import { Machine } from "./machine/machine";
import { Network } from "./network";
import { clusterIdOf } from "./plan/machine-changes";
import { Plan } from "./plan/plan";
import type { MachinePlan } from "./settings/topology";

export interface WorkersArgs {
  readonly resourceGroup: ClusterGroup;
  readonly plan: Plan;
  readonly network: Network;
  readonly api: Pick<ApiBalancer, "lastsAsCluster">;
  readonly certificates: Certificates;
  readonly kubeletIdentity: KubeletIdentity;
  /** What makes nodes Ready: a join ends when its node is. */
  readonly nodeAddOns: pulumi.Resource;
  /** Machines of a living cluster are replaced after its own. */
  readonly controlPlanes: readonly Member[];
  /**
   * Not a provider of this component: Pulumi would hold back all of it, machines too, until the
   * provider's kubeconfig is known, which is when the cluster is initialized.
   */
  readonly cluster: Provider;
}

/**
 * The worker pools. All machines are made and join side by side, but in a living cluster the
 * existing ones of a pool change one at a time (`maxUnavailable`), after the control plane, each when one before it is a Ready node again.
 * As many leave at a time when several are removed.
 */
export class Workers extends pulumi.ComponentResource {
  readonly members: readonly Member[];

  constructor(name: string, args: WorkersArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Workers", name, {}, opts);
    const { plan, resourceGroup, network, api, certificates, kubeletIdentity } = args;
    const { nodeAddOns, controlPlanes } = args;
    const { settings, azure } = plan;
    const child = { parent: this };
    const inCluster = { ...child, provider: args.cluster };

    const members: Member[] = [];
    const pools = new Map<string, readonly Member[]>();
    const existsAlready = ({ name }: MachinePlan) =>
      plan.initialization.exists && azure.machines.has(name);
    // Those that exist come first, so that no change of theirs waits for a join.
    const workers = [...plan.workers].sort(
      (a, b) => Number(existsAlready(b)) - Number(existsAlready(a)),
    );
    for (const worker of workers) {
      const isLiving = existsAlready(worker);
      const record = plan.machineRecords.get(worker.name)!;
      const pool = pools.get(worker.pool!) ?? [];
      const { maxUnavailable } = settings.workerPools.find(({ name }) => name === worker.pool)!;
      // Of these one at a time may be gone.
      const before = pool.filter((_, index) => (pool.length - index) % maxUnavailable === 0);
      // No kubelet may be newer than an API server, and no more of a pool's machines may change at
      // a time than it can do without.
      const inTurn = plan.initialization.exists
        ? [
            ...controlPlanes.map(({ step }) => step),
            ...(isLiving ? before.slice(-1) : []).flatMap(({ step, membership }) => [
              step,
              membership,
            ]),
          ]
        : [];
      const machine = new Machine(
        {
          ...plannedMachine(worker, plan, certificates),
          resourceGroup,
          subnetId: network.subnetIds.get(worker.zone)!,
          identityIds: [kubeletIdentity.resourceId],
          endsWith: api.lastsAsCluster,
          initialization: clusterIdOf(plan.initialization.id),
          // What is gone of it leaves the cluster first, by the API.
          after: isLiving || plan.initialization.isRestoring ? inTurn : [],
        },
        child,
      );
      const { token, resources } = new JoinToken(
        {
          machine: worker.name,
          run: record.bootstrapRequestedAt,
          joinSecret: certificates.joinSecret,
        },
        inCluster,
      );
      const script = pulumi
        .output({
          caCerts: certificates.cluster.trusted,
          joinToken: token,
          kubeletFiles: machine.kubeletCertificate.files,
          kubeletClientId: kubeletIdentity.clientId ?? "",
        })
        .apply((values) =>
          bootstrapScript(payloadFor(worker, plan, { role: "worker", ...values })),
        );
      const { step, membership } = machine.bootstrap({
        script,
        after: [nodeAddOns, network, ...resources, ...inTurn],
        // The engine deletes by the dependencies in the state, and of these by direct ones alone: a
        // machine between two that go may stay.
        outlives: before.map((one) => one.membership),
      });
      const member = { machine, step, membership };
      members.push(member);
      // Nothing waits for a machine that Azure may have no capacity for.
      if (!machine.isSpare) pools.set(worker.pool!, [...pool, member]);

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
    this.members = members;
    this.registerOutputs();
  }
}

/**
 * The id of a machine, unknown to a preview until its step has run: there may be no Node before
 * that, and the Kubernetes provider refuses to preview a change of one that is not there.
 */
const afterStep = ({ vm }: Machine, step: Member["step"]): pulumi.Output<string> =>
  pulumi.all([vm.vmId, step.provisioningState]).apply(([vmId]) => vmId);
