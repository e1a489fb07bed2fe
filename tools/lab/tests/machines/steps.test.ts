import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { checkout } from "../../../shared/checkout";

const read = (path: string): string => readFileSync(join(checkout, path), "utf8");

const steps = ["bootstrap.sh", "first-boot.sh"].flatMap((script) =>
  [...read(`cloud-init/${script}`).matchAll(/\bstep "([^"]+)" \S+ \d+ \w+/g)].map(
    ([, name]) => name,
  ),
);

const claims = "tools/lab/machines/claims";
const sources = [
  ...readdirSync(join(checkout, claims)).map((file) => `${claims}/${file}`),
  "docs/troubleshooting.md",
];

it("expects no step of a machine that no script has, in a claim or in the documentation", () => {
  const expected = sources.flatMap((file) =>
    [...read(file).matchAll(/\bstep "([\w ]+)"/g)].map(([, name]) => ({ file, name: name! })),
  );

  expect(expected.length).toBeGreaterThan(8);
  expect(expected.filter(({ name }) => !steps.includes(name))).toEqual([]);
});
