import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { damageOf } from "../checkpoint";
import { testFolder } from "../../../tests/support/test-folder";

let folder: string;
beforeEach(() => (folder = testFolder()));

function damage(text: string): string | undefined {
  const file = join(folder, "dev.json");
  writeFileSync(file, text);
  return damageOf(file);
}

it.each([
  ["a new stack", { stack: "organization/zoned/dev", latest: { manifest: {} } }],
  ["one with resources", { stack: "organization/zoned/dev", latest: { resources: [{}] } }],
])("finds nothing wrong with %s", (_, checkpoint) => {
  expect(damage(JSON.stringify({ version: 3, checkpoint }))).toBeUndefined();
});

it.each(["", '{"version":3,"checkpo'])("says of %j that it is no JSON", (text) => {
  expect(damage(text)).toBe("it is no JSON");
});

it.each([
  "{}",
  "null",
  "[]",
  '"text"',
  '{"version":3}',
  '{"version":3,"checkpoint":{}}',
  '{"version":3,"checkpoint":{"stack":"organization/zoned/dev","latest":{"resources":{}}}}',
  '{"version":3,"checkpoint":{"stack":"organization/zoned/dev","latest":{"pending_operations":{}}}}',
  '{"version":"3","checkpoint":{"stack":"organization/zoned/dev","latest":{}}}',
])(
  "says of %s, of which the engine would make an empty stack or a riddle, that it is no state",
  (text) => {
    expect(damage(text)).toBe("it is JSON, but no state of a stack");
  },
);
