import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";

import { onPath } from "../local-azure/engine";
import type { Ended } from "../local-azure/pulumi";
import { Interrupted, Trouble } from "../local-azure/trouble";

/** The user's own pulumi on this program, with the user's own backend, passphrase and Azure credentials. */
export function ownPulumi(
  program: string,
  signal: AbortSignal,
): (args: readonly string[]) => Promise<Ended> {
  const command = onPath("pulumi");
  if (command === undefined) {
    throw new Trouble(
      "pulumi is not on the PATH, and nothing else can change a stack's state: " +
        "https://www.pulumi.com/docs/install/",
    );
  }
  return (args) => {
    if (signal.aborted) return Promise.reject(new Interrupted());
    return new Promise((resolve, reject) => {
      const child = spawn(command, [...args, "--non-interactive", "--color", "never"], {
        cwd: program,
        // The preview is wanted as one document.
        env: { ...process.env, PULUMI_ENABLE_STREAMING_JSON_PREVIEW: "false" },
        stdio: ["ignore", "pipe", "pipe"],
        // Out of the terminal's group: it ends orderly on one Ctrl-C and at once on a second.
        detached: true,
      });
      const ended = { stdout: "", stderr: "" };
      for (const name of ["stdout", "stderr"] as const) {
        child[name].setEncoding("utf8").on("data", (text: string) => (ended[name] += text));
      }
      const stop = (): void => void child.kill("SIGINT");
      signal.addEventListener("abort", stop);
      child.on("error", reject);
      child.on("close", (code) => {
        signal.removeEventListener("abort", stop);
        if (signal.aborted) reject(new Interrupted());
        else resolve({ code: code ?? 1, ...ended });
      });
    });
  };
}

/** The subscription that a program of this shell would work in. */
export async function ownSubscription(): Promise<string | undefined> {
  const named = process.env["ARM_SUBSCRIPTION_ID"] ?? process.env["AZURE_SUBSCRIPTION_ID"];
  if (named) return named;
  try {
    const words = ["account", "show", "--query", "id", "--output", "tsv"];
    const { stdout } = await promisify(execFile)("az", words);
    return stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}
