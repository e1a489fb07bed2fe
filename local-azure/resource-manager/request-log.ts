import { appendFileSync, existsSync, readFileSync } from "node:fs";

import { Method } from "./faults";

export interface LoggedRequest {
  /** When it was answered. */
  readonly time: string;
  readonly method: Method;
  readonly id: string;
  /** ARM's type. */
  readonly type: string;
  /** HTTP status; of a script its exit code. */
  readonly status: number;
  /** Azure's error code, when it was refused or its operation failed. */
  readonly code?: string;
  readonly startedAt: string;
  readonly endedAt: string;
}

/** What the resource manager was asked, a JSON object a line, in the order of the answers. Nothing in it is secret. */
export class RequestLog {
  constructor(private readonly path: string) {}

  record(request: Omit<LoggedRequest, "time">): void {
    appendFileSync(this.path, `${JSON.stringify({ time: request.endedAt, ...request })}\n`);
  }

  read(): LoggedRequest[] {
    if (!existsSync(this.path)) return [];
    return readFileSync(this.path, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as LoggedRequest);
  }
}
