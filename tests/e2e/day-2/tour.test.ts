import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

import { checkout } from "../../../tools/shared/checkout";
import { hasManifests } from "../../../tools/lab/local-cloud";
import { built, run } from "../../support/tools";
import { describeUnless } from "../../support/unless";
import { npm } from "../npm";

jest.setTimeout(900_000);

const parent = mkdtempSync(join(tmpdir(), "zoned-e2e-"));
const state = join(parent, "state");
afterAll(() => rmSync(parent, { recursive: true, force: true, maxRetries: 5 }));

/** What the page has one type, block by block, and what it says that is printed. */
const blocks = [
  ...readFileSync(join(checkout, "docs/tour.md"), "utf8").matchAll(
    /```sh\n(.*?)```\n\n```text\n(.*?)```/gs,
  ),
].map(([, typed, printed]) => ({ typed: typed!, printed: printed! }));

const end = "--- end of a block";

/** `…` is anything on one line; columns are as wide as what is in them. */
const patternOf = (printed: string): RegExp =>
  new RegExp(
    `^${printed
      .trim()
      .split("\n")
      .map((line) =>
        line
          .trim()
          .split(/(…|\s+)/)
          .map((part) =>
            part === "…" ? ".*" : /^\s+$/.test(part) ? "\\s+" : part.replace(/[^\w\s]/g, "\\$&"),
          )
          .join(""),
      )
      .join("\\s*\\n")}\\s*$`,
  );

const obstacle = hasManifests ? undefined : "ZONED_MANIFESTS names no folder";

describeUnless(obstacle)("docs/tour.md", () => {
  afterAll(() => (existsSync(state) ? npm(state, "stop", "--discard") : undefined));

  it("prints on a rehearsal what it says that it prints", async () => {
    await npm(state, "start", "--stack", "local");
    const script = blocks.map(({ typed }) => `${typed}echo '${end}'\n`).join("");

    const { stdout } = await run(
      "bash",
      ["-c", `exec 2>&1\n${script.replace(/(\$PWD\/)?\.local-azure\b/g, state)}`],
      {
        ...process.env,
        PATH: [dirname(built("kubectl")), process.env["PATH"]].join(delimiter),
        PWD: checkout,
      },
    );

    const printed = stdout.split(`${end}\n`).slice(0, -1);
    expect(blocks.length).toBeGreaterThan(8);
    expect(printed).toEqual(blocks.map((block) => expect.stringMatching(patternOf(block.printed))));
  });
});
