import { type Command, CommanderError } from "commander";

import { Interrupted, messageOf, UserError } from "../shared/user-error";

/** One Ctrl-C may arrive twice: from the terminal, and passed on by npm. */
const echo = 500;

/** Aborted by Ctrl-C and its like, which end no command at once. */
function interruptible(): AbortSignal {
  const controller = new AbortController();
  let last = 0;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      const now = Date.now();
      if (now - last < echo) return;
      last = now;
      if (controller.signal.aborted)
        process.stderr.write("ending; a moment, so that nothing is left half done\n");
      else process.stderr.write("\ninterrupted: waiting for what is under way to end orderly\n");
      controller.abort();
    });
  }
  return controller.signal;
}

/** Does a command's work, which Ctrl-C interrupts; its exit code is what the work returns. */
export async function perform(
  work: (signal: AbortSignal) => Promise<number | void>,
): Promise<void> {
  const signal = interruptible();
  try {
    process.exitCode = (await work(signal)) ?? 0;
  } catch (error) {
    throw signal.aborted ? new Interrupted() : error;
  }
}

/**
 * Runs the command that was typed.
 *
 * @param failed the exit code of a command that failed, unless the error has one of its own
 */
export function parse(program: Command, failed?: number): void {
  program.parseAsync().catch((error: unknown) => {
    process.exitCode = exitCodeOf(error, failed);
    if (!(error instanceof CommanderError || error instanceof Interrupted)) printError(error);
  });
}

function exitCodeOf(error: unknown, failed?: number): number {
  // Commander has printed the error; --help is no mistake.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Interrupted) return error.exitCode;
  return failed ?? (error instanceof UserError ? error.exitCode : 1);
}

/** Prints a user's mistake by its message, and a defect with its stack. */
function printError(error: unknown): void {
  const isForTheUser = error instanceof UserError || isOfTheSystem(error);
  const text = isForTheUser ? messageOf(error) : ((error as Error).stack ?? messageOf(error));
  process.stderr.write(`\nzoned: ${text}\n`);
}

/**
 * A file that cannot be read or written, a full disk: what the system says of it names the file.
 */
function isOfTheSystem(error: unknown): boolean {
  const { code, syscall, path } = error as NodeJS.ErrnoException;
  return code !== undefined && syscall !== undefined && path !== undefined;
}
