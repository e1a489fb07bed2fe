import * as net from "node:net";

import { parse } from "yaml";

export const components = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
] as const;
export type Component = (typeof components)[number];

interface StaticPod {
  readonly spec: {
    readonly containers: readonly [
      {
        readonly command: readonly string[];
        readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
      },
    ];
    readonly volumes?: readonly {
      readonly name: string;
      readonly hostPath?: { readonly path: string };
    }[];
  };
}

const loopback = "127.0.0.1";

/** Where a component runs on this host. */
interface Place {
  readonly root: string;
  readonly ports: Ports;
  /** Leads the API server to nodes. */
  readonly egressFile: string;
}

/** Flags that a component gets besides its manifest's, because several share one host here. */
const ownFlags = (
  component: Component,
  { ports, root, egressFile }: Place,
): Record<string, string> => ({
  ...(component === "kube-apiserver" && {
    "bind-address": loopback,
    "secure-port": `${ports.api}`,
    "egress-selector-config-file": egressFile,
    // No balancer leads here, which would have to notice.
    "shutdown-delay-duration": "0s",
  }),
  ...(component === "kube-controller-manager" && {
    "bind-address": loopback,
    "secure-port": `${ports.controllerManager}`,
    // Its default lies below /usr, and the process makes it when it may.
    "flex-volume-plugin-dir": `${root}/usr/libexec/kubernetes/kubelet-plugins/volume/exec`,
  }),
  ...(component === "kube-scheduler" && {
    "bind-address": loopback,
    "secure-port": `${ports.scheduler}`,
  }),
});

const etcdUrl = /(https?):\/\/(?:[\d.]+|\[[^\]]+\]):(2379|2380|2381)/;

/** etcd's addresses, on ports of this cluster's own. Its ports are fixed in kubeadm. */
function onLoopback(value: string, ports: Ports): string {
  const portOf: Record<string, number> = {
    2379: ports.etcdClient,
    2380: ports.etcdPeer,
    2381: ports.etcdMetrics,
  };
  if (!etcdUrl.test(value)) {
    return value;
  }
  const moved = value
    .split(",")
    .map((part) =>
      part.replace(
        etcdUrl,
        (_, scheme: string, port: string) => `${scheme}://${loopback}:${portOf[port]}`,
      ),
    );
  return [...new Set(moved)].join(",");
}

/**
 * The command line of a static pod, as a process of this host.
 *
 * Everything stays as kubeadm wrote it, except what cannot be shared: paths that the pod mounts
 * from its host lie below `root`, and the addresses it listens on are this cluster's ports on
 * loopback.
 */
export function processOf(
  component: Component,
  manifest: string,
  { binary, ...place }: Place & { readonly binary: string },
): readonly string[] {
  const { root, ports } = place;
  const { containers, volumes = [] } = (parse(manifest) as StaticPod).spec;
  const [{ command, volumeMounts = [] }] = containers;
  // kubeadm writes those of the certificates below `root`, in which its configuration has them here.
  const ofMachine = (path: string): string =>
    path.startsWith(`${root}/`) ? path.slice(root.length) : path;
  const mounts = volumeMounts
    .flatMap(({ name, mountPath }) => {
      const { hostPath } = volumes.find((volume) => volume.name === name) ?? {};
      return hostPath === undefined
        ? []
        : [{ mountPath: ofMachine(mountPath), hostPath: ofMachine(hostPath.path) }];
    })
    .sort((a, b) => b.mountPath.length - a.mountPath.length);

  const below = (path: string): string => {
    const mount = mounts.find(
      ({ mountPath }) => path === mountPath || path.startsWith(`${mountPath}/`),
    );
    return mount === undefined
      ? path
      : `${root}${mount.hostPath}${path.slice(mount.mountPath.length)}`;
  };

  const own = ownFlags(component, place);
  const [, ...args] = command;
  const kept = args
    .filter((arg) => !Object.keys(own).some((flag) => arg.startsWith(`--${flag}=`)))
    .map((arg) => {
      const at = arg.indexOf("=");
      return at < 0 ? arg : `${arg.slice(0, at)}=${onLoopback(below(arg.slice(at + 1)), ports)}`;
    });
  return [binary, ...kept, ...Object.entries(own).map(([flag, value]) => `--${flag}=${value}`)];
}

/** Where the processes of one cluster listen, all on 127.0.0.1. */
export interface Ports {
  readonly api: number;
  readonly etcdClient: number;
  readonly etcdPeer: number;
  readonly etcdMetrics: number;
  readonly controllerManager: number;
  readonly scheduler: number;
}

/** Below the range from which a host takes ports for outgoing connections. */
const firstPort = 20_000;
const lastPort = 32_000;

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

/** A port that no process has now; at random, so that two rehearsals started together differ. */
export async function freePort(taken: ReadonlySet<number> = new Set()): Promise<number> {
  const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
  return taken.has(port) || !(await isFree(port)) ? freePort(taken) : port;
}

export async function freePorts(): Promise<Ports> {
  const taken = new Set<number>();
  const next = async (): Promise<number> => {
    const port = await freePort(taken);
    taken.add(port);
    return port;
  };
  return {
    api: await next(),
    etcdClient: await next(),
    etcdPeer: await next(),
    etcdMetrics: await next(),
    controllerManager: await next(),
    scheduler: await next(),
  };
}
