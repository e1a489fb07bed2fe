import { isIP } from "node:net";

/** What the parser of a flag's type takes, and how to say it. */
interface Type {
  readonly takes: (text: string) => boolean;
  readonly expected: string;
}

const goInteger = /^(0[xX](_?[\da-fA-F])+|0[bB](_?[01])+|0[oO]?(_?[0-7])+|0|[1-9](_?\d)*)$/;

/** What is between the commas of a list. */
export const entriesOf = (list: string): string[] =>
  list.split(",").flatMap((entry) => (entry.trim() === "" ? [] : [entry.trim()]));

/** An entry that is a name with a value, as in a=true. */
export function pairOf(entry: string): readonly [name: string, value: string | undefined] {
  const [name = "", value] = entry.split("=").map((part) => part.trim());
  return [name, value];
}

/** A flag's number as Go reads it; NaN for anything else. */
export const goNumber = (text: string): number => Number(integerOf(text) ?? (text || NaN));

/** Go's integer with any prefix of a base; undefined for anything else. */
function integerOf(text: string): bigint | undefined {
  const digits = text.replace(/^[+-]/, "");
  if (!goInteger.test(digits)) return undefined;
  const plain = digits.replaceAll("_", "").toLowerCase();
  const value = BigInt(/^0\d/.test(plain) ? `0o${plain}` : plain);
  return text.startsWith("-") ? -value : value;
}

const signed = (bits: number): Type => ({
  takes: (text) => {
    const value = integerOf(text);
    return value !== undefined && BigInt.asIntN(bits, value) === value;
  },
  expected: bits === 32 ? "a whole number up to 2147483647" : "a whole number",
});

const unsigned = (bits: number): Type => ({
  takes: (text) => {
    const value = /^[+-]/.test(text) ? undefined : integerOf(text);
    return value !== undefined && BigInt.asUintN(bits, value) === value;
  },
  expected: "a whole number from 0",
});

const float = (most: number): Type => ({
  takes: (text) =>
    /^[+-]?(inf(inity)?|nan)$/i.test(text) ||
    /^[+-]?0x([\da-f]+\.?[\da-f]*|\.[\da-f]+)p[+-]?\d+$/i.test(text) ||
    (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.replaceAll(/(?<=\d)_(?=\d)/g, "")) &&
      !(Math.abs(Number(text.replaceAll("_", ""))) > most)),
  expected: "a number",
});

const units: Readonly<Record<string, number>> = {
  h: 3_600e9,
  m: 60e9,
  s: 1e9,
  ms: 1e6,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ns: 1,
};

const lengths = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;

/** Nanoseconds of a duration as Go reads it; undefined for anything else. */
export function goDuration(text: string): number | undefined {
  const [, sign = "", rest = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (rest === "0") return 0;
  if (rest === "" || rest.replaceAll(lengths, "") !== "") return undefined;
  const nanoseconds = [...rest.matchAll(lengths)].reduce(
    (sum, [, count = "", unit = ""]) => sum + Number(count) * units[unit]!,
    0,
  );
  if (nanoseconds > 2 ** 63) return undefined;
  return sign === "-" ? -nanoseconds : nanoseconds;
}

/** A line of comma-separated values, quoted where they have a comma. */
const csv = /^\n*("([^"]|"")*"|[^",\n]*)(,("([^"]|"")*"|[^",\n]*))*(\n|$)/;

const pairs = (text: string): string[] => text.split(",").filter((pair) => pair !== "");

export const goBoolean = (text: string): boolean | undefined =>
  ({ true: true, t: true, 1: true, false: false, f: false, 0: false })[
    /^([Tt]|[Ff]|TRUE|True|true|FALSE|False|false|[01])$/.test(text) ? text.toLowerCase() : ""
  ];

export const isAddress = (text: string): boolean => isIP(text) !== 0 && !text.includes("%");

