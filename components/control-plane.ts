import * as compute from "@pulumi/azure-native/compute";
import * as pulumi from "@pulumi/pulumi";

import { Machine } from "./machine/machine";
import { Membership } from "./machine/membership";
import { ApiBalancer } from "./api-balancer";
import { payloadFor, plannedMachine } from "./bootstrap-payload";
import { Certificates } from "./certificates";
import type { ClusterGroup } from "./cluster-group";
import { Identity, type KubeletIdentity } from "./identity";
import { encryptionTag } from "./kubeadm/encryption";
import { tagOf } from "./kubeadm/rotations";
import { bootstrapScript } from "./machine/payload";
import { Network } from "./network";
import { fixedDigest } from "./plan/fixed-settings";
import { Plan } from "./plan/plan";
import { MachinePlan } from "./settings/topology";

interface ControlPlaneArgs {
  readonly resourceGroup: ClusterGroup;
  readonly plan: Plan;
  readonly network: Network;
  readonly api: ApiBalancer;
  readonly certificates: Certificates;
  readonly identity: Identity;
  readonly kubeletIdentity: KubeletIdentity;
}

/**
 * The type of the components that control planes are in: the same for all, so that a machine keeps
 * its URN when it is its turn to be the first.
 */
const controlPlaneType = "zoned:index:ControlPlane";

/** A machine in the cluster. */
export interface Member {
  readonly machine: Machine;
  /** Ends when the machine is a healthy member. */
  readonly step: compute.VirtualMachineExtension;
  readonly membership: Membership;
}

/**
 * @param previous the member in whose turn it follows: in a living cluster no machine is touched
 *   before the one before it is healthy again
 */
function makeControlPlane(
  machinePlan: MachinePlan,
  { plan, resourceGroup, network, api, identity, kubeletIdentity, certificates }: ControlPlaneArgs,
  parent: pulumi.Resource,
  previous?: Member,
): Machine {
  const { initialization } = plan;
  const { name } = machinePlan;
  // Of several that are lost, too, one joins after another.
  const isLiving =
    initialization.exists &&
    !initialization.isRestoring &&
    (plan.azure.machines.has(name) || plan.previous?.machines[name] !== undefined);
  return new Machine(
    {
      ...plannedMachine(machinePlan, plan, certificates),
      resourceGroup,
      subnetId: network.subnetIds.get(machinePlan.zone)!,
      poolId: api.poolId,
      identityIds: [
        plan.federation.isOnMachines ? identity.resourceId : undefined,
        kubeletIdentity.resourceId,
      ],
      endsWith: api.lastsAsCluster,
      initialization: initialization.id,
      after: isLiving && previous ? [previous.step, previous.membership] : [],
    },
    { parent },
  );
}

interface BootstrapArgs {
  readonly initialControlPlane: pulumi.Output<string>;
  readonly after: readonly pulumi.Resource[];
  /** Control planes leave one after another, the last in turn first, whichever of them stay. */
  readonly previous: readonly Member[];
}

function bootstrapControlPlane(
  machine: Machine,
  { plan, api, certificates, identity, kubeletIdentity }: ControlPlaneArgs,
  { initialControlPlane, after, previous }: BootstrapArgs,
): Member {
  const { settings, spec, initialization } = plan;
  const { encryptionKeys, cas, serviceAccountKeys } = spec;
  // What asks for no token waits for no identity.
  const asksAzure = settings.autoRepair || settings.etcdBackups?.container !== undefined;
  const client = asksAzure ? identity.credential.clientId : undefined;
  const { cluster, frontProxy, etcd, serviceAccount, encryptionSecret } = certificates;
  const script = pulumi
    .output({
      initialControlPlane,
      apiAddress: api.address,
      cas: { cluster, frontProxy, etcd },
      serviceAccount,
      encryptionSecret,
      kubeletFiles: machine.kubeletCertificate.files,
      kubeletClientId: kubeletIdentity.clientId ?? "",
      clientId: client ?? "",
    })
    .apply((values) =>
      bootstrapScript(payloadFor(machine.plan, plan, { role: "control-plane", ...values })),
    );
  const bootstrapped = machine.bootstrap({
    initialControlPlane,
    restoredFrom: initialization.restoredFrom,
    encryptionKeys: encryptionKeys && encryptionTag(encryptionKeys),
    cas: tagOf(cas),
    serviceAccountKeys: tagOf(serviceAccountKeys),
    fixed: fixedDigest(settings),
    script,
    after,
    outlives: previous.map(({ membership }) => membership),
  });
  return { machine, ...bootstrapped };
}

/**
 * The control plane that is the first in turn: it initializes the cluster. In a living cluster it is
 * the one that is not healthy, if there is one.
 */
export class InitialControlPlane extends pulumi.ComponentResource implements Member {
  readonly machine: Machine;
  readonly step: compute.VirtualMachineExtension;
  readonly membership: Membership;
  /** vmId of the machine that runs, or has run, `kubeadm init`. */
  readonly initialControlPlane: pulumi.Output<string>;
  /**
   * The other control planes' machines, by name, where the cluster is restored: while a machine of
   * the etcd before is left, two clusters might answer.
   */
  readonly replaced: ReadonlyMap<string, Machine>;

  constructor(name: string, args: ControlPlaneArgs, opts?: pulumi.ComponentResourceOptions) {
    super(controlPlaneType, name, {}, opts);
    const { initialization, turns } = args.plan;
    const [first, ...others] = turns;

    const machine = makeControlPlane(first!, args, this);
    const isInitialized = initialization.exists && !initialization.isRestoring;
    this.initialControlPlane = isInitialized
      ? pulumi.output(initialization.initialControlPlane ?? "nobody")
      : machine.vm.vmId;
    this.replaced = new Map(
      (initialization.isRestoring ? others : []).map((one) => [
        one.name,
        makeControlPlane(one, args, this),
      ]),
    );
    const { step, membership } = bootstrapControlPlane(machine, args, {
      initialControlPlane: this.initialControlPlane,
      after: [args.api, args.network, ...[...this.replaced.values()].map(({ vm }) => vm)],
      previous: [],
    });
    this.machine = machine;
    this.step = step;
    this.membership = membership;
    this.registerOutputs();
  }

  /**
   * Signals that the API answers, so that objects can be applied. The state of a
   * step that has failed is unknown until it has run again.
   */
  get initialized(): pulumi.Output<string> {
    return this.step.provisioningState;
  }
}

export interface JoiningControlPlanesArgs extends ControlPlaneArgs {
  readonly initial: InitialControlPlane;
  /** What makes nodes Ready: a join ends when its node is. */
  readonly nodeAddOns: pulumi.Resource;
}

/**
 * All control planes but the first. They join one after another, since etcd admits one learner at a
 * time.
 *
 * On the first update all machines are made side by side. In a living cluster each waits until the
 * one before it is a healthy member again, so that never two are gone together.
 */
export class JoiningControlPlanes extends pulumi.ComponentResource {
  readonly members: readonly Member[];

  constructor(
    name: string,
    { initial, nodeAddOns, ...args }: JoiningControlPlanesArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super(controlPlaneType, name, {}, opts);
    const { initialControlPlane, replaced } = initial;
    const previous: Member[] = [initial];
    for (const plan of args.plan.turns.slice(1)) {
      const last = previous.at(-1)!;
      const machine = replaced.get(plan.name) ?? makeControlPlane(plan, args, this, last);
      const after = [nodeAddOns, last.step];
      previous.push(bootstrapControlPlane(machine, args, { initialControlPlane, after, previous }));
    }
    this.members = previous.slice(1);
    this.registerOutputs();
  }
}
