import { spawn } from "node:child_process";

import { Interrupted } from "../../../shared/user-error";

interface CommandOptions {
  readonly input?: string;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  /** Called with every line that the command writes. */
  readonly onLine?: (line: string) => void;
}

const lastLines = 12;

/** Runs a command to its end; an error has the end of what it wrote. */
export function run(command: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { input, signal, env, onLine } = options;
  const [file = "", ...args] = command;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new Interrupted());
    // A group of its own: a Ctrl-C comes to it through us, to all that it has started.
    const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"], detached: true, env });
    const stop = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
    };
    signal?.addEventListener("abort", stop, { once: true });
    let stdout = "";
    let stderr = "";
    const readLines = (text: string): void =>
      text.split("\n").forEach((line) => line.trim() && onLine?.(line.trim()));
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      readLines(text);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
      readLines(text);
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.on("error", reject);
    child.on("close", (code) => {
      signal?.removeEventListener("abort", stop);
      if (signal?.aborted) return reject(new Interrupted());
      if (code === 0) return resolve(stdout);
      const tail = (stderr || stdout).trim().split("\n").slice(-lastLines).join("\n  ");
      reject(new Error(`${command.slice(0, 6).join(" ")} ended with ${code}:\n  ${tail}`));
    });
  });
}
