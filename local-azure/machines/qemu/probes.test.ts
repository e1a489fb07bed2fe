import { judged } from "./probes";

const up = { isUp: true, against: 0 };
const down = { isUp: false, against: 0 };

test("a machine turns when as many results in a row contradict its standing as the threshold says", () => {
  const once = judged(up, false, 2);
  expect(once.isUp).toBe(true);
  expect(judged(once, false, 2)).toEqual(down);
  expect(judged(judged(down, true, 2), true, 2)).toEqual(up);
});

test("one result that agrees makes the count begin anew", () => {
  const shaken = judged(judged(up, false, 2), true, 2);
  expect(judged(shaken, false, 2).isUp).toBe(true);
});
