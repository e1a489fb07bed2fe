/** What is told to the user as it is: a message, no stack trace. */
export class Trouble extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
    this.name = "Trouble";
  }
}

/** Thrown where work ends because the user asked for it by Ctrl-C. */
export class Interrupted extends Trouble {
  constructor() {
    super("interrupted", 130);
  }
}

/** The message of whatever was thrown. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
