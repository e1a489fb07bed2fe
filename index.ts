import { keepAdditions } from "./components/azure/additions";
import { AddOns } from "./components/add-ons/add-ons";
import { NodeAddOns } from "./components/add-ons/node-add-ons";
import { ApiBalancer } from "./components/api-balancer";
import { Certificates } from "./components/certificates";
import { clusterGroup } from "./components/cluster-group";
import { clusterProvider } from "./components/cluster-provider";
import { InitialControlPlane, JoiningControlPlanes } from "./components/control-plane";
import { Identity, KubeletIdentity } from "./components/identity";
import { kubeconfigOf } from "./components/kubeconfig";
import { Network } from "./components/network";
import { outputsOf } from "./components/outputs";
import { makePlan } from "./components/plan/plan";
import { loadSettings } from "./components/settings/load";
import { explainRefusals } from "./components/azure/refusals";
import { RoleAssignments } from "./components/role-assignments";
import { Roles } from "./components/roles";
import { Workers } from "./components/workers";
import { WorkloadIdentities } from "./components/workload-identities";

export = async () => {
  const settings = loadSettings();
  const plan = await makePlan(settings);
  await explainRefusals(settings);
  keepAdditions(plan);

  const roles = new Roles("identity", plan);
  const resourceGroup = clusterGroup(plan, roles);
  const shared = { resourceGroup, roles, ...plan };
  const network = new Network("network", shared);
  const api = new ApiBalancer("api", { ...shared, network });
  // In a destroy without a preview, the engine keeps what is protected, and goes on with all that this
  // does not depend on. Keys are in its state and nowhere else.
  const certificates = new Certificates("pki", plan.spec, { protect: settings.protect });
  const identity = new Identity("identity", shared);
  const kubeletIdentity = new KubeletIdentity("kubelets", shared);

  const parts = { resourceGroup, plan, network, api, certificates, identity, kubeletIdentity };
  const initial = new InitialControlPlane("initial-control-plane", parts);
  const after = initial.machine.vm;
  new RoleAssignments("identity", { ...shared, identity, kubeletIdentity, after });
  const workloadIdentities = new WorkloadIdentities("workload-identities", {
    ...shared,
    certificates,
    identity,
    after,
  });
  const kubeconfig = kubeconfigOf(initial.initialized, plan, certificates);
  const cluster = clusterProvider(kubeconfig, plan, initial);

  const nodeAddOns = new NodeAddOns("node-add-ons", shared, { provider: cluster });
  const joining = new JoiningControlPlanes("joining-control-planes", {
    ...parts,
    initial,
    nodeAddOns,
  });
  const controlPlanes = [initial, ...joining.members];
  const workers = new Workers("workers", { ...parts, nodeAddOns, controlPlanes, cluster });
  const members = [...controlPlanes, ...workers.members];
  const addOns = new AddOns(
    "add-ons",
    {
      ...shared,
      credential: identity.credential,
      workloadIdentities,
      certificates,
      nodeAddOns,
      kubeconfig,
      controlPlaneJoins: controlPlanes.map(({ step }) => step),
      joins: members.flatMap(({ machine, step }) => (machine.isSpare ? [] : [step])),
    },
    { provider: cluster },
  );

  return outputsOf(
    plan,
    resourceGroup,
    kubeconfig,
    certificates,
    initial,
    members,
    workloadIdentities,
    addOns,
  );
};
