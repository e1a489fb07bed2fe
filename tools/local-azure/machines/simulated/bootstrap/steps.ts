import type { ScriptResult } from "../../machines";

const endLines = 40;

/** To the second, as the script's own log has it. */
const now = () => new Date().toISOString().replace(/\.\d+Z$/, "Z");

/** A step's time is up; the message is what it was waiting for. */
export class TimedOut extends Error {
  constructor(
    readonly seconds: number,
    reason: string,
  ) {
    super(reason);
  }
}

/**
 * The output of a bootstrap script: a line for each step, and at the first that fails the end of
 * its log.
 */
export class Steps {
  private readonly notes: string[] = [];
  private log: string[] = [];

  constructor(private readonly machine: string) {}

  async step<T>(name: string, action: () => Promise<T> | T): Promise<T> {
    const begun = Date.now();
    this.write(`bootstrap: ${name}: begins`);
    try {
      const result = await action();
      this.note(`${name}: done after ${Math.round((Date.now() - begun) / 1000)} s`);
      return result;
    } catch (error) {
      const { message } = error as Error;
      const isLate = error instanceof TimedOut;
      if (isLate) this.note(`${name}: stopped, ${error.seconds} s were not enough`);
      const exitCode = isLate ? 124 : 1;
      this.note(`${name}: failed with exit code ${exitCode}`);
      throw new StepFailed(name, exitCode, message, { cause: error });
    }
  }

  /** A line for the log, which is seen only when a step fails. */
  write(line: string): void {
    this.log.push(`${now()} ${line}`);
  }

  /** A line for log and output. */
  note(line: string): void {
    this.write(`bootstrap: ${line}`);
    this.notes.push(...this.log.slice(-1));
  }

  succeeded(): ScriptResult {
    return { exitCode: 0, stdout: this.stdout(), stderr: "" };
  }

  failed(error: Error): ScriptResult {
    const { step, exitCode } =
      error instanceof StepFailed ? error : { step: "payload", exitCode: 1 };
    const stderr = [
      `--- end of /var/log/zoned.log on ${this.machine}:`,
      ...this.log.slice(-endLines),
      "---",
      ...error.message.split("\n").slice(-endLines),
      `step "${step}" failed with exit code ${exitCode}`,
      "",
    ].join("\n");
    return { exitCode, stdout: this.stdout(), stderr };
  }

  private stdout(): string {
    return this.notes.map((line) => `${line}\n`).join("");
  }
}

class StepFailed extends Error {
  constructor(
    readonly step: string,
    readonly exitCode: number,
    message: string,
    options: ErrorOptions,
  ) {
    super(message, options);
  }
}
