import type { ScriptResult } from "./machines";

const failure = 1;
const endLines = 40;

/** To the second, as the script's own log has it. */
const now = () => new Date().toISOString().replace(/\.\d+Z$/, "Z");

/** The output of a bootstrap script: a line for each step, and at the first that fails the end of its log. */
export class Steps {
  private readonly notes: string[] = [];
  private log: string[] = [];

  constructor(private readonly machine: string) {}

  async step<T>(name: string, action: () => Promise<T> | T): Promise<T> {
    const begun = Date.now();
    this.say(`bootstrap: ${name}: begins`);
    try {
      const result = await action();
      this.note(`${name}: done after ${Math.round((Date.now() - begun) / 1000)} s`);
      return result;
    } catch (error) {
      const { message } = error as Error;
      this.note(`${name}: failed with exit code ${failure}`);
      throw new StepFailed(name, message, { cause: error });
    }
  }

  /** A line for the log, which is seen only when a step fails. */
  say(line: string): void {
    this.log.push(`${now()} ${line}`);
  }

  /** A line for log and output. */
  note(line: string): void {
    this.say(`bootstrap: ${line}`);
    this.notes.push(...this.log.slice(-1));
  }

  succeeded(): ScriptResult {
    return { exitCode: 0, stdout: this.stdout(), stderr: "" };
  }

  failed(error: Error): ScriptResult {
    const step = error instanceof StepFailed ? error.step : "payload";
    const stderr = [
      `--- end of /var/log/zoned.log on ${this.machine}:`,
      ...this.log.slice(-endLines),
      "---",
      ...error.message.split("\n").slice(-endLines),
      `step "${step}" failed with exit code ${failure}`,
      "",
    ].join("\n");
    return { exitCode: failure, stdout: this.stdout(), stderr };
  }

  private stdout(): string {
    return this.notes.map((line) => `${line}\n`).join("");
  }
}

class StepFailed extends Error {
  constructor(
    readonly step: string,
    message: string,
    options: ErrorOptions,
  ) {
    super(message, options);
  }
}
