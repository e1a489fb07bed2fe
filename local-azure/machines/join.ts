import { setTimeout as wait } from "node:timers/promises";

import { Api, ApiError, type ApiUser, kubeconfigOf, strategicPatch } from "./api";
import type { Cluster } from "./cluster";
import { kubeletCertificate } from "./credentials";
import type { Guest, Joined } from "./guest";
import { Kubeadm, type NodeRegistration, nodeRegistrationOf } from "./kubeadm";
import { controlPlaneMark, nodeOf } from "./node";
import type { Payload } from "../../components/bootstrap";
import { fileOf, initFile, joinFile } from "./payload";
import type { Steps } from "./steps";

export interface Joining {
  readonly guest: Guest;
  readonly payload: Payload;
  readonly kubeadm: Kubeadm;
  readonly steps: Steps;
  /** The cluster whose API answers under this name, once there is one. */
  readonly clusterOf: (apiName: string) => Cluster | undefined;
  /** How long to wait for it, in milliseconds. */
  readonly limit: number;
}

/** An API that answers, to a machine that wants to join. */
interface Found {
  readonly cluster: Cluster;
  readonly api: Api;
  readonly ca: string;
}

const discoveryFile = "/etc/zoned/discovery.conf";
const pollMs = 250;

const nodePath = (name: string) => `/api/v1/nodes/${name}`;

/** The founder's own Node, registered with the certificate that kubeadm made for its kubelet. */
export async function joinAsFounder(
  guest: Guest,
  payload: Payload,
  cluster: Cluster,
): Promise<void> {
  const registration = nodeRegistrationOf(fileOf(payload, initFile), "InitConfiguration");
  const { ca, user } = kubeconfigOf(cluster.founderKubeconfig());
  const joined = await register(guest, payload, registration, cluster, { ca, user });
  await mark(cluster.superAdmin(), joined.node, registration);
  guest.join(joined);
}

/**
 * Waits for the API, then reads what kubeadm reads first: where the credential is expired or grants too little,
 * that fails at once.
 */
export async function searchApi(joining: Joining): Promise<Found> {
  const { payload, kubeadm, guest, clusterOf, limit } = joining;
  const discovery =
    payload.role === "worker"
      ? fileOf(payload, discoveryFile)
      : await kubeadm.mintAdministrator(fileOf(payload, initFile), guest.vm.name);
  guest.writeFile({ path: discoveryFile, mode: "0600", content: discovery });
  const { server, ca, user } = kubeconfigOf(discovery);
  let last = "there is no such cluster";
  for (const until = Date.now() + limit; Date.now() < until; await wait(pollMs)) {
    guest.failIfEnded();
    const cluster = clusterOf(server.hostname);
    if (cluster === undefined || Number(server.port || 443) !== payload.apiPort) {
      continue;
    }
    const api = new Api(cluster.server(ca), user);
    try {
      await api.get("/api/v1/namespaces/kube-system/configmaps/kubeadm-config");
      return { cluster, api, ca };
    } catch (error) {
      if (!isPassing(error as Error)) {
        throw error;
      }
      last = (error as Error).message;
    }
  }
  throw new Error(
    `no API answers at ${server.origin}, and this machine (vmId ${guest.vm.vmId}) is not the one that may ` +
      `found the cluster${payload.founder ? ` (vmId ${payload.founder})` : ""}: ${last}`,
  );
}

/** Makes a machine a member of a cluster that lives, by the way a real one goes. */
export async function join(joining: Joining, { cluster, api, ca }: Found): Promise<void> {
  const { guest, payload, steps, kubeadm } = joining;
  const configuration = fileOf(payload, joinFile);
  await kubeadm.validate(configuration);
  const registration = nodeRegistrationOf(configuration, "JoinConfiguration");
  const name = registration.name ?? guest.vm.name;
  const isControlPlane = payload.role === "control-plane";

  const admit = async () => {
    if (isControlPlane && cluster.forgetMember(guest.vm)) {
      steps.say(`removing the etcd member that is ${name} as it was before`);
    }
    if (await api.find(nodePath(name))) {
      steps.say(`removing the node ${name} that was here before`);
      await api.delete(nodePath(name));
    }
    const user = await kubeletCertificate(api, name);
    const joined = await register(guest, payload, registration, cluster, { ca, user });
    if (isControlPlane) {
      await mark(api, name, registration);
      cluster.addMember(guest.vm);
    }
    guest.touch();
    guest.join(joined);
  };
  await (isControlPlane ? cluster.inTurn(admit) : admit());
  cluster.play();
}

/** Whether waiting may help: not when the API says no, nor when its certificate is not to be trusted. */
const isPassing = (error: Error & { code?: string }): boolean =>
  error instanceof ApiError
    ? error.status >= 500 || error.status === 429
    : error.code === undefined || /^(ECONN|ETIMEDOUT|EPIPE)/.test(error.code);

async function register(
  guest: Guest,
  payload: Payload,
  registration: NodeRegistration,
  cluster: Cluster,
  { ca, user }: { ca: string; user: ApiUser },
): Promise<Joined> {
  guest.failIfEnded();
  const node = nodeOf(guest.vm, registration, payload);
  await new Api(cluster.server(ca), user).post("/api/v1/nodes", node);
  return { apiName: cluster.apiName, node: node.metadata.name, caCert: ca, kubelet: user };
}

async function mark(api: Api, name: string, registration: NodeRegistration): Promise<void> {
  const { spec } = await api.get(nodePath(name));
  const marked = controlPlaneMark(registration, spec.taints ?? []);
  await api.patch(nodePath(name), marked, strategicPatch);
}
