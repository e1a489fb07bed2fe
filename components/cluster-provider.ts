import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import { ControlPlane } from "./control-plane";
import { numberOf } from "./plan/initialization";
import { clusterIdOf } from "./plan/machine-changes";
import { Plan } from "./plan/plan";

/**
 * What applies objects to the cluster. Another initialization is another cluster, with a provider
 * of its own: everything in it is made anew, and what is gone with the old one is not asked to be
 * deleted.
 *
 * In a living cluster objects are applied once its first control plane is as it shall be; if that
 * one alone is restarted, there is no API meanwhile.
 */
export function clusterProvider(
  kubeconfig: pulumi.Output<string>,
  { apiServer, initialization: { id, exists } }: Plan,
  controlPlane: ControlPlane,
): Provider {
  const number = numberOf(id);
  const provider = new Provider(
    number === 1 ? "kubernetes" : `kubernetes-${number}`,
    {
      kubeconfig,
      clusterIdentifier: `${apiServer.name}/${clusterIdOf(id)}`,
      // What was made and not recorded is taken up again; all these objects are the program's
      // alone.
      upsertExistingObjects: true,
      enablePatchForce: true,
    },
    { dependsOn: exists ? controlPlane.steps.slice(0, 1) : [] },
  );
  pulumi.runtime.registerStackTransformation(({ type, props, opts }) =>
    type.startsWith("kubernetes:")
      ? { props, opts: { ...opts, deletedWith: provider } }
      : undefined,
  );
  return provider;
}
