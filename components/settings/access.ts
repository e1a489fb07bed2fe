import { Address4 } from "ip-address";

import type { Settings } from "../settings";
import { corrected, parseRange } from "./cidr";
import { found, Problem, toRemove, toSet, wants } from "./problem";

/** Azure refuses a security rule in which one range lies in another. */
function accessRanges(
  key: "apiAccessCidrs" | "sshAccessCidrs",
  ranges: readonly string[],
): Problem[] {
  return ranges.flatMap((text, index) => {
    const at = `${key}[${index}]`;
    const range = parseRange(text);
    if (range === undefined) {
      const single = parseRange(`${text}/32`);
      return single === undefined
        ? [
            {
              key: at,
              is: found(text),
              expected: "an IPv4 range in CIDR form, since the API has an IPv4 address only",
              mend: toSet(at, "203.0.113.0/24"),
            },
          ]
        : wants(at, text, "a range in CIDR form; a single address is a /32", `${text}/32`);
    }
    if (corrected(range) !== text) {
      return wants(
        at,
        text,
        `the range's first address, which is ${corrected(range)}`,
        corrected(range),
      );
    }
    const outer = ranges.find(
      (other, position) =>
        position !== index &&
        parseRange(other) !== undefined &&
        range.isInSubnet(new Address4(other)) &&
        (other !== text || position < index),
    );
    if (outer === undefined) return [];
    return {
      key: at,
      is: found(text),
      expected: `a range outside ${outer}, since Azure takes no overlapping ranges in one rule`,
      mend: toRemove(at),
    };
  });
}

/** What is wrong with who gets in: nobody does unless somebody said who. */
export const accessProblems = ({ apiAccessCidrs, sshAccessCidrs }: Settings): Problem[] => [
  ...(apiAccessCidrs.length > 0
    ? []
    : [
        wants(
          "apiAccessCidrs[0]",
          undefined,
          "the ranges that may reach the Kubernetes API, such as your office's; " +
            "0.0.0.0/0 opens it to everyone",
          "203.0.113.0/24",
        ),
      ]),
  ...accessRanges("apiAccessCidrs", apiAccessCidrs),
  ...accessRanges("sshAccessCidrs", sshAccessCidrs),
];
