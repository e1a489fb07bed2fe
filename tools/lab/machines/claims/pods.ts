import { testImage } from "../../../mirror/images/wanted-images";
import { type Claim, eventually, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";

export const namespace = "zoned-suite";
export const port = 8080;
const nodePort = 30_080;
const app = { app: "echo" };
const megabytes = 20;

const server = `httpd -f -p ${port}`;
/** By a machine's shell, the process whose namespaces are those of its pod. */
const inItsNamespaces = `--target $(pgrep -of '${server}')`;

/** A web server on every node that answers with its pod's name, and has something large. */
const serve =
  `mkdir -p /tmp/www && hostname >/tmp/www/index.html && dd if=/dev/zero of=/tmp/www/large bs=1M count=${megabytes} && ` +
  `exec ${server} -h /tmp/www`;

const echo = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
  {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "echo", namespace },
    spec: {
      selector: { matchLabels: app },
      template: {
        metadata: { labels: app },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: "echo", image: testImage, command: ["sh", "-c", serve] }],
        },
      },
    },
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "echo", namespace },
    spec: { type: "NodePort", selector: app, ports: [{ port, nodePort }] },
  },
];

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName: string };
  readonly status: { readonly podIP: string };
}

export const echoes = async (cluster: RealCluster): Promise<Pod[]> =>
  (await cluster.get<Pod>("pods", "--namespace", namespace, "--selector", "app=echo")).filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  );

/**
 * Runs a script where a pod's web server runs, and returns what it wrote. Past the API, whose exec
 * takes a minute where the control plane's processors are emulated.
 */
export const inPod = (cluster: RealCluster, { spec }: Pod, script: string): Promise<string> =>
  cluster.inMachine(
    spec.nodeName,
    `nsenter --net --mount --uts ${inItsNamespaces} sh <<'END'\n${script}\nEND`,
  );

const between = async (
  cluster: RealCluster,
  check: (from: Pod, to: Pod) => Promise<void>,
): Promise<void> => {
  const pods = await echoes(cluster);
  for (const from of pods) for (const to of pods) if (from !== to) await check(from, to);
};

const pairOf = async (cluster: RealCluster): Promise<[Pod, Pod]> => {
  const [from, to] = await echoes(cluster);
  if (from === undefined || to === undefined) throw new Error("there are no two pods on two nodes");
  return [from, to];
};

/** Every pod answers to this within a while: IPVS has them a moment after a rollout has ended. */
const reachesAll = (cluster: RealCluster, ask: () => Promise<string>): Promise<void> =>
  eventually(240, cluster.signal, async () => {
    const names = (await echoes(cluster)).map(({ metadata }) => metadata.name);
    const heard = new Set<string>();
    for (let time = 0; time < 2 * names.length; time += 1) heard.add((await ask()).trim());
    expectSame("who answered", [...heard].sort(), names.sort());
  });

export const podClaims: readonly Claim[] = [
  {
    sentence: "a DaemonSet has a running pod on every node",
    isGround: true,
    check: async (cluster) => {
      await cluster.apply(...echo);
      await cluster.kubectl([
        ...["rollout", "status", "daemonset/echo", "--namespace", namespace, "--timeout", "600s"],
        "--request-timeout=0",
      ]);
      expectSame("pods", (await echoes(cluster)).length, (await cluster.names()).length);
    },
  },
  {
    sentence: "`kubectl exec` reaches a pod on every node",
    check: async (cluster) => {
      for (const { metadata } of await echoes(cluster)) {
        const exec = ["exec", "--namespace", namespace, metadata.name, "--", "hostname"];
        expectSame("host name", (await cluster.kubectl(exec)).trim(), metadata.name);
      }
    },
  },
  {
    sentence: "every pod reaches every other pod by its address, across nodes",
    check: (cluster) =>
      between(cluster, async (from, to) => {
        const said = await inPod(
          cluster,
          from,
          `wget -qO- -T 10 http://${to.status.podIP}:${port}/`,
        );
        expectSame(`${from.spec.nodeName} to ${to.spec.nodeName}`, said.trim(), to.metadata.name);
      }),
  },
  {
    sentence:
      "every pod resolves a Service's name, and reaches all of its pods through its address",
    check: async (cluster) => {
      for (const from of await echoes(cluster)) {
        const name = `echo.${namespace}.svc.cluster.local`;
        await eventually(240, cluster.signal, () => inPod(cluster, from, `nslookup ${name}`));
        await reachesAll(cluster, () =>
          inPod(cluster, from, `wget -qO- -T 10 http://echo.${namespace}:${port}/`),
        );
      }
    },
  },
  {
    sentence: "a NodePort answers on every node to somebody outside of the cluster",
    check: async (cluster) => {
      for (const { address } of await cluster.machines()) {
        await reachesAll(cluster, () => cluster.fromNetwork(`http://${address}:${nodePort}/`));
      }
    },
  },
  {
    sentence: "a pod's MTU leaves room for VXLAN: 1,400 bytes pass to another node unfragmented",
    check: async (cluster) => {
      const [from, to] = await pairOf(cluster);
      const outer = await cluster.inMachine(from.spec.nodeName, "cat /sys/class/net/eth0/mtu");
      const inner = await inPod(cluster, from, "cat /sys/class/net/eth0/mtu");
      expectSame("the pod's MTU", Number(inner), Number(outer) - 50);
      const ping = `ping -M do -c 2 -W 10 -s 1400 ${to.status.podIP}`;
      await cluster.inMachine(from.spec.nodeName, `nsenter --net ${inItsNamespaces} ${ping}`);
    },
  },
  {
    sentence: `${megabytes} MB go from pod to pod across nodes without a stall`,
    check: async (cluster) => {
      const [from, to] = await pairOf(cluster);
      const since = Date.now();
      await inPod(
        cluster,
        from,
        `timeout 60 wget -qO /dev/null http://${to.status.podIP}:${port}/large`,
      );
      return `${((megabytes * 1000) / (Date.now() - since)).toFixed(1)} MB/s`;
    },
  },
];
