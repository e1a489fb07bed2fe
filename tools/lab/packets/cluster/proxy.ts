import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { folder, type Running, start } from "../task";
import { kubeconfig } from "./api-server";

export type Mode = "iptables" | "nftables" | "ipvs";

/** kube-proxy as kubeadm configures it, but for what a namespace does not let it change. */
function configuration(mode: Mode, node: string, pods: string): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    hostnameOverride: node,
    clusterCIDR: pods,
    clientConnection: { kubeconfig },
    metricsBindAddress: "127.0.0.1:10249",
    healthzBindAddress: "127.0.0.1:10256",
    conntrack: { maxPerCore: 0 },
    oomScoreAdj: 0,
  };
}

/** iptables 1.8.9 takes minutes for 5,000 Services, the more the more there are. */
const syncSeconds = 720;

/** A kube-proxy of the node of that name; done when it has written all its rules. */
export async function startProxy(
  binary: string,
  mode: Mode,
  { node, pods }: { node: string; pods: string },
): Promise<Running> {
  const config = join(folder, `${mode}.json`);
  writeFileSync(config, JSON.stringify(configuration(mode, node, pods)));
  const proxy = start(`kube-proxy-${mode}`, binary, [`--config=${config}`]);
  await written(proxy, 0);
  return proxy;
}

/** Done when the rules have a change of this time, in milliseconds since 1970, and all before. */
export const written = (proxy: Running, since: number): Promise<void> =>
  proxy.until("a sync", syncSeconds, async () => isInStep(await metrics(), since / 1000));

const metrics = async (): Promise<string> => (await fetch("http://127.0.0.1:10249/metrics")).text();

/** The values of a metric by IP family. */
function values(text: string, name: string): Map<string, number> {
  const line = new RegExp(String.raw`^kubeproxy_${name}\{ip_family="(\w+)"\} (\S+)$`, "gm");
  return new Map([...text.matchAll(line)].map(([, family = "", value]) => [family, Number(value)]));
}

/** Whether there was something to write since, and it has been, in every family. */
function isInStep(text: string, since: number): boolean {
  const queued = values(text, "sync_proxy_rules_last_queued_timestamp_seconds");
  const done = values(text, "sync_proxy_rules_last_timestamp_seconds");
  return (
    queued.size > 0 &&
    [...queued].every(([family, at]) => since <= at && at <= (done.get(family) ?? 0))
  );
}

/** A metric of kube-proxy's IPv4 half. */
export const metric = async (name: string): Promise<number> =>
  values(await metrics(), name).get("IPv4") ?? 0;

const ticksPerSecond = 100;

/** Seconds of processor time that a process and the tools it ran have used. */
export function processorSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the program's name, which may hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user = 0, system = 0, ofTools = 0, ofToolsInSystem = 0] = fields.slice(11, 15).map(Number);
  return (user + system + ofTools + ofToolsInSystem) / ticksPerSecond;
}
