import { onPath } from "../programs/engine";
import { exitCodeOf, run } from "../shared/run";
import { UserError } from "../shared/user-error";
import type { Ended } from "../pulumi/pulumi";

/**
 * The user's own pulumi on this program, with the user's own backend, passphrase and Azure
 * credentials.
 *
 * @param environment where it finds them
 * @param otherwise how a command does without it, for the message where there is none
 */
export function ownPulumi(
  program: string,
  signal: AbortSignal,
  environment: NodeJS.ProcessEnv = process.env,
  otherwise = "",
): (args: readonly string[]) => Promise<Ended> {
  const command = onPath("pulumi", environment["PATH"]);
  if (command === undefined) {
    throw new UserError(
      "pulumi is not on the PATH, and nothing else reads or changes a stack's state: " +
        `https://www.pulumi.com/docs/install/${otherwise}`,
    );
  }
  // The preview is wanted as one document.
  const env = { ...environment, PULUMI_ENABLE_STREAMING_JSON_PREVIEW: "false" };
  return async (args) => {
    const output = { stdout: "", stderr: "" };
    const words = [command, ...args, "--non-interactive", "--color", "never"];
    const code = await exitCodeOf(words, { cwd: program, env, output, signal });
    return { code, ...output };
  };
}

/** The subscription of this shell, as azure-native takes it where its stack names none. */
export async function ownSubscription(): Promise<string | undefined> {
  const named = process.env["ARM_SUBSCRIPTION_ID"];
  if (named) return named;
  try {
    const words = ["account", "show", "--query", "id", "--output", "tsv"];
    return (await run(["az", ...words])).trim() || undefined;
  } catch {
    return undefined;
  }
}
