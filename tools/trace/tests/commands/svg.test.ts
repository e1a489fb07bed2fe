import { svg } from "../../commands/svg";
import { answerOf } from "../support/formats";

const heightOf = (picture: string): number => Number(/ height="([\d.]+)"/.exec(picture)?.[1]);
const bottoms = (picture: string): number[] =>
  [...picture.matchAll(/<rect [^>]*y="([\d.]+)"[^>]*height="([\d.]+)"/g)].map(
    ([, y, height]) => Number(y) + Number(height),
  );

it.each([1, 3, 50])(
  "draws a line and a box for each of %d endpoints, all within the picture",
  (count) => {
    const picture = svg(answerOf(count));

    expect(picture.match(/<path d="M\d+ [\d.]+C/g)).toHaveLength(count);
    for (const { address } of answerOf(count).endpoints)
      expect(picture).toContain(`>${address}</text>`);
    expect(Math.max(...bottoms(picture))).toBeLessThan(heightOf(picture));
  },
);

it("says how many rules a crowded hook has beyond those it shows", () => {
  expect(svg(answerOf(50))).toContain(">and 46 more rules</text>");
});

it.each(["drop", "reject", "pass", "unknown"] as const)(
  "draws where a packet ends by %s",
  (verdict) => {
    const picture = svg(answerOf(0, { verdict }));

    expect(picture.match(/<path d="M\d+ [\d.]+C/g)).toHaveLength(1);
    expect(picture).toContain(`>${verdict}</text>`);
  },
);

it("stays XML whatever a comment in a rule says", () => {
  const rule = '-m comment --comment "<a & b>\u0007"';
  const steps = [{ table: "nat", chain: "PREROUTING", rule, effect: rule }];

  const picture = svg(answerOf(1, { steps }));

  expect(picture).toContain("&lt;a &amp; b&gt;");
  expect(picture).not.toMatch(/<a |&(?!\w+;)/);
  expect(picture).not.toContain("\u0007");
});
