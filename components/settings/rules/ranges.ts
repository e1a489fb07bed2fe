import { Address4 } from "ip-address";

import { Problem, toRemove, wants } from "../problem";
import type { Settings } from "../settings";
import { maxPools, poolRoom } from "../topology";

/** The range as Azure and Kubernetes accept it, or nothing where there is none. */
export function parseRange(text: string): Address4 | undefined {
  if (!/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}\/(0|[1-9]\d?)$/.test(text)) return undefined;
  return Address4.isValid(text) ? new Address4(text) : undefined;
}

/** The same range without host bits: 172.16.5.4/16 is 172.16.0.0/16. */
export const corrected = (range: Address4): string =>
  `${range.startAddress().correctForm()}/${range.subnetMask}`;

/** Whether two ranges share an address. */
export const overlap = (a: string, b: string): boolean => {
  const [left, right] = [new Address4(a), new Address4(b)];
  return left.isInSubnet(right) || right.isInSubnet(left);
};

interface Claim {
  readonly range: string;
  readonly what: string;
}

const claimedByOthers: readonly Claim[] = [
  { range: "0.0.0.0/8", what: "which no packet can be sent to" },
  { range: "127.0.0.0/8", what: "a machine's own loopback" },
  { range: "168.63.129.16/32", what: "where Azure's DNS and balancer probes live" },
  { range: "169.254.0.0/16", what: "where Azure's metadata lives" },
  { range: "224.0.0.0/3", what: "multicast and reserved addresses" },
];

type RangeKey = "networkCidr" | "podCidr" | "serviceCidr";

/** Kubernetes gives each node a /24 of the pods' range, and knows at most 2^16 of those. */
const nodeBits = 24;
const mostNodes = 2 ** 16;
const nodesIn = (podCidr: string): number =>
  Math.floor(Math.min(mostNodes, 2 ** (nodeBits - (parseRange(podCidr)?.subnetMask ?? nodeBits))));
const machineCount = ({ controlPlaneCount, workerPools }: Settings): number =>
  workerPools.reduce((sum, { count }) => sum + count, controlPlaneCount);

interface Size {
  readonly widest: number;
  readonly narrowest: number;
  readonly why: string;
}

const sizes = (settings: Settings): Record<RangeKey, Size> => ({
  networkCidr: {
    widest: 8,
    narrowest: 20,
    why: "each zone's subnet is a 256th of it, and Azure's smallest useful one holds 16 addresses",
  },
  podCidr: {
    widest: 8,
    narrowest: nodeBits - Math.ceil(Math.log2(Math.max(1, machineCount(settings)))),
    why:
      `each of ${machineCount(settings)} machines takes a /24, and Kubernetes counts ${mostNodes} of those at most; ` +
      `a cluster that exists keeps its range, which holds ${nodesIn(settings.podCidr)}`,
  },
  serviceCidr: {
    widest: 12,
    narrowest: 24,
    why:
      "kube-apiserver takes no more addresses than a /12 has, and a cluster soon needs " +
      "more than a /24 has",
  },
});

const candidates: Record<RangeKey, readonly string[]> = {
  networkCidr: ["172.16.0.0/16", "10.240.0.0/16", "192.168.0.0/16"],
  podCidr: [
    ...["10.244.0.0/16", "192.168.0.0/16", "100.64.0.0/10", "10.128.0.0/9"],
    ...["10.0.0.0/9", "172.16.0.0/12"],
  ],
  serviceCidr: ["10.96.0.0/12", "192.168.0.0/16", "100.64.0.0/16"],
};

/** A range that is valid and free, whatever the others are; its place where this program knows none. */
function better(settings: Settings, key: RangeKey): string {
  const taken = (["networkCidr", "podCidr", "serviceCidr"] as const)
    .filter((other) => other !== key && parseRange(settings[other]) !== undefined)
    .map((other) => settings[other]);
  const free = candidates[key].filter(
    (range) =>
      new Address4(range).subnetMask <= sizes(settings)[key].narrowest &&
      !taken.some((other) => overlap(range, other)),
  );
  return free[0] ?? "RANGE";
}

/** What is wrong with a range, and what it may be instead. */
interface Flaw {
  readonly expected: string;
  readonly fixed: string;
}

