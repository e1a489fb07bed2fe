import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { checkout } from "../../tools/shared/checkout";

/** `npm start` or `npm stop` of this state folder, as a person types them; returns what they print. */
export async function npm(
  state: string,
  command: "start" | "stop",
  ...args: string[]
): Promise<string> {
  const words = ["tools/cli/zoned.cjs", command, ...args, "--state", state];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, words, {
    cwd: checkout,
    env: { ...process.env, ZONED_PLUGINS: process.env["ZONED_PLUGINS"] || "stand-ins" },
  });
  return `${stdout}${stderr}`;
}
