import { Address4 } from "ip-address";

import { corrected, parseRange } from "./ranges";
import { found, Problem, toRemove, toSet, wants } from "../problem";
import type { Settings } from "../settings";

type Key = "apiAccessCidrs" | "sshAccessCidrs";

/**
 * Azure takes 4,000 addresses and ranges in the rules of a security group; the cluster's own rules
 * and those of its Services need some.
 */
const mostRanges = 3_900;

/** First and last address of a range. */
const bounds = (range: Address4): readonly [bigint, bigint] => [
  range.startAddress().bigInt(),
  range.endAddress().bigInt(),
];

/** Azure refuses a security rule in which one range lies in another. */
function accessRanges(key: Key, ranges: readonly string[]): Problem[] {
  const parsed = ranges.map((text) => ({ text, range: parseRange(text) }));
  const known = parsed.map(({ range }) => range && bounds(range));
  return parsed.flatMap(({ text, range }, index) => {
    const at = `${key}[${index}]`;
    if (range === undefined) {
      const single = parseRange(`${text}/32`);
      return single === undefined
        ? [
            {
              key: at,
              is: found(text),
              expected: "an IPv4 range in CIDR form, since the API has an IPv4 address only",
              fix: toSet(at, "203.0.113.0/24"),
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
    const [first, last] = known[index]!;
    const outer = known.findIndex(
      (other, position) =>
        position !== index &&
        other !== undefined &&
        other[0] <= first &&
        last <= other[1] &&
        (ranges[position] !== text || position < index),
    );
    if (outer < 0) return [];
    return {
      key: at,
      is: found(text),
      expected: `a range outside ${ranges[outer]}, since Azure takes no overlapping ranges in one rule`,
      fix: toRemove(at),
    };
  });
}

function tooMany({ apiAccessCidrs, sshAccessCidrs }: Settings): Problem[] {
  const count = apiAccessCidrs.length + sshAccessCidrs.length;
  if (count <= mostRanges) return [];
  const key: Key =
    apiAccessCidrs.length < sshAccessCidrs.length ? "sshAccessCidrs" : "apiAccessCidrs";
  const longer = Math.max(apiAccessCidrs.length, sshAccessCidrs.length);
  return [
    {
      key,
      is: `has ${longer} of the ${count} ranges of apiAccessCidrs and sshAccessCidrs`,
      expected: `at most ${mostRanges} in both, since Azure takes 4000 in all rules of a security group; put neighbours together`,
      fix: toRemove(`${key}[${longer - 1}]`),
    },
  ];
}

/** Problems of API and SSH access, which are closed by default. */
export function accessProblems(settings: Settings): Problem[] {
  const { apiAccess, apiAccessCidrs, sshAccessCidrs } = settings;
  return [
    ...(apiAccess === "private" || apiAccessCidrs.length > 0
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
    ...tooMany(settings),
    ...accessRanges("apiAccessCidrs", apiAccessCidrs),
    ...accessRanges("sshAccessCidrs", sshAccessCidrs),
  ];
}