function flawOf(settings: Settings, key: RangeKey): Flaw | undefined {
  const text = settings[key];
  const wrong = (expected: string, fixed = better(settings, key)): Flaw => ({ expected, fixed });
  const range = parseRange(text);
  if (range === undefined) return wrong("an IPv4 range in CIDR form");
  if (corrected(range) !== text) {
    return wrong(`the range's first address, which is ${corrected(range)}`, corrected(range));
  }
  const { widest, narrowest, why } = sizes(settings)[key];
  if (range.subnetMask < widest || range.subnetMask > narrowest) {
    return wrong(`a range from /${widest} to /${narrowest}, since ${why}`);
  }
  const claim = claimedByOthers.find((other) => overlap(text, other.range));
  return claim && wrong(`a range apart from ${claim.range}, ${claim.what}`);
}

const pairs: readonly (readonly [RangeKey, RangeKey])[] = [
  ["podCidr", "networkCidr"],
  ["serviceCidr", "networkCidr"],
  ["serviceCidr", "podCidr"],
];

/** What is wrong with ranges by themselves, else beside each other; no command gives what another one gives already. */
function flaws(settings: Settings): Problem[] {
  let fixed = settings;
  const problem = (key: RangeKey, flaw: Flaw): Problem => {
    fixed = { ...fixed, [key]: flaw.fixed };
    return wants(key, settings[key], flaw.expected, flaw.fixed);
  };
  const single = keysOf(settings).flatMap((key) => {
    const flaw = flawOf(fixed, key);
    return flaw === undefined ? [] : problem(key, flaw);
  });
  if (single.length > 0) return single;
  return pairs
    .filter(
      ([key, other]) => keysOf(settings).includes(other) && overlap(settings[key], settings[other]),
    )
    .map(([key, other]) =>
      problem(key, {
        expected: `a range apart from ${other} ${settings[other]}, so that an address means one thing`,
        fixed: better(fixed, key),
      }),
    );
}

function poolsFit(settings: Settings): Problem[] {
  if (settings.workerPools.length > maxPools) {
    return [
      {
        key: "workerPools",
        is: `has ${settings.workerPools.length} entries`,
        expected: `at most ${maxPools}, since each has its own part of every zone's subnet`,
        fix: toRemove(`workerPools[${maxPools}]`),
      },
    ];
  }
  if (
    machineCount(settings) > settings.controlPlaneCount &&
    poolRoom(settings.networkCidr, 0) < 1
  ) {
    return [
      wants(
        "networkCidr",
        settings.networkCidr,
        "a /19 or wider, since narrower subnets have no room for workers",
        better(settings, "networkCidr"),
      ),
    ];
  }
  return settings.workerPools.flatMap(({ count, zones }, position) => {
    const most = poolRoom(settings.networkCidr, position) * zones.length;
    if (count <= most || zones.length === 0) return [];
    return wants(
      `workerPools[${position}].count`,
      count,
      `at most ${most}, as its part of ${zones.length} subnets of ${settings.networkCidr} holds; ` +
        "more need another pool, or a cluster in a wider networkCidr",
      most,
    );
  });
}

/** In subnets that exist already, the network's range is that of others. */
const keysOf = ({ nodeSubnets }: Settings): RangeKey[] => [
  ...(nodeSubnets.length === 0 ? (["networkCidr"] as const) : []),
  "podCidr",
  "serviceCidr",
];

/** What is wrong with the cluster's own ranges. */
export function rangeProblems(settings: Settings): Problem[] {
  const hasNetwork =
    settings.nodeSubnets.length === 0 && flawOf(settings, "networkCidr") === undefined;
  const pools = hasNetwork ? poolsFit(settings) : [];
  // How many machines are to be in pools that do not fit is not known, nor how wide podCidr has to be.
  const counted = pools.length > 0 ? { ...settings, workerPools: [] } : settings;
  return [...flaws(counted), ...pools];
}

/** Ranges that are not routed on the internet: RFC 1918, 6598 and 2544. */
const privateRanges = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "198.18.0.0/15",
].map((range) => new Address4(range));

export const isPrivate = (range: string): boolean =>
  privateRanges.some((whole) => new Address4(range).isInSubnet(whole));
