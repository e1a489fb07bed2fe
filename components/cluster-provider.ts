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
      kubeconfig: ofRestoration(kubeconfig, id),
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

/**
 * The provider asks once whether there is an API, when it is configured, and the engine configures
 * one that has not changed before the control plane is back. So a restored cluster's differs from
 * the one before; since the identifier does not, no object is made anew for that.
 */
const ofRestoration = (kubeconfig: pulumi.Output<string>, id: string): pulumi.Output<string> =>
  id === clusterIdOf(id)
    ? kubeconfig
    : kubeconfig.apply((text) =>
        JSON.stringify({
          ...JSON.parse(text),
          extensions: [{ name: "zoned", extension: { restoration: id } }],
        }),
      );
