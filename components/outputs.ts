import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { Memory } from "./founding";
import { serverOf } from "./kubeconfig";
import { Plan } from "./plan";

/** What a stack tells, grouped by who needs it. */
export function outputsOf(
  plan: Plan,
  resourceGroup: ResourceGroup,
  kubeconfig: pulumi.Output<string>,
  steps: readonly pulumi.CustomResource[],
) {
  const memory: Memory = {
    founded: true,
    kubernetesVersion: plan.settings.kubernetesVersion,
    controlPlanes: plan.controlPlanes.length,
    proxyMode: plan.settings.proxyMode,
    ...(plan.proxyModeBefore !== undefined && { proxyModeBefore: plan.proxyModeBefore }),
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
    // for the next `pulumi up` of this stack, and only when all machines have joined; see founding.ts
    cluster: pulumi.all(steps.map(({ id }) => id)).apply(() => memory),
  };
}
