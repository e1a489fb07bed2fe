import { join } from "node:path";

import { run } from "../../../shared/run";
import { checkout } from "../../../shared/checkout";
import { succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { everywhere } from "./nodes";
import { echoes, inPod, namespace, port } from "./pods";
import { expectMode } from "./services";

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
