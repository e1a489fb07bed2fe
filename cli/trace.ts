import { Interrupted, messageOf, UserError } from "../shared/user-error";
import { compareCommand, type CompareWords } from "../trace/commands/compare";
import { traceCommand, type TraceWords } from "../trace/commands/trace";
import { commandName, typed } from "./command";

/** Exit codes: 2 is a mistake of the user's, 1 any other failure, 130 Ctrl-C. */
function failure(error: unknown): number {
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

function run(): Promise<void> {
  if (commandName() === "compare") {
    const { options, args } = typed<CompareWords>();
    return compareCommand(args, options);
  }
  const { options, args } = typed<TraceWords>();
  return traceCommand(args, options);
}

run().catch((error: unknown) => {
  process.exitCode = failure(error);
});
