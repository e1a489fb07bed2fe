import { Command, CommanderError } from "commander";

import { Interrupted, messageOf, UserError } from "../shared/user-error";
import { compareCommand } from "../trace/commands/compare";
import { traceCommand } from "../trace/commands/trace";

const program = new Command("npm run")
  .description("Reads what kube-proxy wrote into a node's kernel")
  .exitOverride()
  .addCommand(traceCommand())
  .addCommand(compareCommand());

/** Exit codes: 2 is a mistake of the user's, 1 any other failure, 130 Ctrl-C. */
function failure(error: unknown): number {
  if (error instanceof CommanderError) {
    // Commander has printed the error; --help is no mistake.
    return error.exitCode === 0 ? 0 : 2;
  }
  if (error instanceof Interrupted) return error.exitCode;
  const { code, syscall, stack } = error as NodeJS.ErrnoException;
  const isAboutFile = typeof code === "string" && typeof syscall === "string";
  const isForTheUser = error instanceof UserError || isAboutFile;
  process.stderr.write(`zoned: ${isForTheUser ? messageOf(error) : (stack ?? messageOf(error))}\n`);
  if (error instanceof UserError) return error.exitCode;
  return isAboutFile ? 2 : 1;
}

// A reader that ends early, such as head, is no failure.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
  process.exit(code === "EPIPE" ? 0 : 1);
});

program.parseAsync().catch((error: unknown) => {
  process.exitCode = failure(error);
});
