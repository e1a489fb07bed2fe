import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { format } from "prettier";

import { minorOf } from "../../components/versions";
import { argumentsOf } from "../programs/arguments";
import { goProblem } from "../programs/builds";
import { current, previousMinor } from "../programs/releases";
import { checkout } from "../shared/checkout";

/** Writes what each program takes on its command line, by minor, for the settings' checks. */
async function main(): Promise<void> {
  const problem = await goProblem();
  if (problem !== undefined) {
    throw new Error(`${problem}, expected Go and a module proxy: https://go.dev/dl`);
  }
  for (const release of [current, previousMinor]) {
    const text = JSON.stringify(await argumentsOf(release));
    const name = `components/settings/rules/arguments/${minorOf(release.version)}.json`;
    writeFileSync(join(checkout, name), await format(text, { parser: "json", printWidth: 100 }));
    console.log(name);
  }
}

if (require.main === module) {
  main().catch((error: Error) => {
    console.error(`zoned: ${error.message}`);
    process.exitCode = 1;
  });
}
