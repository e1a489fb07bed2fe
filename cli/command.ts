import { type Command, CommanderError } from "commander";

import { messageOf, UserError } from "../shared/user-error";

/** One Ctrl-C may arrive twice: from the terminal, and passed on by npm. */
const echo = 500;

/** Aborted by Ctrl-C and its like, which end no command at once. */
export function interruptible(): AbortSignal {
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

/** Prints a user's mistake by its message, and a defect with its stack. */
export function printError(error: unknown, isForTheUser = error instanceof UserError): void {
  const text = isForTheUser ? messageOf(error) : ((error as Error).stack ?? messageOf(error));
  process.stderr.write(`\nzoned: ${text}\n`);
}

/** Runs the command that was typed. */
export function parse(program: Command): void {
  program.parseAsync().catch((error: unknown) => {
    // Commander has printed the error; --help is no mistake.
    process.exitCode = error instanceof CommanderError && error.exitCode === 0 ? 0 : 2;
    if (!(error instanceof CommanderError)) throw error;
  });
}
