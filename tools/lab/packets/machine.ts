import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";

import { install, type InstallOptions, placesOf } from "../../programs/installs";
import { clusterTools, nodeTool } from "../../programs/tools";
import { run } from "../../shared/run";
import type { ControlPlane, Mode } from "./cluster";
import { environment } from "./enter";

/** The first line of a program's version. */
const versionOf = async (command: string): Promise<string> =>
  (await run([command, "--version"], { env: environment })).split("\n")[0] ?? "";

/** What figures depend on, one line each. */
export async function machine(): Promise<string[]> {
  const [first] = cpus();
  return [
    `kube-proxy v${nodeTool.version}`,
    `${cpus().length} processors (${first?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `Linux ${release().split("-")[0]}`,
    await versionOf("iptables"),
    await versionOf("nft"),
  ];
}

/** Paths of the programs that a lab runs. */
export type LabBinaries = ControlPlane & { readonly "kube-proxy": string };

const names = ["etcd", "kube-apiserver", "kube-proxy"] as const;

/** The programs of a lab out of the cache, installed there first where they are missing. */
export async function labBinaries(options: InstallOptions): Promise<LabBinaries> {
  const tools = [...clusterTools, nodeTool].filter(({ binaries }) =>
    names.some((name) => binaries.includes(name)),
  );
  await install(tools, options);
  const places: Record<string, string> = Object.assign({}, ...tools.map((tool) => placesOf(tool)));
  return Object.fromEntries(names.map((name) => [name, places[name]])) as unknown as LabBinaries;
}

const ipvsCommands = { ipset: "ipset", ipvsadm: "ipvsadm" };

/** The modes that kube-proxy can have on this machine, and why it cannot have others. */
export function modesHere(): { readonly modes: readonly Mode[]; readonly leftOut: string[] } {
  const reason = whyNotIpvs();
  // A namespace's virtual servers stay when their kube-proxy ends, so this mode comes last.
  return reason === undefined
    ? { modes: ["iptables", "nftables", "ipvs"], leftOut: [] }
    : { modes: ["iptables", "nftables"], leftOut: [`ipvs is left out: ${reason}`] };
}

function whyNotIpvs(): string | undefined {
  spawnSync("modprobe", ["ip_vs"], { env: environment });
  if (!existsSync("/proc/net/ip_vs")) return "this kernel has no IPVS";
  const missing = Object.entries(ipvsCommands).find(
    ([command]) => spawnSync(command, ["--version"], { env: environment }).error,
  );
  return missing && `${missing[0]} is missing: apt-get install ${missing[1]}`;
}
