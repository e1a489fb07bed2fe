import { rangeOf } from "../addresses/range";
import { isSourceIn } from "../addresses/source";
import type { Decision, Flow } from "../flow";
import type { Meeting } from "../kernel";
import { intervalOf } from "./kinds";
import type { Subject } from "./subject";
import { open } from "./subject";

/** The packet, the place where it is asked, and whether the question is a pod's reaching itself. */
export interface Question {
  readonly flow: Flow;
  readonly meeting: Meeting;
  readonly ownEndpoint: boolean;
}

export const protocols = { tcp: 6, udp: 17, sctp: 132 };

export function address(text: string): Subject {
  const interval = intervalOf("address", text);
  return interval === null
    ? open(`which address ${text} is`)
    : { is: "value", value: interval.low, text };
}

export function source({ flow, meeting, ownEndpoint }: Question): Subject {
  if (flow.snat.length > 0) return open("which source the packet has after its translation");
  if (flow.source !== null) return address(flow.source);
  const ask = (text: string): Decision => {
    const range = rangeOf(text);
    return range === null
      ? { why: `what "${text}" stands for` }
      : isSourceIn(meeting.node, flow, range, ownEndpoint, meeting.path);
  };
  return { is: "open", ask, why: "which source the packet has: none is given" };
}

/** Multicast and broadcast. */
export function isMany(destination: string): boolean {
  return /^(22[4-9]|23\d|255)\.|^ff/i.test(destination);
}
