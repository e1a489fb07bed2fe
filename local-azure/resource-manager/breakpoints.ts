import { setTimeout as sleep } from "node:timers/promises";

import { ConnectionLost } from "./azure-error";

/** How far a request has come: nothing is done, it is done but not answered, it is answered. */
export type Stage = "arrived" | "accepted" | "answered";

/** A request that is to be held, once. */
export interface Breakpoint {
  /**
   * PUT, GET, DELETE or SCRIPT of Azure; create, update or delete of another plugin.
   *
   * @default any that changes something
   */
  readonly method?: string;
  /**
   * Regular expression over the resource id or, with another plugin, the URN, without regard to case.
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
  /** True: its connection is gone when it is let go, so that it, or its answer, gets lost. */
  readonly drop?: boolean;
}

/** As long as an answer takes to arrive at the engine and in the engine's state. */
const arrivesWithin = 100;

interface Armed {
  readonly breakpoint: Breakpoint;
  readonly pattern: RegExp;
  readonly reached: Signal;
  readonly released: Signal;
  met: number;
}

/** Something that happens once, and whoever waits for it. */
class Signal {
  happen: () => void = () => undefined;
  readonly happened = new Promise<void>((happen) => (this.happen = happen));
}

/** Holds one request at one stage until it is let go. There is one breakpoint at a time. */
export class Breakpoints {
  #armed?: Armed;

  set(breakpoint: Breakpoint): void {
    let pattern: RegExp;
    try {
      pattern = new RegExp(breakpoint.id ?? "", "i");
    } catch {
      throw new Error(`a breakpoint has the id ${breakpoint.id}, which is no regular expression`);
    }
    this.clear();
    this.#armed = {
      breakpoint,
      pattern,
      reached: new Signal(),
      released: new Signal(),
      met: 0,
    };
  }

  /** Lets go what is held. */
  clear(): void {
    this.#armed?.released.happen();
    this.#armed?.reached.happen();
    this.#armed = undefined;
  }

  /** Resolves when the request is held, or the breakpoint was cleared. */
  async reached(): Promise<void> {
    await this.#armed?.reached.happened;
  }

  /** What every request passes at every stage; undefined, without a turn, where it is not held. */
  pass(stage: Stage, method: string, id: string): Promise<void> | undefined {
    const armed = this.#armed;
    if (armed === undefined) return undefined;
    const { breakpoint, pattern } = armed;
    const isMethod = breakpoint.method === undefined ? method !== "GET" : breakpoint.method === method;
    if (breakpoint.stage !== stage || !isMethod || !pattern.test(id)) return undefined;
    armed.met++;
    return armed.met === (breakpoint.nth ?? 1) ? hold(armed) : undefined;
  }

  /** A request from its arrival to its answer. */
  async around<T>(method: string, id: string, act: () => Promise<T>): Promise<T> {
    await this.pass("arrived", method, id);
    const answer = await act();
    await this.pass("accepted", method, id);
    this.answered(method, id);
    return answer;
  }

  /** The last stage holds nobody. */
  answered(method: string, id: string): void {
    this.pass("answered", method, id)?.catch(() => undefined);
  }
}

async function hold({ breakpoint, reached, released }: Armed): Promise<void> {
  if (breakpoint.stage === "answered") await sleep(arrivesWithin);
  reached.happen();
  await released.happened;
  if (breakpoint.drop) throw new ConnectionLost();
}
