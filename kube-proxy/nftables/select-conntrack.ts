import { numberOf } from "./kinds";
import type { Question } from "./question";
import { address, protocols, source } from "./question";
import type { Subject } from "./subject";
import { known, open } from "./subject";

/** `words` is what follows `ct`, such as `state` or `original ip daddr`. */
export function selectConntrack(words: readonly string[], question: Question): Subject {
  const { flow, meeting } = question;
  const { packet, family } = meeting.node;
  const name = words.join(" ");
  switch (name) {
    case "state":
      return known(numberOf("state", flow.tracked ? "new" : "untracked")!);
    case "status":
      if (flow.ipvs) return open("what the connection's status is");
      return known((flow.dnat.length > 0 ? 32 : 0) + (flow.snat.length > 0 ? 16 : 0));
    case "direction":
      return known(0);
    case "mark":
      return known(flow.connmark);
    case "original proto-dst":
      return known(packet.port);
    case "protocol":
    case "original protocol":
      return known(protocols[flow.protocol]);
    case "l3proto":
    case "original l3proto":
      return known(family === 4 ? 2 : 10);
  }
  const original = /^original (?:(ip6?) )?([sd])addr$/.exec(name);
  if (original === null) return open(`what the connection's ${name} is`);
  const [, version, end] = original;
  if (version !== undefined && (version === "ip") !== (family === 4)) return { is: "absent" };
  return end === "d"
    ? address(packet.destination)
    : source({ ...question, flow: { ...flow, snat: [] } });
}
