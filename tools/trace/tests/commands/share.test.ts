import { share } from "../../commands/words";

it.each([
  [1, "all"],
  [1 / 3, "1/3"],
  [2 / 7, "2/7"],
  [1 / 5000, "1/5000"],
  [0.33333333349, "1/3"],
  [0.1234, "12.34 %"],
  [0.00123, "0.12 %"],
])("says %d as %s", (probability, said) => {
  expect(share(probability)).toBe(said);
});

it("does not call a share a third that is only near one", () => {
  expect(share(0.3334)).toBe("33.34 %");
});
