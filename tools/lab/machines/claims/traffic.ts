import type { KubernetesObject } from "../../../../components/cluster/kubernetes-api";
import { azureServices } from "../../../local-azure/machines/qemu/network/azure-services";
import { operatorAddress } from "../../../local-azure/machines/qemu/network/namespaces";
import { agnhostImage } from "../../../mirror/images/wanted-images";
import { succeeded } from "../../local-cloud";
import { type Claim, eventually, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { expectMode } from "./services";

const namespace = "zoned-traffic";
const port = 8080;
const controlPlane = "node-role.kubernetes.io/control-plane";
/** Who is outside of the operators' range. */
const stranger = azureServices.blob.address;

interface Service {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly healthCheckNodePort?: number };
  readonly status: { readonly loadBalancer: { readonly ingress?: readonly { ip: string }[] } };
}

/** Web servers, one on a machine at most, behind a Service of its own public address. */
const exposed = (
  name: string,
  { replicas, pod = {}, service = {} }: { replicas: number; pod?: object; service?: object },
): object[] => {
  const labels = { app: name };
  const apart = [{ labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" }];
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: apart } };
  const args = ["netexec", `--http-port=${port}`];
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 1,
            containers: [
              { name, image: agnhostImage, args, readinessProbe: { tcpSocket: { port } } },
            ],
            affinity: { ...affinity, ...pod },
          },
        },
      },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace },
      spec: {
        type: "LoadBalancer",
        selector: labels,
        ports: [{ port: 80, targetPort: port }],
        ...service,
      },
    },
  ];
};

const noControlPlane = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: controlPlane, operator: "DoesNotExist" }] }],
    },
  },
};

const local = (replicas: number): object[] =>
  exposed("local", {
    replicas,
    pod: noControlPlane,
    service: { externalTrafficPolicy: "Local" },
  });

const podsOf = async (cluster: RealCluster, app: string): Promise<KubernetesObject[]> =>
  (
    await cluster.get<KubernetesObject>(
      "pods",
      "--namespace",
      namespace,
      "--selector",
      `app=${app}`,
    )
  ).filter(({ metadata }) => metadata.deletionTimestamp === undefined);

const rolledOut = (cluster: RealCluster, name: string): Promise<string> =>
  cluster.kubectl([
    ...["rollout", "status", `deployment/${name}`, "--namespace", namespace, "--timeout", "600s"],
    "--request-timeout=0",
  ]);

const serviceOf = async (cluster: RealCluster, name: string): Promise<Service> => {
  const services = await cluster.get<Service>("services", "--namespace", namespace);
  const found = services.find(({ metadata }) => metadata.name === name);
  if (found === undefined) throw new Error(`there is no Service ${name}`);
  return found;
};

/** Its public address, once the cloud provider has given it one. */
const addressOf = (cluster: RealCluster, name: string): Promise<string> =>
  eventually(600, cluster.signal, async () => {
    const { status } = await serviceOf(cluster, name);
    const ip = status.loadBalancer.ingress?.[0]?.ip;
    if (ip === undefined) throw new Error(`the Service ${name} has no address yet`);
    return ip;
  });

const ask = async (
  cluster: RealCluster,
  service: string,
  path: string,
  from = operatorAddress,
): Promise<string> => {
  const url = `http://${await addressOf(cluster, service)}/${path}`;
  return (await cluster.fromInternet(url, from)).trim();
};

/** Who answers so many connections; the name of a pod is that of its host. */
async function answering(cluster: RealCluster, service: string, times: number): Promise<string[]> {
  const names = new Set<string>();
  for (let time = 0; time < times; time += 1) names.add(await ask(cluster, service, "hostname"));
  return [...names].sort();
}

/** Every one of a Service's pods answers at its public address, and nobody else. */
const allAnswer = (cluster: RealCluster, service: string): Promise<void> =>
  eventually(300, cluster.signal, async () => {
    const pods = await podsOf(cluster, service);
    const names = pods.map(({ metadata }) => metadata.name).sort();
    expectSame("who answers", await answering(cluster, service, 6 * names.length), names);
  });

/** Has so many web servers answer at a public address; returns after how many seconds there was one. */
export async function expose(
  cluster: RealCluster,
  name: string,
  replicas: number,
): Promise<number> {
  await cluster.apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    ...exposed(name, { replicas }),
  );
  const since = Date.now();
  await addressOf(cluster, name);
  const seconds = Math.round((Date.now() - since) / 1000);
  await rolledOut(cluster, name);
  await allAnswer(cluster, name);
  return seconds;
}

interface Pool {
  readonly properties: {
    readonly loadBalancerBackendAddresses?: readonly {
      /** None for a machine that is in it by its network interface. */
      readonly properties?: { readonly ipAddress?: string };
    }[];
  };
}
interface Balancer {
  readonly properties: { readonly backendAddressPools: readonly Pool[] };
}

