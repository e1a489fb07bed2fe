import type { Payload } from "../../../../../components/machine/payload";
import { Api, type ApiUser, kubeconfigOf, strategicPatch } from "../api";
import type { SimulatedCluster } from "../cluster/simulated-cluster";
import {
  type KubeadmCommand,
  type NodeRegistration,
  nodeRegistrationOf,
} from "../control-plane/kubeadm-command";
import type { Joined, SimulatedMachine } from "../machine";
import { controlPlaneMark, nodeOf, nodePath } from "../nodes/node";
import { kubeletCertificate } from "../control-plane/kubelet";
import { discoveryFile, fileOf, hasTask, initFile, joinFile, trustedOf } from "./payload";
import type { Steps } from "./steps";
import { bringSettings, noteSettings, publishAuthorities } from "./upgrade";

interface Joining {
  readonly machine: SimulatedMachine;
  readonly payload: Payload;
  readonly kubeadm: KubeadmCommand;
  readonly steps: Steps;
}

const kubeadmConfig = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config";

/** The initial control plane's own Node, registered with the certificate that kubeadm made for its kubelet. */
export async function registerInitial(
  machine: SimulatedMachine,
  payload: Payload,
  cluster: SimulatedCluster,
): Promise<void> {
  const registration = nodeRegistrationOf(fileOf(payload, initFile), "InitConfiguration");
  const { ca, user } = kubeconfigOf(cluster.initialKubeconfig());
  const registered = await register(machine, payload, registration, cluster, { ca, user });
  await mark(cluster.superAdmin(), registered.node, registration);
  if (hasTask(payload, "cas")) {
    await publishAuthorities(cluster.superAdmin(), trustedOf(payload));
  }
  await noteSettings(cluster, payload);
  // A restored cluster has its pod network.
  const as = payload.restoredFrom === undefined ? "initialized" : "joined";
  machine.join({ ...registered, as }, payload);
}

/** Makes a machine a member of a cluster whose API answers. */
export async function join(
  { machine, payload, kubeadm, steps }: Joining,
  cluster: SimulatedCluster,
): Promise<void> {
  const isControlPlane = payload.role === "control-plane";
  const discovery = isControlPlane
    ? await mintCredential(kubeadm, payload)
    : fileOf(payload, discoveryFile);
  machine.writeFile({ path: discoveryFile, mode: "0600", content: discovery });
  const { ca, user: joiner } = kubeconfigOf(discovery);
  const api = new Api(cluster.server(ca), joiner);

  const configuration = fileOf(payload, joinFile);
  await kubeadm.validate(configuration);
  const registration = nodeRegistrationOf(configuration, "JoinConfiguration");
  const name = registration.name ?? machine.vm.name;

  const forgetPredecessor = async () => {
    if (isControlPlane && cluster.removeMember(machine.vm)) {
      steps.write(`removing the etcd member that is ${name} as it was before`);
    }
    if (await api.find(nodePath(name))) {
      steps.write(`removing the node ${name} that was here before`);
      await api.delete(nodePath(name));
    }
    machine.beginJoin(false);
  };
  const runKubeadm = async () => {
    machine.beginJoin();
    await api.get(kubeadmConfig);
    const user = await kubeletCertificate(api, name);
    const registered = await register(machine, payload, registration, cluster, { ca, user });
    if (isControlPlane) {
      await mark(api, name, registration);
      cluster.addMember(machine.vm);
    }
    machine.requirePeerCheck();
    machine.join({ ...registered, as: "joined" }, payload);
  };
  const admit = async () => {
    if (machine.hasBegunToJoin) steps.write("undoing a join that did not end well");
    await forgetPredecessor();
    if (isControlPlane) await bringSettings(cluster, payload);
    try {
      await runKubeadm();
    } catch (error) {
      await forgetPredecessor().catch(() =>
        steps.write("the join could not be undone yet; the next try begins with that"),
      );
      throw error;
    }
  };
  await (isControlPlane ? cluster.inTurn(admit) : admit());
  cluster.wakeControllers();
}

/** A control plane holds the CA, so it makes its own credential, and one that lasts for this step only. */
async function mintCredential(kubeadm: KubeadmCommand, payload: Payload): Promise<string> {
  const configuration = fileOf(payload, initFile);
  await kubeadm.validate(configuration);
  return kubeadm.mintAdministrator(configuration, payload.machine);
}

async function register(
  machine: SimulatedMachine,
  payload: Payload,
  registration: NodeRegistration,
  cluster: SimulatedCluster,
  { ca, user }: { ca: string; user: ApiUser },
): Promise<Omit<Joined, "as">> {
  machine.failIfEnded();
  const node = nodeOf(machine.vm, registration, payload);
  await new Api(cluster.server(ca), user).post("/api/v1/nodes", node);
  // kubeadm has a control plane trust the first CA alone, and the script all of them.
  const caCert = trustedOf(payload);
  return { apiName: cluster.apiName, node: node.metadata.name, caCert, kubelet: user };
}

async function mark(api: Api, name: string, registration: NodeRegistration): Promise<void> {
  const { spec } = await api.get(nodePath(name));
  const marked = controlPlaneMark(registration, spec.taints ?? []);
  await api.patch(nodePath(name), marked, strategicPatch);
}
