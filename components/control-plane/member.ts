import * as compute from "@pulumi/azure-native/compute";
import * as pulumi from "@pulumi/pulumi";

import { ApiBalancer } from "../api-balancer";
import { payloadFor } from "../bootstrap-payload";
import { Certificates } from "../certificates";
import type { ClusterGroup } from "../cluster-group";
import { Identity, type KubeletIdentity } from "../identity";
import { encryptionTag } from "../kubeadm/encryption";
import { tagOf } from "../kubeadm/rotation";
import { Machine } from "../machine/machine";
import { Membership } from "../machine/membership";
import { bootstrapScript } from "../machine/payload";
import { Network } from "../network";
import { Plan } from "../plan/plan";
import { plannedMachine } from "../planned-machine";
import { MachinePlan } from "../settings/topology";

export interface ControlPlaneArgs {
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
export const controlPlaneType = "zoned:index:ControlPlane";

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
export function makeControlPlane(
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

export function bootstrapControlPlane(
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
    script,
    after,
    outlives: previous.map(({ membership }) => membership),
  });
  return { machine, ...bootstrapped };
}
