import { spawnSync } from "node:child_process";
import { dirname } from "node:path";

import { checkout } from "../../shared/checkout";

/** Without pulumi on the PATH. */
const image = (stack: string) =>
  spawnSync(process.execPath, ["tools/cli/zoned.cjs", "image", "--stack", stack], {
    cwd: checkout,
    encoding: "utf8",
    env: { ...process.env, PATH: `${dirname(process.execPath)}:/usr/bin:/bin` },
  });

it("names a stack that is not there before a pulumi that is missing", () => {
  expect(image("nowhere")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("there is no stack nowhere: expected its settings in "),
  });
  expect(image("prod")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("pulumi is not on the PATH"),
  });
});
