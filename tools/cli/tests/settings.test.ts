import { readFileSync } from "node:fs";
import { join } from "node:path";

import { settingsOf, settingsPage } from "../settings";
import { checkout } from "../../shared/checkout";
import { declared } from "../../../tests/support/stack";

const pulumiYaml = readFileSync(join(checkout, "Pulumi.yaml"), "utf8");

it("docs/settings.md is what npm run settings writes from Pulumi.yaml", () => {
  const page = readFileSync(join(checkout, "docs/settings.md"), "utf8");

  expect(page).toBe(settingsPage(pulumiYaml));
});

it("has the whole text of every setting", () => {
  const texts = settingsOf(pulumiYaml).map(({ name, text, change }) => [name, `${text} ${change}`]);

  expect(texts).toEqual(
    Object.entries(declared).map(([name, { description }]) => [name, description]),
  );
});

it("groups settings under the headings of Pulumi.yaml, with type and default", () => {
  const page = settingsPage(`
config:
  # Network

  egress: # string
    default: zonal
    description: The way of <stack>. A change replaces nothing.
  ranges: # array of strings
    default: []
    description: Who. A change replaces every machine.

  # Safety

  protect: # boolean
    default: false
    description: Whether. A change is refused.
`);

  expect(page.slice(page.indexOf("## "))).toBe(`## Network

| setting | default | what it is | a change |
|---|---|---|---|
| \`egress\`<br/>string | \`zonal\` | The way of &lt;stack>. | A change replaces nothing. |
| \`ranges\`<br/>array of strings | \`[]\` | Who. | A change replaces every machine. |

## Safety

| setting | default | what it is | a change |
|---|---|---|---|
| \`protect\`<br/>boolean | \`false\` | Whether. | A change is refused. |
`);
});
