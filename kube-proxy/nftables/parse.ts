import { readJson } from "./read-json";
import { readText } from "./read-text";
import type { Ruleset } from "./ruleset";

/** Whether a text is what `nft list` prints, as text or as JSON. */
export function recognises(text: string): boolean {
  if (/^\s*\{\s*"nftables"\s*:/.test(text)) return true;
  return /^[ \t]*table\s+(?:(?:ip6?|inet|arp|bridge|netdev)\s+)?[\w.\\/-]+\s*\{/m.test(text);
}

/** Throws a DumpProblem where a listing is cut off or contradicts itself. */
export function parse(text: string, file: string, firstLine: number): Ruleset {
  return /^\s*\{/.test(text) ? readJson(text, file, firstLine) : readText(text, file, firstLine);
}
