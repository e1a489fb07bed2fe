import { spawn } from "node:child_process";

import { Interrupted, UserError } from "./user-error";

interface RunOptions {
  readonly input?: string;
  readonly signal?: AbortSignal;
  /** What its environment has besides this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Called with every line that the command writes. */
  readonly onLine?: (line: string) => void;
}

const lastLines = 12;

/** Runs a command to its end and returns its output; an error has the end of what it wrote. */
export function run(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const { input, signal, env, onLine } = options;
  const [file = "", ...args] = command;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new Interrupted());
    const child = spawn(file, args, {
      stdio: ["pipe", "pipe", "pipe"],
      // A group of its own: a Ctrl-C comes to it through us, to all that it has started.
      detached: true,
      // What it writes is read here, whatever the user's language.
      env: { ...process.env, LC_ALL: "C.UTF-8", ...env },
    });
    const stop = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
    };
    signal?.addEventListener("abort", stop, { once: true });
    let stdout = "";
    let stderr = "";
    const heard = (text: string): void => {
      for (const line of onLine ? text.split("\n") : []) if (line.trim()) onLine?.(line.trim());
    };
    child.stdout
      .setEncoding("utf8")
      .on("data", (text: string) => (stdout += text))
      .on("data", heard);
    child.stderr
      .setEncoding("utf8")
      .on("data", (text: string) => (stderr += text))
      .on("data", heard);
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.on("error", ({ message }) => reject(new UserError(`${file} cannot be run: ${message}`)));
    child.on("close", (code) => {
      signal?.removeEventListener("abort", stop);
      if (signal?.aborted) return reject(new Interrupted());
      if (code === 0) return resolve(stdout);
      const tail = (stderr || stdout).trim().split("\n").slice(-lastLines).join("\n  ");
      reject(new UserError(`${command.slice(0, 6).join(" ")} ended with ${code}:\n  ${tail}`));
    });
  });
}

/** What a command has written so far. */
interface Written {
  stdout: string;
  stderr: string;
}

interface OrderlyOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** The user's own terminal, an open file, or where its output is added to. */
  readonly output: "inherit" | number | Written;
  readonly signal?: AbortSignal;
}

/** Runs a command to its end, which is orderly when `signal` aborts; returns its exit code. */
export function exitCodeOf(
  [file = "", ...args]: readonly string[],
  { cwd, env, output, signal }: OrderlyOptions,
): Promise<number> {
  if (signal?.aborted) return Promise.reject(new Interrupted());
  return new Promise((resolve, reject) => {
    const into = typeof output === "object" ? "pipe" : output;
    const child = spawn(file, args, {
      cwd,
      env,
      stdio: ["ignore", into, into],
      // Out of the terminal's group: Pulumi's engine stops orderly on one Ctrl-C and at once on a
      // second, so it must get exactly those that we pass on.
      detached: true,
    });
    const stop = (): void => void child.kill("SIGINT");
    signal?.addEventListener("abort", stop);
    if (typeof output === "object") {
      for (const name of ["stdout", "stderr"] as const) {
        child[name]?.setEncoding("utf8").on("data", (text: string) => (output[name] += text));
      }
    }
    child.on("error", reject);
    child.on("close", (code) => {
      signal?.removeEventListener("abort", stop);
      if (signal?.aborted) reject(new Interrupted());
      else resolve(code ?? 1);
    });
  });
}
