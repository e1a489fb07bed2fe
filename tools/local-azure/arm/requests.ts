import { appendFileSync, existsSync, readFileSync } from "node:fs";

import { AzureError, ConnectionLost } from "./azure-error";
import { Clock } from "./durations";
import { Breakpoints, errorOf, Fault, Faults, Method } from "./faults";
import { ArmId, Body, parseId } from "./resources/resource";
import { ResourceType, Running } from "./types/resource-type";
import { subResourceOf, typeOf } from "./types/types";

export interface Outcome {
  /** HTTP status of the answer. */
  readonly status: number;
  readonly body: Body;
}

type Answer = (id: ArmId, type: ResourceType, fault?: Fault) => Promise<Outcome>;

/** Applies breakpoints and faults to every request, and writes it to the log. */
export class Requests {
  constructor(
    private readonly log: RequestLog,
    private readonly faults: Faults,
    private readonly breakpoints: Breakpoints,
    private readonly clock: Clock,
  ) {}

  async answer(method: Exclude<Method, "SCRIPT">, path: string, answer: Answer): Promise<Outcome> {
    const held = this.breakpoints.pass("arrived", method, path);
    if (held) await held;
    const startedAt = this.clock.now().toISOString();
    let lost: Fault["lost"];
    try {
      const id = parseId(path);
      const type = id && (typeOf(id.type) ?? subResourceOf(id)?.ownerType);
      if (id === undefined || type === undefined) {
        throw new AzureError(
          404,
          "InvalidResourceType",
          `The local Azure does not support the resource type of ${path}.`,
        );
      }
      const fault = this.faults.match(method, id.id);
      lost = fault?.lost;
      if (lost === "request") throw new ConnectionLost();
      const isLate = method === "PUT" && fault?.accepted;
      if (fault && !isLate && lost === undefined) throw errorOf(fault);
      const outcome = await answer(id, type, isLate ? fault : undefined);
      this.record({ method, id: path, status: outcome.status, startedAt });
      if (lost === "answer") throw new ConnectionLost();
      this.breakpoints.answered(method, path);
      return outcome;
    } catch (error) {
      if (error instanceof ConnectionLost) throw error;
      const { status, code } =
        error instanceof AzureError ? error : { status: 500, code: "InternalServerError" };
      this.record({ method, id: path, status, code, startedAt });
      throw error;
    }
  }

  readonly script: Running["script"] = async (id, run) => {
    const startedAt = this.clock.now().toISOString();
    const fault = this.faults.match("SCRIPT", id);
    const result = fault
      ? { exitCode: 1, stdout: "", stderr: fault.message ?? "", ...fault.script }
      : await this.breakpoints.around("SCRIPT", id, run);
    this.record({ method: "SCRIPT", id, status: result.exitCode, startedAt });
    return result;
  };

  private record(request: Omit<LoggedRequest, "time" | "type" | "endedAt">): void {
    const endedAt = this.clock.now().toISOString();
    this.log.record({ ...request, type: parseId(request.id)?.type ?? "", endedAt });
  }
}

export interface LoggedRequest {
  /** When it was answered. */
  readonly time: string;
  readonly method: Method;
  readonly id: string;
  /** ARM's type. */
  readonly type: string;
  /** HTTP status, or the exit code of a script. */
  readonly status: number;
  /** Azure's error code, when the request or its operation failed. */
  readonly code?: string;
  readonly startedAt: string;
  readonly endedAt: string;
}

/**
 * All requests to the resource manager, one JSON object per line, in the order of the responses.
 * It contains no secrets.
 */
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
