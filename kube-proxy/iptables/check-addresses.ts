import { isIP } from "node:net";

import { DumpProblem } from "../dump-problem";

/** What nearly all rules have; the others take longer to tell. */
const plain =
  /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?=\d)|(?=[/:]|$))){4}(\/(3[0-2]|[12]?\d)|:\d{1,4})?$/;
const options = / (?:-[sd]|--to-destination) (?:! )?(\S+)/g;

/** What iptables-save prints for an address is one; a misprint would match nothing, and nobody would see why. */
export function checkAddresses(rule: string, file: string, line: number): void {
  const wrong = misprinted(rule) && misprinted(rule.replace(/"[^"]*"/g, '""'));
  if (wrong)
    throw new DumpProblem(
      file,
      line,
      "an address such as 10.0.0.1, 10.0.0.0/8 or 10.0.0.1:80",
      wrong,
    );
}

function misprinted(rule: string): string | undefined {
  for (const [, text = ""] of rule.matchAll(options)) {
    if (!text.split(",").every(isAddress)) return text;
  }
  return undefined;
}

/** `10.0.0.1`, `10.0.0.0/255.0.0.0`, `10.0.0.1:80`, `[fd00::1]:80`, `:80`, and ranges of them. */
function isAddress(text: string): boolean {
  if (plain.test(text) || text.split("-").every((each) => isIP(each) > 0)) return true;
  const [address = "", mask] = text.split("/");
  if (mask !== undefined) return isIP(address) > 0 && isMask(mask, isIP(address));
  const socket = /^(?:\[(.+)\]|([^[\]:]*)):(\d+)(?:-\d+)?$/.exec(text);
  if (socket === null || Number(socket[3]) > 65_535) return false;
  const ends = socket[1] ?? socket[2];
  return ends === "" || ends!.split("-").every((each) => isIP(each) > 0);
}

const isMask = (mask: string, family: number): boolean =>
  /^\d+$/.test(mask) ? Number(mask) <= (family === 4 ? 32 : 128) : isIP(mask) === family;
