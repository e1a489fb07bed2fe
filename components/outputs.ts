import * as pulumi from "@pulumi/pulumi";

import type { AddOns } from "./add-ons/add-ons";
import { balancerDigest } from "./api-balancer";
import type { Certificates } from "./certificates";
import type { ClusterGroup } from "./cluster-group";
import { InitialControlPlane, Member } from "./control-plane";
import { encryptionTag } from "./kubeadm/encryption";
import { serverOf } from "./api-server";
import { isKnown, loginKubeconfig } from "./kubeconfig";
import { issuerOf } from "./settings/logins";
import { tag } from "./azure/state";
import { pastKeys } from "./plan/rotations";
import { fixedSettings } from "./plan/fixed-settings";
import type { PreviousOutputs } from "./plan/machine-changes";
import { Plan } from "./plan/plan";
import { type MachinePlan, zoneLabelOf } from "./settings/topology";
import type { WorkloadIdentities } from "./workload-identities";

/** The outputs of a stack, grouped by who needs it. */
export function outputsOf(
  plan: Plan,
  resourceGroup: ClusterGroup,
  kubeconfig: pulumi.Output<string>,
  certificates: Pick<Certificates, "cluster">,
  { initialControlPlane }: Pick<InitialControlPlane, "initialControlPlane">,
  members: readonly Pick<Member, "machine" | "step">[],
  { clients, published }: Pick<WorkloadIdentities, "clients" | "published">,
  { workloads }: Pick<AddOns, "workloads">,
) {
  const { entra } = plan.settings;
  const { encryptionKeys } = plan.spec;
  const outputs: PreviousOutputs = {
    initialization: plan.initialization.id,
    subscriptionId: plan.subscriptionId,
    controlPlanes: plan.controlPlanes.length,
    etcdBackups: plan.settings.etcdBackups?.every,
    issuer: entra && issuerOf(entra, plan.settings),
    restoreFrom: plan.settings.restoreFrom || undefined,
    identityId: plan.settings.identityId || undefined,
    kubeletIdentityId: plan.settings.kubeletIdentityId || undefined,
    settings: fixedSettings(plan.settings),
    encryptionKeys,
    cas: plan.spec.cas,
    serviceAccountKeys: plan.spec.serviceAccountKeys,
    tokenIssuers: plan.spec.tokenIssuers,
    isFederated: plan.federation.isUsed ? true : undefined,
    ownEncryption: encryptionKeys === undefined ? true : undefined,
    pastEncryptionKeys: encryptionKeys === undefined ? pastKeys(plan.previous) : undefined,
    apiAddress: plan.apiAddress,
    balancer: balancerDigest(),
    diskDriver: plan.settings.diskDriver ? true : undefined,
    addOns: workloads,
    storageClasses: plan.diskClasses.map(({ name }) => name),
    tags: Object.keys(plan.settings.tags),
    machines: Object.fromEntries(plan.machineRecords),
  };
  const awaited = members.filter(({ machine }) => !machine.isSpare);
  const whole = pulumi
    .all([
      initialControlPlane,
      pulumi.all(awaited.map(({ step }) => pulumi.all([step.id, step.tags]))),
      // With --continue-on-error steps end well beside a blob that does not: Entra would not know the key that is to sign next.
      published,
    ])
    .apply(([id, done]): PreviousOutputs | undefined => {
      const left = leftOut(
        plan,
        awaited.map(({ machine }) => machine.plan),
        done,
      );
      if (left.length === 0) return { ...outputs, initialControlPlane: id };
      void pulumi.log.warn(
        `this update has left out the steps of ${left.join(", ")}, by --target or --exclude, so that its outputs remember ` +
          "the last update that did not. Run pulumi up without them",
      );
      return plan.previous;
    });
  return {
    // for users of the cluster
    kubeconfig,
    ...(entra && { loginKubeconfig: loginKubeconfig(entra, plan, certificates) }),
    apiAddress: serverOf(plan.apiServer),
    // Nothing of this program reads it: for those who write annotations or variables of their own.
    ...(plan.settings.workloadIdentities.length > 0 && { workloadIdentities: clients }),
    // for its operators
    machines: [...plan.controlPlanes, ...plan.workers].map(({ name, role, zone, address }) => ({
      name,
      role,
      zone: zoneLabelOf(plan.settings, zone),
      address,
      kubeletCertificateUntil: members.find(({ machine }) => machine.plan.name === name)!.machine
        .kubeletCertificate.validUntil,
    })),
    resourceGroup: resourceGroup.name,
    // for the next `pulumi up` of this stack, and only when all machines have joined but new spot ones; see plan.ts
    cluster: isKnown(whole).apply((known) =>
      known || isFirstPreview(plan) ? whole : pulumi.output(plan.previous),
    ),
  };
}

/** Nothing is remembered yet, and an output that is undefined would be warned of. */
const isFirstPreview = ({ previous }: Plan): boolean =>
  previous === undefined && pulumi.runtime.isDryRun();

type Done = readonly [id: string, tags: Readonly<Record<string, string>> | undefined];

/**
 * Machines whose steps are not those that were ordered: the engine answers with the state of before
 * for what `--target` or `--exclude` leaves out.
 */
function leftOut(plan: Plan, machines: readonly MachinePlan[], done: readonly Done[]): string[] {
  return machines
    .filter(({ name, role }) => {
      const path = `/virtualmachines/${name}/`;
      const tags = done.find(([id]) => id.toLowerCase().includes(path))?.[1] ?? {};
      const { bootstrapRequestedAt, kubernetesVersion, configuration } =
        plan.machineRecords.get(name)!;
      const keys = role === "control-plane" ? plan.spec.encryptionKeys : undefined;
      return (
        tags[tag.bootstrapRequestedAt] !== bootstrapRequestedAt ||
        tags[tag.kubernetes] !== kubernetesVersion ||
        tags[tag.configuration] !== configuration ||
        (keys !== undefined && tags[tag.encryptionKeys] !== encryptionTag(keys))
      );
    })
    .map(({ name }) => name);
}
