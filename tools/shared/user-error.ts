/** An error that the user sees as a message, without a stack trace. */
export class UserError extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
    this.name = "UserError";
  }
}

/** Thrown where work ends because the user asked for it by Ctrl-C. */
export class Interrupted extends UserError {
  constructor() {
    super("interrupted", 130);
  }
}

/** The message of whatever was thrown. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
