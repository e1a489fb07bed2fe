import { installed, output } from "../../../../../tests/support/tools";
import {
  intervalOf,
  type Kind,
  kindOf,
  known,
  numberOf,
  type Subject,
  undecidable,
} from "../../../evaluate/rules/match/kinds";
import { find } from "../../../evaluate/rules/match/match";
import { readElements } from "../../../read/nftables/expression";

const address = (text: string): Subject => ({
  is: "value",
  value: intervalOf("address", text)!.low,
  text,
});

const asked = (
  text: string,
  kinds: readonly Kind[],
  subjects: readonly Subject[],
): (string | null)[] =>
  find(readElements(text), kinds, subjects).map(
    ({ element }) => element.value ?? element.key.join(" . "),
  );

describe("a set with prefixes and ranges", () => {
  const text =
    "{ 10.0.0.0/8 : a, 11.0.0.1-11.0.0.5 : b, 11.0.0.9 : c, 192.0.2.0/31 : d, fd00::/64 : e }";

  it.each([
    ["10.255.255.255", ["a"]],
    ["11.0.0.0", []],
    ["11.0.0.5", ["b"]],
    ["11.0.0.6", []],
    ["11.0.0.9", ["c"]],
    ["192.0.2.1", ["d"]],
    ["192.0.2.2", []],
  ])("finds %s in %j", (ip, expected) => {
    expect(asked(text, ["address"], [address(ip)])).toEqual(expected);
  });

  it("finds an IPv6 address", () => {
    expect(
      asked(text.replace(/10\.[^:]*: a, .*(?=fd00)/, ""), ["address"], [address("fd00::7")]),
    ).toEqual(["e"]);
  });

  it("has an element for everything else", () => {
    const withRest = "{ 10.0.0.0/8 : a, * : rest }";
    expect(asked(withRest, ["address"], [address("10.1.1.1")])).toEqual(["a"]);
    expect(asked(withRest, ["address"], [address("172.16.0.1")])).toEqual(["rest"]);
  });
});

it("a concatenation is found by all of its parts, ranges and names among them", () => {
  const text =
    '{ 10.0.0.1 . tcp . 80 : a, 10.0.0.1 . "udp" . 53-60 : b, 10.1.0.0/16 . 6 . "http" : c }';
  const kinds: Kind[] = ["address", "protocol", "port"];
  expect(asked(text, kinds, [address("10.0.0.1"), known(6), known(80)])).toEqual(["a"]);
  expect(asked(text, kinds, [address("10.0.0.1"), known(17), known(55)])).toEqual(["b"]);
  expect(asked(text, kinds, [address("10.1.9.9"), known(6), known(80)])).toEqual(["c"]);
  expect(asked(text, kinds, [address("10.0.0.1"), known(17), known(80)])).toEqual([]);
});

it("a number that is picked meets each element with its share", () => {
  const numgen: Subject = { is: "numgen", mode: "random", mod: 100, offset: 5 };
  const found = find(readElements("{ 5-54 : a, 55-79 : b, 80-200 : c }"), ["number"], [numgen]);
  expect(found.map(({ holds }) => holds)).toEqual([
    { share: 0.5 },
    { share: 0.25 },
    { share: 0.25 },
  ]);
});

it("what is not known may be any element that the known parts allow", () => {
  const text = "{ 10.0.0.1 . 80 : a, 10.0.0.2 . 80 : b, 10.0.0.3 . 81 : c }";
  expect(asked(text, ["address", "port"], [undecidable("which address"), known(80)])).toEqual([
    "a",
    "b",
  ]);
});

/** Symbols of a selector and their values, as the real nft knows them. */
const byNft = (selector: string): [string, number][] =>
  [
    ...output(installed("nft", "nftables"), ["describe", ...selector.split(" ")]).matchAll(
      /^\t([\w.-]+)\s+(0x[0-9a-f]+|\d+)$/gm,
    ),
  ].map(([, name, value]) => [name!, Number(value)]);

const ours = (selector: string, symbols: readonly [string, number][]) =>
  symbols.map(([name]) => [name, numberOf(kindOf(selector), name)]);

const whole = ["ct state", "ct status", "ct direction", "tcp flags", "fib daddr type"];
for (const selector of [...whole, "meta pkttype", "meta nfproto"]) {
  it(`knows each symbol of ${selector} by nft's own value`, () => {
    const symbols = byNft(selector);

    expect(symbols.length).toBeGreaterThan(1);
    expect(ours(selector, symbols)).toEqual(symbols);
  });
}

for (const selector of ["meta l4proto", "meta protocol"]) {
  it(`knows no symbol of ${selector} by another value than nft's`, () => {
    const symbols = byNft(selector).filter(([name]) => numberOf(kindOf(selector), name) !== null);

    expect(symbols.length).toBeGreaterThan(3);
    expect(ours(selector, symbols)).toEqual(symbols);
  });
}
