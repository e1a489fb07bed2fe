import { Address4 } from "ip-address";

import { found, Problem, toRemove, toSet, wants } from "../problem";
import type { Settings } from "../settings";
import { corrected, parseRange } from "./ranges";
import { hasLogin, withoutLogin } from "../proxy";

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

const key = "sshPublicKey";
const fix = `pulumi config set ${key} -- "$(cat ~/.ssh/id_ed25519.pub)"`;
const leastRsaBits = 2048;

/** The length-prefixed strings that an OpenSSH key is made of, as far as they are whole. */
function fields(blob: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at + 4 <= blob.length;) {
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) break;
    parts.push(blob.subarray(at + 4, end));
    at = end;
  }
  return parts;
}

/** Bits of a number that is written with a leading zero byte where its first bit is set. */
const bitsOf = (modulus: Buffer): number =>
  modulus.length === 0 ? 0 : BigInt(`0x${modulus.toString("hex")}`).toString(2).length;

function flawOf(type: string, base64: string): string | undefined {
  const blob = Buffer.from(base64, "base64");
  const parts = fields(blob);
  const whole = parts.reduce((length, part) => length + 4 + part.length, 0) === blob.length;
  if (parts[0]?.toString() !== type || !whole) return "is cut short or damaged";
  if (type === "ssh-ed25519")
    return parts[1]?.length === 32 ? undefined : "is cut short or damaged";
  const bits = bitsOf(parts[2] ?? Buffer.alloc(0));
  return bits < leastRsaBits ? `is an RSA key of ${bits} bits` : undefined;
}

/**
 * What is wrong with the operator's key. It is never repeated: what was pasted may be the private
 * half.
 */
export function sshKeyProblems(text: string): Problem[] {
  const refused = (is: string, expected: string): Problem[] => [{ key, is, expected, fix }];
  const publicKey = "an OpenSSH public key, the one line of a .pub file";
  if (text === "")
    return refused(found(text), `${publicKey}, since Azure makes no machine without one`);
  if (/PRIVATE KEY/.test(text)) {
    return refused(
      "is a private key",
      `${publicKey}; the private half is now in this stack's file and perhaps in its ` +
        "history: make a new pair",
    );
  }
  const [type = "", base64 = ""] = text.trim().split(/\s+/);
  if (text.trim().includes("\n")) return refused("has more than one line", publicKey);
  if (/^(ecdsa-|sk-)/.test(type)) {
    return refused(`is of type ${type}`, "ssh-ed25519 or ssh-rsa, the types that Azure takes");
  }
  if (type !== "ssh-ed25519" && type !== "ssh-rsa") return refused("is something else", publicKey);
  const flaw = flawOf(type, base64);
  if (flaw === undefined) return [];
  return refused(
    flaw,
    type === "ssh-rsa" ? `${publicKey}, of ${leastRsaBits} bits or more as Azure wants` : publicKey,
  );
}

const label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
const dnsName = new RegExp(`^(?=.{1,253}$)(${label}\\.)+${label}$`);

function nameProblems({ apiAccess, apiName }: Settings): Problem[] {
  if (apiName === "") return [];
  const wrong = (expected: string): Problem[] => [wants("apiName", apiName, expected, "")];
  if (apiAccess === "public") {
    return wrong(
      "nothing where apiAccess is public, since a public address has a name of Azure's; " +
        "another name for it belongs into apiExtraSans",
    );
  }
  return dnsName.test(apiName) && !/\.\d+$/.test(apiName)
    ? []
    : wrong(
        "a DNS name of lower-case letters, digits and -, such as api.zoned.example, or nothing",
      );
}

function proxyProblems({ apiProxy }: Settings): Problem[] {
  if (apiProxy === "") return [];
  if (hasLogin(apiProxy)) {
    return [
      {
        key: "apiProxy",
        is: "holds a user's name or password",
        expected: "an address without one, since the stack's file is no place for secrets",
        fix: toSet("apiProxy", withoutLogin(apiProxy)),
      },
    ];
  }
  if (URL.canParse(apiProxy) && /^https?:\/\/[\w.-]+(:\d+)?\/?$/.test(apiProxy)) return [];
  return [
    wants(
      "apiProxy",
      apiProxy,
      "the address of an HTTP proxy, as http:// or https:// with a host and a port, or nothing",
      "",
    ),
  ];
}

/**
 * A connection from the internet comes in by the balancer, and its answer would leave by the firewall
 * that the routes lead to, which has never seen it begin. In subnets of others their routes are looked at.
 */
const egressProblems = ({ apiAccess, egress, nodeSubnets }: Settings): Problem[] =>
  apiAccess === "public" && egress === "none" && nodeSubnets.length === 0
    ? [
        {
          key: "egress",
          is: found(egress),
          expected:
            "zonal or single beside a public API, since its answers would leave by the network's own routes, " +
            "to a firewall that has not seen the connection begin",
          fix: toSet("apiAccess", "private"),
        },
      ]
    : [];

/** What is wrong with the way to the API. */
export const apiProblems = (settings: Settings): Problem[] => [
  ...nameProblems(settings),
  ...proxyProblems(settings),
  ...egressProblems(settings),
];
