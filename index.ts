import { ResourceGroup } from "@pulumi/azure-native/resources";

import { keepAdditions } from "./components/azure/additions";
import { AddOns } from "./components/add-ons/add-ons";
import { NodeAddOns } from "./components/add-ons/node-add-ons";
import { ApiBalancer } from "./components/api-balancer";
import { Certificates } from "./components/certificates";
import { clusterProvider } from "./components/cluster-provider";
import { ControlPlane } from "./components/control-plane";
import { Identity } from "./components/identity";
import { kubeconfigOf } from "./components/kubeconfig";
import { Network } from "./components/network";
import { outputsOf } from "./components/outputs";
import { makePlan } from "./components/plan/plan";
import { loadSettings } from "./components/settings/load";
import { explainRefusals } from "./components/azure/refusals";
import { Roles } from "./components/roles";
import { Workers } from "./components/workers";

export = async () => {
  const settings = loadSettings();
  const plan = await makePlan(settings);
  await explainRefusals(settings);
  keepAdditions(settings.clusterName, plan.shown);

  const roles = new Roles("identity", plan);
  const resourceGroup = new ResourceGroup(
    "cluster",
    { resourceGroupName: settings.clusterName, location: settings.location },
    { protect: settings.protect, dependsOn: [roles] },
  );
  const shared = { resourceGroup, roles, ...plan };
  const network = new Network("network", shared);
  const api = new ApiBalancer("api", shared);
  const certificates = new Certificates("pki", plan.spec.cas);
  const identity = new Identity("identity", shared);

  const parts = { resourceGroup, plan, network, certificates };
  const controlPlane = new ControlPlane("control-plane", { ...parts, api, identity });
  identity.grant(controlPlane.machines[0]!.vm);
  const kubeconfig = kubeconfigOf(controlPlane.initialized, plan, certificates);
  const cluster = clusterProvider(kubeconfig, plan, controlPlane);

  const nodeAddOns = new NodeAddOns("node-add-ons", shared, { provider: cluster });
  controlPlane.join(nodeAddOns);
  const workers = new Workers("workers", { ...parts, nodeAddOns, controlPlane, cluster });
  const joins = [...controlPlane.steps, ...workers.steps];
  new AddOns(
    "add-ons",
    {
      ...shared,
      credential: identity.credential,
      certificates,
      nodeAddOns,
      controlPlaneJoins: controlPlane.steps,
      joins,
    },
    { provider: cluster },
  );

  return outputsOf(plan, resourceGroup, kubeconfig, controlPlane, workers);
};
