import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import { checkout } from "../../tools/shared/checkout";

/** A real tool that `npm test` has built, by its path. */
export function built(name: string): string {
  const folder = process.env["ZONED_BINARIES"];
  if (folder === undefined) {
    throw new Error(
      `ZONED_BINARIES is not set, so ${name} cannot be found: run the tests with npm test, which builds the ` +
        "tools, or name the folder that has them",
    );
  }
  return join(folder, name);
}

const systemPath = `${process.env["PATH"]}${delimiter}/usr/sbin${delimiter}/sbin`;

/** A tool of the distribution, by its path. */
export function installed(name: string, debianPackage: string): string {
  const found = systemPath
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
  if (found === undefined) {
    throw new Error(`${name} is missing: apt-get install --no-install-recommends ${debianPackage}`);
  }
  return found;
}

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, without holding up a server in this process. */
export const run = (
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    execFile(program, [...args], { env, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === "number") resolve({ code, stdout, stderr });
      else reject(error);
    });
  });

/** Runs an npm command with these programs first on its PATH, and no proxy on the way to this host. */
export const runCommand = (
  programs: string,
  words: readonly string[],
  variables: NodeJS.ProcessEnv = {},
): Promise<Outcome> =>
  run(process.execPath, [join(checkout, "tools/cli/zoned.cjs"), ...words], {
    ...process.env,
    PATH: [programs, process.env["PATH"]].join(delimiter),
    ...{ NO_PROXY: "localhost,127.0.0.1", no_proxy: "localhost,127.0.0.1" },
    ...variables,
  });

/** What a program prints, and an error with its own words when it fails. */
export const output = (program: string, args: readonly string[]): string =>
  execFileSync(program, [...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
