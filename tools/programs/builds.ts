import { execFile, spawn } from "node:child_process";
import { copyFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import type { Step } from "../shared/progress";
import { Interrupted, UserError } from "../shared/user-error";
import type { GoBuild, Tool } from "./tools";

const lastLines = 15;

/** Go clears its folders away within this on Ctrl-C, or it does not listen. Milliseconds. */
const patience = 5000;

/** From this version on, Go fetches the newer toolchain that a go.mod asks for by itself. */
export const oldestGo = [1, 21] as const;

export const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  GOFLAGS: "-mod=readonly -buildvcs=false",
  CGO_ENABLED: "0",
  GOWORK: "off",
  // Some distributions turn off that Go fetches the toolchain that a go.mod asks for.
  GOTOOLCHAIN: process.env.GOTOOLCHAIN ?? "auto",
  // The compiler ends soon and frees all at once: collecting before that is a tenth of its work.
  GOGC: "off",
  GOMEMLIMIT: "2GiB",
});

/** Why Go cannot build here, in words; undefined when it can. */
export async function goProblem(): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)("go", ["env", "GOVERSION"], {
      env: environment(),
    });
    const [major = 0, minor = 0] = stdout.trim().replace(/^go/, "").split(".").map(Number);
    if (major > oldestGo[0] || (major === oldestGo[0] && minor >= oldestGo[1])) return undefined;
    return `Go is ${stdout.trim()}, expected go${oldestGo.join(".")} or later`;
  } catch {
    return "Go is not installed";
  }
}

/** Builds a tool from its pinned Go modules into `folder`. */
export async function build(
  tool: Tool,
  folder: string,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  for (const one of tool.builds) {
    await buildOne(one, folder, step, signal);
    await putBeside(one, folder);
  }
}

async function putBeside({ module, beside }: GoBuild, folder: string): Promise<void> {
  if (beside === undefined) return;
  const words = ["list", "-m", "-f", "{{.Dir}}", beside.module];
  const { stdout } = await promisify(execFile)("go", words, {
    cwd: join(__dirname, "modules", module),
    env: environment(),
  });
  for (const file of beside.files) {
    copyFileSync(join(stdout.trim(), file), join(folder, basename(file)));
  }
}

async function buildOne(
  { module, packages = ["tool"], isTest, ldflags, binary = "" }: GoBuild,
  folder: string,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  // What ends in a slash is a folder to `go build`, for any number of binaries. They are not debugged,
  // and -w throws away what would be written for it.
  const quick = ["-gcflags=all=-dwarf=false"];
  const command = isTest ? ["test", "-c", "-vet=off"] : ["build", "-v"];
  const flags = [...quick, "-ldflags", ldflags, "-o", `${folder}/${binary}`];
  // What goes on beside a build comes first. By nice, since setPriority is for one thread alone, and any of
  // Go's starts compilers.
  const go = spawn("nice", ["-n", "10", "go", ...command, ...flags, ...packages], {
    cwd: join(__dirname, "modules", module),
    env: environment(),
    stdio: ["ignore", "ignore", "pipe"],
    // A group of its own: the terminal's Ctrl-C comes to it through us, once.
    detached: true,
  });
  const send = (name: NodeJS.Signals): void => {
    try {
      if (go.pid !== undefined) process.kill(-go.pid, name);
    } catch {
      // It has just ended.
    }
  };
  let force: NodeJS.Timeout | undefined;
  const stop = (): void => {
    send("SIGINT");
    force = setTimeout(() => send("SIGKILL"), patience);
  };
  signal.addEventListener("abort", stop, { once: true });
  const tail: string[] = [];
  let fetched = 0;
  let compiled = 0;
  createInterface({ input: go.stderr }).on("line", (line) => {
    if (line.startsWith("go: downloading ")) fetched += 1;
    else if (/^[\w.-]+(\/[\w.~-]+)*$/.test(line)) compiled += 1;
    else tail.push(line);
    if (tail.length > lastLines) tail.shift();
    step.update(
      compiled > 0 ? `${compiled} packages compiled` : `${fetched} Go modules downloaded`,
    );
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    go.on("error", reject);
    go.on("close", resolve);
  }).finally(() => {
    clearTimeout(force);
    signal.removeEventListener("abort", stop);
  });
  if (signal.aborted) throw new Interrupted();
  if (code !== 0) {
    throw new UserError(
      `Go could not build ${module} (go ${command[0]} ended with ${code}):\n${tail.map((line) => `  ${line}`).join("\n")}`,
    );
  }
}
