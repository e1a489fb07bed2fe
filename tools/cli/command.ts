import { resolve } from "node:path";

import { sentence } from "../../components/settings/problem";
import { shellProxyProblems } from "../../components/settings/shell-proxy";
import { reasonOf, writeInto } from "../shared/files";
import { Interrupted, messageOf, UserError } from "../shared/user-error";

const { readWords } = require("./command-line.cjs") as {
  readWords: (name: string, words: readonly string[]) => Typed<object>;
};

/** A command line, as `commands.cjs` has the command's options. */
export interface Typed<T> {
  readonly options: T;
  readonly args: readonly string[];
}

/** One Ctrl-C may arrive twice: from the terminal, and passed on by npm. */
const echo = 500;

/** Aborted by Ctrl-C and its like, which end no command at once; the event comes again with each later one. */
function interruptible(): AbortSignal {
  const controller = new AbortController();
  let last = 0;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      const now = Date.now();
      if (now - last < echo) return;
      last = now;
      if (controller.signal.aborted) {
        process.stderr.write("interrupted again: passed on to what is under way\n");
        // Aborting again would be no event.
        controller.signal.dispatchEvent(new Event("abort"));
        return;
      }
      process.stderr.write("\ninterrupted: waiting for what is under way to end orderly\n");
      controller.abort();
    });
  }
  return controller.signal;
}

/**
 * A reader that ends early, such as head, and a terminal that is closed end no work: what they would
 * have shown is dropped. What a disk does not take of the output is a failure.
 */
export function outliveReaders(failed = 1): void {
  let told = false;
  process.stderr.on("error", () => undefined);
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || (error.code === "EIO" && process.stdout.isTTY)) return;
    if (!told) process.stderr.write(`zoned: the output cannot be written: ${reasonOf(error)}\n`);
    told = true;
    process.exitCode = failed;
  });
}

/** The name of the command that was typed. */
export const commandName = (): string => process.argv[2] ?? "";

/** What was typed behind it, which `zoned.cjs` has checked. */
export const typed = <T>(): Typed<T> => readWords(commandName(), process.argv.slice(3)) as Typed<T>;

/**
 * Does a command's work, which Ctrl-C interrupts; its exit code is what the work returns.
 *
 * @param failed the exit code of a command that failed, unless it was interrupted; by default the
 *   error's own
 */
export function perform(
  work: (signal: AbortSignal) => Promise<number | void>,
  failed?: number,
): void {
  outliveReaders(failed);
  const signal = interruptible();
  const problems = shellProxyProblems().map(sentence);
  const begun = async () => {
    if (problems.length > 0) throw new UserError(problems.join("\n"));
    return work(signal);
  };
  begun().then(
    // What goes on to its end nevertheless was interrupted all the same.
    (code) => (process.exitCode ||= signal.aborted ? new Interrupted().exitCode : (code ?? 0)),
    (thrown: unknown) => {
      const error = signal.aborted ? new Interrupted() : thrown;
      process.exitCode = exitCodeOf(error, failed);
      if (!(error instanceof Interrupted)) printError(error);
    },
  );
}

function exitCodeOf(error: unknown, failed?: number): number {
  if (error instanceof Interrupted) return error.exitCode;
  return failed ?? (error instanceof UserError ? error.exitCode : 1);
}

/** Prints a user's mistake by its message, and a defect with its stack. */
function printError(error: unknown): void {
  const isForTheUser = error instanceof UserError || isOfTheSystem(error);
  const text = isForTheUser ? messageOf(error) : ((error as Error).stack ?? messageOf(error));
  process.stderr.write(`\nzoned: ${text}\n`);
}

/** What the system says of a disk that takes nothing more, of which it names no file. */
const ofDisks = ["EDQUOT", "EIO", "ENOSPC"];

/** A file that cannot be read or written: what the system says of it names the file. */
function isOfTheSystem(error: unknown): boolean {
  const { code, syscall, path } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return false;
  return path !== undefined || ofDisks.includes(code);
}

/**
 * Writes the file that a command is for, and returns its path.
 *
 * @throws UserError when it cannot be written
 */
export function writeOutput(name: string, text: string): string {
  const file = resolve(name);
  try {
    writeInto(file, text);
  } catch (error) {
    throw new UserError(
      `${file} cannot be written: ${reasonOf(error)}; name another file (--output)`,
    );
  }
  return file;
}
