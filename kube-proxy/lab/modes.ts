import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

import { environment } from "./enter";
import type { Mode } from "./proxy";

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
