import { join } from "node:path";

import { checkout } from "../../../shared/checkout";
import { run } from "../../../shared/run";
import { succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { everywhere } from "./nodes";
import { echoes, inPod, namespace, port } from "./pods";

interface Service {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly clusterIPs: readonly string[] };
}
interface EndpointSlice {
  /** Null where the Service has none. */
  readonly endpoints:
    | readonly {
        readonly addresses: readonly string[];
        readonly conditions: { readonly ready: boolean };
      }[]
    | null;
}

/** The sets that kube-proxy makes in this mode, for IPv4. */
const sets = [
  ...["KUBE-LOOP-BACK", "KUBE-CLUSTER-IP", "KUBE-EXTERNAL-IP", "KUBE-EXTERNAL-IP-LOCAL"],
  ...["KUBE-LOAD-BALANCER", "KUBE-LOAD-BALANCER-LOCAL", "KUBE-LOAD-BALANCER-FW"],
  ...["KUBE-LOAD-BALANCER-SOURCE-IP", "KUBE-LOAD-BALANCER-SOURCE-CIDR"],
  ...["KUBE-NODE-PORT-TCP", "KUBE-NODE-PORT-LOCAL-TCP", "KUBE-NODE-PORT-UDP"],
  ...["KUBE-NODE-PORT-LOCAL-UDP", "KUBE-NODE-PORT-SCTP-HASH", "KUBE-NODE-PORT-LOCAL-SCTP-HASH"],
  "KUBE-IPVS-IPS",
];

const many = "zoned-suite-many";

/** Targets of a virtual server, as `ipvsadm -Ln` lists them. */
function targetsOf(table: string, server: string): string[] {
  const lines = table.split("\n");
  const from = lines.findIndex((line) => line.startsWith(`TCP  ${server} `));
  if (from < 0) throw new Error(`IPVS has no server ${server}:\n${table}`);
  const rest = lines.slice(from + 1);
  const next = rest.findIndex((line) => !line.startsWith("  ->"));
  return rest
    .slice(0, next < 0 ? undefined : next)
    .map((line) => line.trim().split(/\s+/)[1]!)
    .sort();
}

const addressesOf = async (
  cluster: RealCluster,
  namespace: string,
  name: string,
): Promise<string[]> => {
  const label = `kubernetes.io/service-name=${name}`;
  const slices = await cluster.get<EndpointSlice>(
    ...["endpointslices", "--namespace", namespace, "--selector", label],
  );
  const ready = slices
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions.ready);
  return ready.flatMap(({ addresses }) => addresses);
};

/** How many rules iptables has once IPVS has every one of so many Services. */
async function rulesWith(cluster: RealCluster, machine: string, count: number): Promise<number> {
  const services = Array.from({ length: count }, (_, index) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `many-${index}`, namespace: many },
    spec: { selector: { app: "nobody" }, ports: [{ port: 80 }] },
  }));
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: many } };
  await cluster.apply(namespace, ...services);
  const all = (await cluster.get<Service>("services", "--all-namespaces")).map(
    ({ spec }) => `${spec.clusterIPs[0]}/32`,
  );
  await eventually(240, cluster.signal, async () => {
    const bound = await cluster.inMachine(machine, "ip -o -4 address show dev kube-ipvs0");
    expectAll(`kube-ipvs0 of ${machine}`, bound.split(/\s+/), all);
  });
  return Number(await cluster.inMachine(machine, "iptables-save | grep -c ^-A"));
}

/** Every machine's kube-proxy says that this is its mode. */
export const expectMode = (cluster: RealCluster, mode: string): Promise<void> =>
  everywhere(cluster, async (name) => {
    const ask = "curl -sS --max-time 20 http://127.0.0.1:10249/proxyMode";
    expectSame(`mode of ${name}`, await cluster.inMachine(name, ask), mode);
  });

export const serviceClaims: readonly Claim[] = [
  {
    sentence: "kube-proxy says that its mode is ipvs, on every machine",
    check: (cluster) => expectMode(cluster, "ipvs"),
  },
  {
    sentence: "kube-ipvs0 has every Service's address, on every machine",
    check: (cluster) =>
      everywhere(cluster, async (name) => {
        const services = await cluster.get<Service>("services", "--all-namespaces");
        const addresses = services
          .flatMap(({ spec }) => spec.clusterIPs)
          .filter((address) => address !== "None")
          .map((address) => `${address}/32`);
        const bound = await cluster.inMachine(name, "ip -o -4 address show dev kube-ipvs0");
        expectAll(`kube-ipvs0 of ${name}`, bound.split(/\s+/), addresses);
      }),
  },
  {
    sentence:
      "IPVS sends 10.96.0.1:443 to the API servers and 10.96.0.10:53 to CoreDNS, on every machine",
    check: (cluster) =>
      everywhere(cluster, async (name) => {
        const machines = await cluster.machines();
        const api = machines
          .filter(({ role }) => role === "control-plane")
          .map(({ address }) => `${address}:6443`);
        await eventually(240, cluster.signal, async () => {
          const table = await cluster.inMachine(name, "ipvsadm -Ln");
          const dns = await addressesOf(cluster, "kube-system", "kube-dns");
          expectSame(`API on ${name}`, targetsOf(table, "10.96.0.1:443"), api.sort());
          expectSame(
            `DNS on ${name}`,
            targetsOf(table, "10.96.0.10:53"),
            dns.map((one) => `${one}:53`).sort(),
          );
          expectSame("pods of CoreDNS", dns.length, 2);
        });
      }),
  },
  {
    sentence: "kube-proxy's ipsets exist, on every machine",
    check: (cluster) =>
      everywhere(cluster, async (name) =>
        expectAll(
          `sets of ${name}`,
          (await cluster.inMachine(name, "ipset list -n")).split("\n"),
          sets,
        ),
      ),
  },
];

