import { EnvHttpProxyAgent, request } from "undici";

/** The four pods that the kubelet of a control plane runs from its own disk. */
const staticPods = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/** Beyond a lease's own duration: the answer may have been on its way for a while. */
const graceSeconds = 20;

const secondsPerRequest = 20;

/** How a cluster is at this moment. */
export interface ClusterHealth {
  /** Why nothing can be said, or nothing may be done, whatever the machines are like. */
  readonly problems: readonly string[];
  /** By control plane, what is wrong with it; one that is well is not listed. */
  readonly sick: ReadonlyMap<string, readonly string[]>;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly message?: string;
}

interface KubernetesObject {
  readonly metadata: { readonly name: string };
  readonly status?: { readonly conditions?: readonly Condition[] };
  readonly spec?: { readonly renewTime?: string; readonly leaseDurationSeconds?: number };
}

/**
 * Asks the API how each control plane is: its Node, its kubelet's lease, and its static pods.
 *
 * kubeadm's etcd pod is ready by etcd's own /readyz: the member is no learner, has no corrupt data, and sees a
 * leader. Whether etcd also takes writes, which it does not while the alarm NOSPACE is raised, is tried: a Lease
 * of this program's own in kube-system is renewed.
 *
 * @param kubeconfig as kubeconfig.ts renders it
 * @param names the control planes' Nodes
 */
export async function askCluster(
  kubeconfig: string,
  names: readonly string[],
): Promise<ClusterHealth> {
  const api = new KubernetesApi(kubeconfig);
  try {
    await api.get("/readyz");
    await api.renewLease("zoned-health-check");
    const [nodes, pods, leases, manager] = await Promise.all([
      api.list("/api/v1/nodes"),
      api.list("/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane"),
      api.list("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
      api.list(
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?fieldSelector=metadata.name%3Dkube-controller-manager",
      ),
    ]);
    const stale = staleness(manager[0], api.now);
    const sick = names.map((name) => {
      const node = named(nodes, name);
      const lease = staleness(named(leases, name), api.now);
      return [
        name,
        [
          ...(node === undefined
            ? ["it has no Node"]
            : notReady(node).map((why) => `its Node is not Ready${why}`)),
          ...(node === undefined || lease === undefined
            ? []
            : [`its kubelet ${lease}, so that it has stopped or cannot reach the API`]),
          ...staticPods.flatMap((component) => {
            const pod = named(pods, `${component}-${name}`);
            return pod === undefined
              ? [`it runs no ${component}`]
              : notReady(pod).map((why) => `its ${component} is not ready${why}`);
          }),
        ],
      ] as const;
    });
    return {
      problems:
        stale === undefined
          ? []
          : [
              `kube-controller-manager ${stale}: no controller manager runs, so that no Node or pod would be looked after`,
            ],
      sick: new Map(sick.filter(([, reasons]) => reasons.length > 0)),
    };
  } catch (error) {
    return { problems: [(error as Error).message], sick: new Map() };
  } finally {
    await api.close();
  }
}

const named = (objects: readonly KubernetesObject[], name: string) =>
  objects.find(({ metadata }) => metadata.name === name);

function notReady({ status }: KubernetesObject): string[] {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status === "True") return [];
  return [ready?.message ? `: ${ready.message}` : ""];
}

/** What is to be said of a lease that is not renewed any more. */
function staleness(lease: KubernetesObject | undefined, now: number): string | undefined {
  const { renewTime, leaseDurationSeconds = 40 } = lease?.spec ?? {};
  if (renewTime === undefined) return "holds no lease";
  const age = Math.round((now - Date.parse(renewTime)) / 1000);
  return age <= leaseDurationSeconds + graceSeconds
    ? undefined
    : `last renewed its lease ${age} s ago`;
}

/** The API of the cluster that a kubeconfig names; HTTPS_PROXY and NO_PROXY are honoured. */
class KubernetesApi {
  /** The API server's own time, for operators' clocks may be off. */
  now = Date.now();
  private readonly server: string;
  private readonly dispatcher: EnvHttpProxyAgent;

  constructor(kubeconfig: string) {
    const { clusters, users } = JSON.parse(kubeconfig) as {
      clusters: [{ cluster: Record<string, string> }];
      users: [{ user: Record<string, string> }];
    };
    const [{ cluster }] = clusters;
    const [{ user }] = users;
    const decoded = (text = "") => Buffer.from(text, "base64");
    this.server = cluster["server"]!;
    const tls = {
      ca: decoded(cluster["certificate-authority-data"]),
      cert: decoded(user["client-certificate-data"]),
      key: decoded(user["client-key-data"]),
    };
    this.dispatcher = new EnvHttpProxyAgent({ connect: tls, requestTls: tls });
  }

  close = (): Promise<void> => this.dispatcher.close();

  async list(path: string): Promise<readonly KubernetesObject[]> {
    const text = await this.get(path);
    return (JSON.parse(text) as { items: readonly KubernetesObject[] }).items;
  }

  /** Writes something to etcd that nobody depends on. */
  async renewLease(name: string): Promise<void> {
    const namespace = "kube-system";
    const lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace },
      spec: { holderIdentity: "zoned", renewTime: new Date().toISOString().replace("Z", "000Z") },
    };
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
    await this.get(`${path}?fieldManager=zoned&force=true`, JSON.stringify(lease));
  }

  /**
   * @param apply an object to apply in place of only asking
   * @throws Error that says what to do, since an answer that does not come says nothing of the cluster
   */
  async get(path: string, apply?: string): Promise<string> {
    const { status, date, text } = await this.ask(path, apply).catch((error: Error) => {
      const { code } = (error.cause ?? error) as NodeJS.ErrnoException;
      throw new Error(
        `the API at ${this.server} does not answer from here (${code ?? error.message}): the cluster is down, or this ` +
          "network may not reach it (apiAccessCidrs; a proxy is taken from HTTPS_PROXY)",
      );
    });
    if (date !== undefined) this.now = Date.parse(date);
    if (status === 200 || status === 201) return text;
    throw new Error(
      `the API at ${this.server} answered ${status} to ${apply === undefined ? "GET" : "PATCH"} ${path.split("?")[0]}, ` +
        `expected 200: ${text.slice(0, 300).trim()}`,
    );
  }

  private async ask(path: string, apply: string | undefined) {
    const { statusCode, headers, body } = await request(`${this.server}${path}`, {
      dispatcher: this.dispatcher,
      ...(apply !== undefined && {
        method: "PATCH",
        headers: { "content-type": "application/apply-patch+yaml" },
        body: apply,
      }),
      signal: AbortSignal.timeout(secondsPerRequest * 1000),
    });
    const { date } = headers;
    return { status: statusCode, date: date as string | undefined, text: await body.text() };
  }
}
