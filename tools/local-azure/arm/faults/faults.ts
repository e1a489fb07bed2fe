import { ScriptResult } from "../../machines/machines";
import { AzureError, OperationFailed } from "../azure-error";

export type Method = "PUT" | "GET" | "PATCH" | "POST" | "DELETE" | "SCRIPT";

/** An injected error. */
export interface Fault {
  readonly method: Method;
  /** Case-insensitive regular expression for the resource id. */
  readonly id: string;
  /**
   * The first of the matching requests that fails, counted from 1.
   *
   * @default 1
   */
  readonly nth?: number;
  /**
   * How many requests in a row fail.
   *
   * @default 1
   */
  readonly times?: number;
  /** @default 409 */
  readonly status?: number;
  /** @default "InternalServerError" */
  readonly code?: string;
  readonly message?: string;
  /** Seconds of the header Retry-After. */
  readonly retryAfter?: number;
  /**
   * The connection is reset: before Azure receives the request, or before it sends the answer.
   */
  readonly lost?: "request" | "answer";
  /**
   * True: Azure accepts the PUT, its operation fails, and the resource has the state Failed.
   */
  readonly accepted?: boolean;
  /** With `accepted`, of a creation: Azure takes the resource away again, and nothing is left of it. */
  readonly leavesNothing?: boolean;
  /** For scripts: the result, without running the script. */
  readonly script?: Partial<ScriptResult>;
}

/** The active faults, and how many requests matched each. */
export class Faults {
  private faults: { readonly fault: Fault; readonly pattern: RegExp; matches: number }[] = [];

  constructor(faults: readonly Fault[] = []) {
    faults.forEach((fault) => this.add(fault));
  }

  add(fault: Fault): void {
    let pattern: RegExp;
    try {
      pattern = new RegExp(fault.id, "i");
    } catch {
      throw new Error(`a fault has the id ${fault.id}, which is not a regular expression`);
    }
    this.faults.push({ fault, pattern, matches: 0 });
  }

  /** Active faults, and how many requests matched each. */
  list(): { readonly fault: Fault; readonly matches: number }[] {
    return this.faults.map(({ fault, matches }) => ({ fault, matches }));
  }

  clear(): void {
    this.faults = [];
  }

  /** The fault for this request, if any; counts the request. */
  match(method: Method, id: string): Fault | undefined {
    let hit: Fault | undefined;
    for (const entry of this.faults) {
      if (entry.fault.method !== method || !entry.pattern.test(id)) continue;
      entry.matches++;
      const { nth = 1, times = 1 } = entry.fault;
      if (entry.matches >= nth && entry.matches < nth + times) hit ??= entry.fault;
    }
    return hit;
  }
}

export function errorOf({
  status = 409,
  code = "InternalServerError",
  message,
  accepted,
  retryAfter,
}: Fault): AzureError {
  const text = message ?? `This request failed with ${code} because of an injected fault.`;
  return accepted
    ? new OperationFailed(200, code, text)
    : new AzureError(status, code, text, undefined, retryAfter);
}
