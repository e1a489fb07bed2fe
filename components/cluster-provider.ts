import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";

import { Member } from "./control-plane";
import { kubeconfigToApplyBy } from "./kubeconfig";
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
  plan: Plan,
  initial: Pick<Member, "step">,
): Provider {
  const { apiServer, initialization } = plan;
  const { id, exists, isRestoring = false } = initialization;
  const number = numberOf(id);
  const asksNobody = isRestoring && pulumi.runtime.isDryRun();
  if (asksNobody) {
    void pulumi.log.info(
      "this preview asks no API, since the cluster is still to be restored: what it says of objects in the cluster is by Pulumi's state alone",
    );
  }
  const provider = new Provider(
    number === 1 ? "kubernetes" : `kubernetes-${number}`,
    {
      kubeconfig: ofRestoration(kubeconfigToApplyBy(kubeconfig, plan), id, asksNobody),
      clusterIdentifier: `${apiServer.name}/${clusterIdOf(id)}`,
      // What was made and not recorded is taken up again; all these objects are the program's
      // alone.
      upsertExistingObjects: true,
      enablePatchForce: true,
      // Without these an object whose data change is deleted first: pods that start in between get no token
      // of their identity, and the cloud provider and the disk driver find no configuration.
      enableConfigMapMutable: true,
      enableSecretMutable: true,
    },
    { dependsOn: exists ? [initial.step] : [] },
  );
  pulumi.runtime.registerStackTransformation(({ type, props, opts }) =>
    type.startsWith("kubernetes:")
      ? { props, opts: { ...opts, deletedWith: provider } }
      : undefined,
  );
  return provider;
}

/** Where nobody answers, at once. */
const nowhere = "https://127.0.0.1:1";

/**
 * The provider asks once whether there is an API, when it is configured, and the engine configures
 * one that has not changed before the control plane is back. So a restored cluster's differs from
 * the one before; since the identifier does not, no object is made anew for that.
 *
 * Where a snapshot is still to be restored, a preview asks nobody: behind the balancer there is no
 * machine, or one whose etcd goes, and a balancer without machines drops what it gets, so that the
 * provider would wait for its limit. A preview goes on without an API. It is not made unknown, which would
 * show every object as changed.
 */
const ofRestoration = (
  kubeconfig: pulumi.Output<string>,
  id: string,
  asksNobody: boolean,
): pulumi.Output<string> =>
  id === clusterIdOf(id)
    ? kubeconfig
    : kubeconfig.apply((text) => {
        const { clusters, ...rest } = JSON.parse(text) as Kubeconfig;
        return JSON.stringify({
          ...rest,
          clusters: asksNobody
            ? clusters.map(({ name, cluster }) => ({
                name,
                cluster: { ...cluster, server: nowhere },
              }))
            : clusters,
          extensions: [{ name: "zoned", extension: { restoration: id } }],
        });
      });

interface Kubeconfig {
  readonly clusters: readonly { readonly name: string; readonly cluster: object }[];
}
