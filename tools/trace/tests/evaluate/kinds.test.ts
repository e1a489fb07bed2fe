import { kindOf, numberOf } from "../../evaluate/rules/match/kinds";
import { installed, output } from "../../../../tests/support/tools";

/** Symbols of a selector and their values, as the real nft knows them. */
const known = (selector: string): [string, number][] =>
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
    const symbols = known(selector);

    expect(symbols.length).toBeGreaterThan(1);
    expect(ours(selector, symbols)).toEqual(symbols);
  });
}

for (const selector of ["meta l4proto", "meta protocol"]) {
  it(`knows no symbol of ${selector} by another value than nft's`, () => {
    const symbols = known(selector).filter(([name]) => numberOf(kindOf(selector), name) !== null);

    expect(symbols.length).toBeGreaterThan(3);
    expect(ours(selector, symbols)).toEqual(symbols);
  });
}
