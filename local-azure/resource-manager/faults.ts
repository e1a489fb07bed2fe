import { ScriptResult } from "../machines/machines";
import { AzureError, OperationFailed } from "./azure-error";

export type Method = "PUT" | "GET" | "DELETE" | "SCRIPT";

/** Something that is to go wrong. */
export interface Fault {
  readonly method: Method;
  /** Regular expression over the resource id, without regard to case. */
  readonly id: string;
  /**
   * Which of the matching requests, counted from 1.
   *
   * @default 1
   */
  readonly nth?: number;
  /**
   * How many in a row.
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
  /** The connection goes in place of an answer: before Azure has got the request, or after it has done it. */
  readonly lost?: "request" | "answer";
  /** True: Azure accepts the PUT, and its operation fails afterwards; the resource stays as Failed. */
  readonly accepted?: boolean;
  /** For scripts: ends with this code in place of being run, with these streams. */
  readonly script?: Partial<ScriptResult>;
}

/** Faults that were switched on, and how often each was met. */
export class Faults {
  private faults: { readonly fault: Fault; readonly pattern: RegExp; met: number }[] = [];

  constructor(faults: readonly Fault[] = []) {
    faults.forEach((fault) => this.add(fault));
  }

  add(fault: Fault): void {
    let pattern: RegExp;
    try {
      pattern = new RegExp(fault.id, "i");
    } catch {
      throw new Error(`a fault has the id pattern ${fault.id}, which is no regular expression`);
    }
    this.faults.push({ fault, pattern, met: 0 });
  }

  /** What was switched on, and how many requests have matched it. */
  list(): { readonly fault: Fault; readonly met: number }[] {
    return this.faults.map(({ fault, met }) => ({ fault, met }));
  }

  clear(): void {
    this.faults = [];
  }

  /** The fault that this request meets, if any; counts the request. */
  meet(method: Method, id: string): Fault | undefined {
    let hit: Fault | undefined;
    for (const entry of this.faults) {
      if (entry.fault.method !== method || !entry.pattern.test(id)) continue;
      entry.met++;
      const { nth = 1, times = 1 } = entry.fault;
      if (entry.met >= nth && entry.met < nth + times) hit ??= entry.fault;
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
  const text = message ?? `This request was ordered to fail with ${code}.`;
  return accepted ? new OperationFailed(200, code, text) : new AzureError(status, code, text, undefined, retryAfter);
}
