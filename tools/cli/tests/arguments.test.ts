import { patched } from "../../../components/settings/rules/known-arguments";
import { patchOf } from "../arguments";

const newest = { flags: { port: "int", quiet: "bool" }, values: { list: ["a", "b"] } };

it.each([
  ["nothing", newest, {}],
  [
    "a value",
    { ...newest, flags: { port: "int", quiet: "string" } },
    { flags: { quiet: "string" } },
  ],
  ["what is new since", { ...newest, flags: { port: "int" } }, { flags: { quiet: null } }],
  ["what has gone since", { ...newest, kinds: { a: ["b"] } }, { kinds: { a: ["b"] } }],
  ["a list, as a whole", { ...newest, values: { list: ["b"] } }, { values: { list: ["b"] } }],
])("writes of the minor before %s, where that alone differs", (_, before, patch) => {
  expect(patchOf(newest, before)).toEqual(patch);
  expect(patched(newest, patch)).toEqual(before);
});