/** Apart from the others, and last: an emulated control plane takes Services away at six a minute. */
export const manyServicesClaims: readonly Claim[] = [
  {
    sentence: "with 200 Services iptables has as many rules as with 10",
    check: async (cluster) => {
      const [machine = ""] = (await cluster.names("worker")).concat(await cluster.names());
      try {
        const few = await rulesWith(cluster, machine, 10);
        const all = await rulesWith(cluster, machine, 200);
        expectSame("rules with 200 Services", all, few);
        return `${all} rules`;
      } finally {
        await cluster.kubectl(["delete", "namespace", many, "--wait=false", "--ignore-not-found"]);
      }
    },
  },
];

interface Traced {
  readonly mode: string;
  readonly verdict: string;
  readonly endpoints: readonly { readonly address: string; readonly probability: number }[];
}

const commands = join(checkout, "tools/cli/zoned.cjs");
const service = `${namespace}/echo`;

/**
 * Where a pod's packet to the Service goes by the rules of its own node, as `npm run trace` says.
 */
async function traced(cluster: RealCluster): Promise<string> {
  const [pod] = await echoes(cluster);
  const { nodeName } = pod!.spec;
  const text = await run(
    [
      ...[process.execPath, commands, "trace", "--json", "--node", nodeName],
      ...["--kubeconfig", await cluster.kubeconfig(), "--service", service],
      ...["--from", "pod", "--source", pod!.status.podIP],
    ],
    { signal: cluster.signal },
  );
  const { mode, verdict, endpoints } = JSON.parse(text) as Traced;
  const all = (await echoes(cluster)).map(({ status }) => `${status.podIP}:${port}`);
  expectSame("verdict", verdict, "dnat");
  expectSame("endpoints", endpoints.map(({ address }) => address).sort(), all.sort());
  const shares = endpoints.map(({ probability }) => probability.toFixed(3));
  expectSame("shares", [...new Set(shares)], [(1 / all.length).toFixed(3)]);
  return mode;
}

/**
 * What of one mode is in a machine's kernel, one word for each thing of which there is something.
 */
const left = {
  ipvs: `
ip link show kube-ipvs0 >/dev/null 2>&1 && echo kube-ipvs0
[ -n "$(ipvsadm -Sn)" ] && echo servers
ipset list -n | grep -q '^KUBE-' && echo sets
iptables-save -t nat | grep -q '^-A KUBE-SERVICES' && echo rules
true`,
  nftables: `
nft list tables | grep -q 'kube-proxy' && echo tables
true`,
};

const inKernels = (
  cluster: RealCluster,
  mode: keyof typeof left,
  expected: readonly string[],
): Promise<void> =>
  everywhere(cluster, async (name) => {
    const words = (await cluster.inMachine(name, left[mode])).split("\n").filter(Boolean);
    expectSame(`${mode} in the kernel of ${name}`, words, expected);
  });

/**
 * The mode is another after one `pulumi up`, on the same machines, and the Service still answers.
 */
async function switchTo(
  cluster: RealCluster,
  mode: keyof typeof left,
  settings: Readonly<Record<string, unknown>>,
): Promise<void> {
  const before = await cluster.generations();
  await cluster.configure(settings);
  succeeded(await cluster.up());
  expectSame("machines", await cluster.generations(), before);
  await expectMode(cluster, mode);
  const [pod] = await echoes(cluster);
  const ask = () => inPod(cluster, pod!, `wget -qO- -T 10 http://echo.${namespace}:${port}/`);
  await eventually(240, cluster.signal, ask);
  expectSame("mode by the dumps", await traced(cluster), mode);
}

export const switchingClaims: readonly Claim[] = [
  {
    sentence:
      "`npm run trace` takes the dumps of a living node, and leads a pod's packet to a Service's pods",
    check: async (cluster) => expectSame("mode by the dumps", await traced(cluster), "ipvs"),
  },
  {
    sentence:
      "proxyMode from ipvs to nftables is one `pulumi up`: no machine is replaced, and no kernel has anything left of IPVS",
    check: async (cluster) => {
      await switchTo(cluster, "nftables", { proxyMode: "nftables" });
      await inKernels(cluster, "ipvs", []);
      await inKernels(cluster, "nftables", ["tables"]);
      unchanged(await cluster.up());
    },
  },
  {
    sentence: "and back to ipvs, with nothing left of nftables",
    check: async (cluster) => {
      await switchTo(cluster, "ipvs", {});
      await inKernels(cluster, "ipvs", ["kube-ipvs0", "servers", "sets", "rules"]);
      await inKernels(cluster, "nftables", []);
    },
  },
];
