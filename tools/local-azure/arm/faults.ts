import { setTimeout as sleep } from "node:timers/promises";

import { ScriptResult } from "../machines/machines";
import { AzureError, ConnectionLost, OperationFailed } from "./azure-error";

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

/** Progress of a request: not processed yet, processed but not answered, answered. */
export type Stage = "arrived" | "accepted" | "answered";

/** Pauses one matching request. */
export interface Breakpoint {
  /**
   * PUT, GET, DELETE or SCRIPT of Azure; create, update or delete of another plugin.
   *
   * @default every method but GET
   */
  readonly method?: string;
  /**
   * Case-insensitive regular expression for the resource id or, with another plugin, the URN.
   *
   * @default any
   */
  readonly id?: string;
  /**
   * Which of the matching requests, counted from 1.
   *
   * @default 1
   */
  readonly nth?: number;
  readonly stage: Stage;
  /** True: the connection is reset on release, so that the request or its answer is lost. */
  readonly drop?: boolean;
}

/** Milliseconds until the engine has received an answer and written its state. */
const answerDelay = 100;

interface Armed {
  readonly breakpoint: Breakpoint;
  readonly pattern: RegExp;
  readonly reached: Signal;
  readonly released: Signal;
  matches: number;
}

/** A one-time event that can be awaited. */
class Signal {
  happen: () => void = () => undefined;
  readonly happened = new Promise<void>((happen) => (this.happen = happen));
}

/** Pauses one request at one stage until it is released. There is one breakpoint at a time. */
export class Breakpoints {
  #armed?: Armed;

  set(breakpoint: Breakpoint): void {
    let pattern: RegExp;
    try {
      pattern = new RegExp(breakpoint.id ?? "", "i");
    } catch {
      throw new Error(
        `a breakpoint has the id ${breakpoint.id}, which is not a regular expression`,
      );
    }
    this.clear();
    this.#armed = {
      breakpoint,
      pattern,
      reached: new Signal(),
      released: new Signal(),
      matches: 0,
    };
  }

  /** Releases the paused request. */
  clear(): void {
    this.#armed?.released.happen();
    this.#armed?.reached.happen();
    this.#armed = undefined;
  }

  /** Resolves when the request is paused or the breakpoint cleared. */
  async reached(): Promise<void> {
    await this.#armed?.reached.happened;
  }

  /** Called for every request at every stage; undefined, not a promise, when it is not paused. */
  pass(stage: Stage, method: string, id: string): Promise<void> | undefined {
    const armed = this.#armed;
    if (armed === undefined) return undefined;
    const { breakpoint, pattern } = armed;
    const isMethod =
      breakpoint.method === undefined ? method !== "GET" : breakpoint.method === method;
    if (breakpoint.stage !== stage || !isMethod || !pattern.test(id)) return undefined;
    armed.matches++;
    return armed.matches === (breakpoint.nth ?? 1) ? pause(armed) : undefined;
  }

  /** Applies all stages to a request. */
  async around<T>(method: string, id: string, act: () => Promise<T>): Promise<T> {
    await this.pass("arrived", method, id);
    const answer = await act();
    await this.pass("accepted", method, id);
    this.answered(method, id);
    return answer;
  }

  /** The last stage does not delay the caller. */
  answered(method: string, id: string): void {
    this.pass("answered", method, id)?.catch(() => undefined);
  }
}

async function pause({ breakpoint, reached, released }: Armed): Promise<void> {
  if (breakpoint.stage === "answered") await sleep(answerDelay);
  reached.happen();
  await released.happened;
  if (breakpoint.drop) throw new ConnectionLost();
}