/** Addresses in the pools of the balancers that the cloud provider has made. */
async function pooled(cluster: RealCluster): Promise<string[]> {
  const { value } = await cluster.inGroup("GET", "/Microsoft.Network/loadBalancers");
  return (value as Balancer[])
    .flatMap(({ properties }) => properties.backendAddressPools)
    .flatMap(({ properties }) => properties.loadBalancerBackendAddresses ?? [])
    .flatMap(({ properties }) => properties?.ipAddress ?? [])
    .sort();
}

/** Each machine's own count of the Service's pods on it, by which the balancer's probe goes. */
async function localEndpoints(
  cluster: RealCluster,
  service: string,
): Promise<Record<string, number>> {
  const { healthCheckNodePort } = (await serviceOf(cluster, service)).spec;
  const counts = (await cluster.machines()).map(async ({ name, address }) => {
    const said = await cluster.fromNetwork(`http://${address}:${healthCheckNodePort}/healthz`);
    return [name, (JSON.parse(said) as { localEndpoints: number }).localEndpoints] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

const expectCounts = async (cluster: RealCluster, service: string): Promise<void> => {
  const nodes = (await podsOf(cluster, service)).map(({ spec }) => spec!.nodeName!);
  const expected = (await cluster.names()).map((name) => [name, Number(nodes.includes(name))]);
  expectSame("pods", await localEndpoints(cluster, service), Object.fromEntries(expected));
};

/** Only the machine with a pod says so at its health port, and the pod sees its client's address. */
async function expectLocal(cluster: RealCluster): Promise<void> {
  await eventually(240, cluster.signal, () => expectCounts(cluster, "local"));
  await allAnswer(cluster, "local");
  const client = await ask(cluster, "local", "clientip");
  expectSame("client", client.split(":")[0], operatorAddress);
}

/** Somebody outside of the Service's ranges gets no answer, and somebody within still does. */
async function expectRanges(cluster: RealCluster): Promise<void> {
  await eventually(240, cluster.signal, async () => {
    const asked = ask(cluster, "everywhere", "hostname", stranger);
    const isAnswered = await asked.then(
      () => true,
      () => false,
    );
    if (isAnswered) throw new Error(`${stranger} is still answered`);
  });
  await ask(cluster, "everywhere", "hostname");
}

const sameIn = (mode: string): Claim => ({
  sentence: `all of this is so with proxyMode ${mode}, too`,
  check: async (cluster) => {
    const before = await cluster.generations();
    await cluster.configure({ proxyMode: mode });
    succeeded(await cluster.up());
    expectSame("machines", await cluster.generations(), before);
    await expectMode(cluster, mode);
    await allAnswer(cluster, "everywhere");
    await expectLocal(cluster);
    await expectRanges(cluster);
  },
});

export const trafficClaims: readonly Claim[] = [
  {
    sentence:
      "a Service of type LoadBalancer answers at a public address, from pods on all three machines",
    isGround: true,
    check: async (cluster) => {
      const seconds = await expose(cluster, "everywhere", 3);
      const nodes = (await podsOf(cluster, "everywhere")).map(({ spec }) => spec!.nodeName!).sort();
      expectSame("machines with a pod", nodes, (await cluster.names()).sort());
      return `its address came after ${seconds} s`;
    },
  },
  {
    sentence: "the Service's pool has every worker, and no control plane",
    check: async (cluster) => {
      const workers = (await cluster.machines()).filter(({ role }) => role === "worker");
      const addresses = workers.map(({ address }) => address).sort();
      expectSame("addresses in the pool", await pooled(cluster), addresses);
    },
  },
  {
    sentence:
      "with externalTrafficPolicy Local only the machine with a pod says so at the health port, and the pod sees its client's own address",
    check: async (cluster) => {
      await cluster.apply(...local(1));
      await rolledOut(cluster, "local");
      await expectLocal(cluster);
    },
  },
  {
    sentence: "loadBalancerSourceRanges refuse others",
    check: async (cluster) => {
      await ask(cluster, "everywhere", "hostname", stranger);
      const spec = { loadBalancerSourceRanges: ["198.18.0.0/24"] };
      await cluster.kubectl([
        ...["patch", "service", "everywhere", "--namespace", namespace],
        ...["--type", "merge", "--patch", JSON.stringify({ spec })],
      ]);
      await expectRanges(cluster);
    },
  },
  sameIn("nftables"),
  sameIn("iptables"),
  {
    sentence: "when the machine that answers is deleted, another answers",
    check: async (cluster) => {
      await cluster.apply(...local(2));
      await rolledOut(cluster, "local");
      await allAnswer(cluster, "local");
      const pods = await podsOf(cluster, "local");
      const first = await ask(cluster, "local", "hostname");
      const lost = pods.find(({ metadata }) => metadata.name === first)!.spec!.nodeName!;
      const others = pods.map(({ metadata }) => metadata.name).filter((name) => name !== first);
      const since = Date.now();
      await cluster.ask("DELETE", lost);
      return await eventually(240, cluster.signal, async () => {
        const begun = Date.now();
        expectSame("who answers", await answering(cluster, "local", 6), others);
        return `each connection again from ${Math.round((begun - since) / 1000)} s after the request`;
      });
    },
  },
];
