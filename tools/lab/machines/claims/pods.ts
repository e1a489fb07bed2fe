import { testImage } from "../../../mirror/images/wanted-images";
import { type Claim, eventually, expectAll, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { succeeded, unchanged } from "../../local-cloud";

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

const metadata = "169.254.169.254";
const wire = "168.63.129.16";

/** Lets machines reach the API, at the address that their NAT gateway gives them. */
export const apiRule =
  "/Microsoft.Network/networkSecurityGroups/zoned-machines-nsg/securityRules/nodes-reach-the-api-through-their-egress";

/** A Service of a tenant's own that leads to the platform. */
const detour = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "detour", namespace },
    spec: { ports: [{ port: 80 }] },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "detour", namespace, labels: { "kubernetes.io/service-name": "detour" } },
    addressType: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ addresses: [wire], conditions: { ready: true } }],
  },
];

const opens = (host: string, port: number): string =>
  `nc -w 10 ${host} ${port} </dev/null >/dev/null 2>&1 && echo open || echo closed`;

/**
 * What a key looks like, and a bootstrap token; a question for it, which is logged, looks
 * otherwise.
 */
const secret = "PRIVATE[ ]KEY|(^|[^a-z0-9])[a-z0-9]{6}[.][a-z0-9]{16}([^a-z0-9]|$)";

export const closedClaims: readonly Claim[] = [
  {
    sentence: "machines reach the metadata address and the platform's, and no pod does",
    check: async (cluster) => {
      for (const pod of await echoes(cluster)) {
        for (const [host, port] of [
          [metadata, 80],
          [wire, 80],
          [wire, 32526],
        ] as const) {
          const open = `timeout 10 bash -c '</dev/tcp/${host}/${port}' && echo open`;
          const asMachine = await cluster.inMachine(pod.spec.nodeName, open);
          expectSame(`${host} port ${port} from ${pod.spec.nodeName}`, asMachine.trim(), "open");
          const asPod = await inPod(cluster, pod, opens(host, port));
          expectSame(`${host} port ${port} from a pod there`, asPod.trim(), "closed");
        }
      }
    },
  },
  {
    sentence: "no pod reaches the platform through a Service that it makes for that",
    check: async (cluster) => {
      await cluster.apply(...detour);
      const [pod] = await echoes(cluster);
      const [{ spec }] = (await cluster.get<{ spec: { clusterIP: string } }>(
        ...["services", "--namespace", namespace, "--field-selector", "metadata.name=detour"],
      )) as [{ spec: { clusterIP: string } }];
      await eventually(240, cluster.signal, async () => {
        const table = await cluster.inMachine(pod!.spec.nodeName, "ipvsadm -Ln");
        expectAll("IPVS", table.split(/\s+/), [`${spec.clusterIP}:80`, `${wire}:80`]);
      });
      expectSame(
        "the Service",
        (await inPod(cluster, pod!, opens(spec.clusterIP, 80))).trim(),
        "closed",
      );
      await cluster.kubectl([
        "delete",
        "service,endpointslice",
        "detour",
        "--namespace",
        namespace,
      ]);
    },
  },
  {
    sentence: "names still resolve for pods at the platform's port 53",
    check: async (cluster) => {
      const [pod] = await echoes(cluster);
      await inPod(cluster, pod!, `nslookup ${await cluster.apiName()} ${wire}`);
    },
  },
  {
    sentence: "a machine's packets to the API's public address arrive from its NAT gateway's",
    check: async (cluster) => {
      const { properties } = await cluster.inGroup(
        "GET",
        "/Microsoft.Network/publicIPAddresses/zoned-machines-egress",
      );
      const [server = ""] = await cluster.names("control-plane");
      await eventually(240, cluster.signal, async () => {
        const text = await cluster.inMachine(
          server,
          "ss -Htn state established '( sport = :6443 )'",
        );
        const peers = text.split("\n").map(
          (line) =>
            line
              .trim()
              .split(/\s+/)[3]
              ?.replace(/^\[?(::ffff:)?/, "")
              .replace(/\]?:\d+$/, "") ?? "",
        );
        expectAll("who is connected to the API server", peers, [properties.ipAddress as string]);
      });
    },
  },
  {
    sentence:
      "the rule for that address is what lets machines reach the API: without it they do not, and `up --refresh` brings it back",
    check: async (cluster) => {
      const [worker = ""] = await cluster.names("worker");
      const ask = `curl -sk -o /dev/null -w '%{http_code}' --max-time 20 https://${await cluster.apiName()}:6443/readyz || true`;
      expectSame("with the rule", (await cluster.inMachine(worker, ask)).trim(), "200");
      await cluster.inGroup("DELETE", apiRule);
      const without = await cluster.inMachine(worker, ask);
      succeeded(await cluster.up("--refresh"));
      expectSame("without the rule", without.trim(), "000");
      expectSame("with the rule again", (await cluster.inMachine(worker, ask)).trim(), "200");
    },
  },
  {
    sentence:
      "a worker has no CA key, and no secret in what cloud-init keeps or in its process list",
    check: async (cluster) => {
      for (const worker of await cluster.names("worker")) {
        const keys = await cluster.inMachine(
          worker,
          "find /etc/kubernetes /etc/zoned -name '*ca.key' -o -name discovery.conf",
        );
        expectSame(`keys of ${worker}`, keys.trim(), "");
        const control = await cluster.inMachine(
          worker,
          `grep -rlE '${secret}' /var/lib/kubelet/pki`,
        );
        if (control.trim() === "") throw new Error("the search finds no secret where there is one");
        const places = "/var/lib/cloud /run/cloud-init /var/log /var/lib/waagent";
        const found = await cluster.inMachine(worker, `grep -rlE '${secret}' ${places} || true`);
        expectSame(`secrets of ${worker}`, found.trim(), "");
        const shown = await cluster.inMachine(
          worker,
          `ps -ewwo args | grep -v grep | grep -E '${secret}' || true`,
        );
        expectSame(`process list of ${worker}`, shown.trim(), "");
      }
    },
  },
  {
    sentence: "a second `pulumi up` changes nothing",
    check: async (cluster) => unchanged(await cluster.up()),
  },
];
