import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import { ControlPlane } from "./control-plane";
import { numberOf } from "./initialization";
import { Plan } from "./plan";

/**
 * What applies objects to the cluster. Another initialization is another cluster, with a provider of its own,
 * so that everything in it is made anew.
 *
 * In a living cluster objects are applied once its first control plane is as it shall be; if that one alone is
 * restarted, there is no API meanwhile.
 */
export function clusterProvider(
  kubeconfig: pulumi.Output<string>,
  { apiServer, initialization: { id, exists } }: Plan,
  controlPlane: ControlPlane,
): Provider {
  // What is made anew has the name of what it replaces, and in the new cluster there is nothing yet to delete.
  pulumi.runtime.registerStackTransformation(({ type, props, opts }) =>
    type.startsWith("kubernetes:")
      ? { props, opts: { ...opts, deleteBeforeReplace: true } }
      : undefined,
  );
  const number = numberOf(id);
  return new Provider(
    number === 1 ? "kubernetes" : `kubernetes-${number}`,
    {
      kubeconfig,
      clusterIdentifier: `${apiServer.name}/${id}`,
      // What was made and not recorded is taken up again; all these objects are the program's alone.
      upsertExistingObjects: true,
      enablePatchForce: true,
    },
    { dependsOn: exists ? controlPlane.steps.slice(0, 1) : [] },
  );
}