/** Ports of a range in any of the three forms that Kubernetes reads; undefined for anything else. */
export function portRange(text: string): readonly [first: number, last: number] | undefined {
  const [, first = "", sign = "", second = ""] = /^(\d+)(?:([-+])(\d+))?$/.exec(text.trim()) ?? [];
  if (first === "") return undefined;
  const low = Number(first);
  const high = sign === "" ? low : Number(second) + (sign === "+" ? low : 0);
  return low <= high && high <= 65_535 ? [low, high] : undefined;
}

const isUrl = (text: string): boolean =>
  /^(unixs?:.*|https?:\/\/(\[[\w:.%]+\]|[^\s/:[\]?#]*):\d*)$/.test(text);

const anything: Type = { takes: () => true, expected: "a text" };

const types: Readonly<Record<string, Type>> = {
  bool: { takes: (text) => goBoolean(text) !== undefined, expected: "true or false" },
  int: signed(64),
  int32: signed(32),
  int64: signed(64),
  uint: unsigned(64),
  uint32Value: unsigned(32),
  uint64: unsigned(64),
  float32: float(3.4028235677973366e38),
  float64: float(Number.MAX_VALUE),
  duration: {
    takes: (text) => goDuration(text) !== undefined,
    expected: "a duration such as 10m0s or 90s",
  },
  ip: {
    takes: (text) => text === "" || isAddress(text.trim()),
    expected: "an IP address",
  },
  sloppyIP: {
    takes: (text) => text === "" || isAddress(text.replaceAll(/\b0+(?=\d)/g, "")),
    expected: "an IP address",
  },
  stringSlice: {
    takes: (text) => text === "" || csv.test(text),
    expected: "a list with commas between, without a single quotation mark",
  },
  int32Slice: {
    takes: (text) => text.split(",").every((one) => signed(32).takes(one)),
    expected: "whole numbers with a comma between",
  },
  mapStringString: {
    takes: (text) => pairs(text).every((pair) => pair.includes("=")),
    expected: "names with values, such as a=1,b=2",
  },
  mapStringStringNoSplit: {
    takes: (text) => text.includes("="),
    expected: "a name with a value, such as a=1",
  },
  stringToString: {
    takes: (text) =>
      text.includes("=") && (text.indexOf("=") === text.lastIndexOf("=") || csv.test(text)),
    expected: "names with values, such as a=1,b=2",
  },
  mapStringBool: {
    takes: (text) => pairs(text).every((pair) => goBoolean(valueIn(pair)) !== undefined),
    expected: "names with true or false, such as a=true,b=false",
  },
  portRange: {
    takes: (text) => text.trim() === "" || portRange(text) !== undefined,
    expected: "a range of ports such as 30000-32767",
  },
  quantity: {
    takes: (text) => /^[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/.test(text),
    expected: "a quantity such as 64Ki",
  },
  Level: {
    takes: (text) => /^\d{1,10}$/.test(text) && Number(text) < 2 ** 31,
    expected: "a whole number from 0",
  },
  "pattern=N,...": {
    takes: (text) => pairs(text).every((pair) => /^[^=]+=\d{1,10}$/.test(pair)),
    expected: "patterns with levels, such as proxier*=4",
  },
  namedCertKey: {
    takes: (text) => /^[^,:]*,[^,:]*(:.*\S.*)?$/s.test(text),
    expected: "the paths of a certificate and its key, with a comma between",
  },
  UniqueURLs: {
    takes: (text) =>
      text === "" || text === "*" || text.split(",").every((one) => isUrl(one.trim())),
    expected: "URLs such as http://127.0.0.1:2381, with a port and without a path, commas between",
  },
};

function valueIn(pair: string): string {
  const at = pair.indexOf("=");
  return at < 0 ? "" : pair.slice(at + 1).trim();
}

/**
 * What was expected where the program's parser does not take a value; types that are not listed take
 * any.
 */
export function wrongType(type: string, value: string): string | undefined {
  const { takes, expected } = types[type] ?? anything;
  return takes(value) ? undefined : expected;
}
