import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { Interrupted, messageOf, UserError } from "../shared/user-error";

/** Commands that fill a mirror, and the Debian packages that have them. */
export const requiredCommands = {
  "apt-get": "apt",
  "dpkg-deb": "dpkg",
  gpg: "gnupg",
  gpgconf: "gpgconf",
  tar: "tar",
};

const lastLines = 10;

interface RunOptions {
  readonly signal: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs a program to its end and returns its output; an error ends with its last lines. */
export async function run(
  program: string,
  args: readonly string[],
  { signal, env }: RunOptions,
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, args, {
      env: { ...process.env, LC_ALL: "C.UTF-8", ...env },
      signal,
      maxBuffer: 64e6,
    });
    return stdout;
  } catch (error) {
    if (signal.aborted) throw new Interrupted();
    const { code, stderr = "" } = error as { code?: unknown; stderr?: string };
    const tail = stderr.trim().split("\n").slice(-lastLines);
    throw new UserError(
      stderr.trim() === ""
        ? `${program} could not be run: ${messageOf(error)}`
        : [`${program} ended with ${code}:`, ...tail.map((line) => `  ${line}`)].join("\n"),
    );
  }
}
