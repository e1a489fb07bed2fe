import { decoded, encoded, hasUnknown, secret } from "../../../plugins/protocol/values";

const unknownText = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const signature = "4dabf18193072939515e22adb298388d";
const output = (parts: object) => ({ [signature]: "d0e6a833031e9bbcd3f4e8bde6ca49a4", ...parts });

it("reads a value through the wrappers of secrets and outputs, wherever they are", () => {
  const sent = encoded({ list: [secret({ key: secret("x") })], plain: output({ value: "y" }) });

  expect(decoded(sent)).toEqual({ list: [{ key: "x" }], plain: "y" });
});

it("takes an output without a value for one that is not known yet", () => {
  const read = decoded(encoded({ later: output({}) }));

  expect(hasUnknown(read.later)).toBe(true);
});

it.each([
  { what: "an unknown in a list", value: { a: [1, unknownText] }, is: true },
  { what: "an unknown list", value: { a: "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2" }, is: true },
  { what: "what is known", value: { a: [1, "b", null, true] }, is: false },
])("says $is of $what", ({ value, is }) => {
  expect(hasUnknown(value)).toBe(is);
});

it("leaves out what is undefined, which the wire has no way to say", () => {
  expect(decoded(encoded({ a: undefined, b: { c: undefined, d: null } }))).toEqual({
    b: { d: null },
  });
});
