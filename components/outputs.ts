import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { serverOf } from "./kubeconfig";
import { fixedSettings } from "./plan/fixed-settings";
import { Memory } from "./plan/machine-changes";
import { Plan } from "./plan/plan";
import { proxyDigest } from "./plan/proxy-roll-out";

/** The outputs of a stack, grouped by who needs it. */
export function outputsOf(
  plan: Plan,
  resourceGroup: ResourceGroup,
  kubeconfig: pulumi.Output<string>,
  initialControlPlane: pulumi.Output<string>,
  steps: readonly pulumi.CustomResource[],
) {
  const memory: Memory = {
    initialization: plan.initialization.id,
    controlPlanes: plan.controlPlanes.length,
    etcdBackups: plan.settings.etcdBackups?.every,
    settings: fixedSettings(plan.settings),
    kubeletCertificates: true,
    secretsKeys: plan.secretsKeys,
    ownEncryption: plan.secretsKeys === undefined ? true : undefined,
    kubeProxy: proxyDigest(plan.settings),
    machines: Object.fromEntries(plan.orders),
  };
  return {
    // for whoever uses the cluster
    kubeconfig,
    apiAddress: serverOf(plan.apiServer),
    // for whoever looks after it
    machines: [...plan.controlPlanes, ...plan.workers].map(({ name, role, zone, address }) => ({
      name,
      role,
      zone: `${plan.settings.location}-${zone}`,
      address,
    })),
    resourceGroup: resourceGroup.name,
    // for the next `pulumi up` of this stack, and only when all machines have joined; see plan.ts
    cluster: pulumi
      .all([initialControlPlane, ...steps.map(({ id }) => id)])
      .apply(([id]): Memory => ({ ...memory, initialControlPlane: id })),
  };
}
