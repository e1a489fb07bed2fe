import type { AzureResources } from "./azure";
import type { Balancer } from "./balancers";
import type { ClusterAnswer } from "./cluster";
import type { Machine } from "./machines";
import { waitingServices } from "./services";

/** What is not healthy and is drawn nowhere else. */
export interface Problem {
  readonly about: string;
  readonly saw: string;
}

/** Problems of the cluster and of resources, beside those of machines. */
export function problemsBeside(
  machines: readonly Machine[],
  balancers: readonly Balancer[],
  azure: AzureResources,
  { report, objects }: ClusterAnswer,
): Problem[] {
  const ofCluster = report.checks.flatMap(({ name, problems }) =>
    problems
      .filter(({ machine }) => !machines.some((one) => one.name === machine))
      .map(({ machine, saw }): Problem => ({ about: machine ?? name, saw })),
  );
  const waiting = waitingServices(objects?.services ?? []).map((about): Problem => ({
    about,
    saw: "this Service waits for a load balancer",
  }));
  const emptyPools = balancers.flatMap(({ name, pools }) =>
    pools
      .filter(({ members }) => members.length === 0)
      .map((pool): Problem => ({ about: name, saw: `no machine is in its pool ${pool.name}` })),
  );
  return [...ofCluster, ...waiting, ...failed(azure), ...emptyPools];
}

/** Resources that Azure has accepted, and then failed to make or change. */
const failed = (azure: AzureResources): Problem[] =>
  [
    ...azure.interfaces,
    ...azure.networks,
    ...azure.gateways,
    ...azure.addresses,
    ...azure.balancers,
    ...azure.disks,
  ]
    .filter(({ properties }) => properties.provisioningState === "Failed")
    .map(({ name }) => ({ about: name, saw: "Azure has failed to make or change it" }));
