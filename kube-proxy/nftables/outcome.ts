import type { Flow } from "../flow";
import { end } from "../flow";

/** Where a flow goes on: with the next rule, behind the chain's call, or behind the chain that the kernel called. */
export interface Outcome {
  readonly flow: Flow;
  readonly on: "next" | "caller" | "out";
}

/** Nobody can say what becomes of the packet. */
export function lost(flow: Flow, because: string): Outcome[] {
  return [{ flow: end(flow, "unknown", because), on: "out" }];
}
