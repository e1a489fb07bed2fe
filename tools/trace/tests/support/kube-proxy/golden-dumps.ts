import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Mode } from "../../../../lab/packets/cluster";

/** What a command printed on a node; `file` is the command. */
export interface Dump {
  readonly file: string;
  readonly text: string;
}

export const goldenFile = (mode: Mode): string => join(__dirname, "golden", `${mode}.txt`);

/** Dumps as a terminal shows them, and as the file of a mode has them. */
export const sessionText = (dumps: readonly Dump[]): string =>
  dumps.map(({ file, text }) => `$ ${file}\n${text}`).join("");

/** What a real kube-proxy of a mode wrote, by each command that dumps it. */
export const goldenDumps = (mode: Mode): Dump[] =>
  readFileSync(goldenFile(mode), "utf8")
    .split(/^\$ (.*)\n/m)
    .slice(1)
    .flatMap((file, at, parts) => (at % 2 === 0 ? [{ file, text: parts[at + 1]! }] : []));

export const goldenDump = (mode: Mode, command: string): string =>
  goldenDumps(mode).find(({ file }) => file === command)!.text;

/** What a node in IPVS mode has, by what it is. */
export const ipvs = {
  rules: goldenDump("ipvs", "iptables-save"),
  sets: goldenDump("ipvs", "ipset save"),
  servers: goldenDump("ipvs", "ipvsadm -Sn"),
  addresses: goldenDump("ipvs", "ip address"),
};
