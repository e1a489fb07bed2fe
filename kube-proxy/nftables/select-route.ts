import { isLocal, isSourceLocal } from "../addresses/local";
import type { Decision, Undecided } from "../flow";
import { numberOf } from "./kinds";
import type { Question } from "./question";
import { isMany } from "./question";
import type { NamedDoubt, Subject } from "./subject";
import { open } from "./subject";

/** `words` is what follows `fib`, such as `daddr . iif type`. */
export function selectRoute(words: readonly string[], { flow, meeting }: Question): Subject {
  const { node, path } = meeting;
  const ofSource = words[0] === "saddr";
  const result = words.at(-1);
  const what = ofSource ? "the source" : flow.destination;
  if (result === "type") {
    const local = ofSource
      ? isSourceLocal(node, flow.source, path)
      : isLocal(node, flow.destination, path);
    const ask = (text: string): Decision => {
      const type = numberOf("route", text);
      if (type === null) return { why: `what "${text}" stands for` };
      if (!ofSource && isMany(flow.destination)) return { why: `what kind of address ${what} is` };
      if (type > 2) return false;
      if (local !== true && local !== false) return undecided(type, local, flow.destination);
      if (type === 2 && local && words.includes("iif"))
        return { why: `whether ${what} is on the interface that the packet comes in by` };
      return type === (local ? 2 : 1);
    };
    return { is: "open", ask, why: `what kind of address ${what} is` };
  }
  if (ofSource && (result === "oif" || result === "check")) {
    path.note(
      "The way back to the source is taken to lead out of the interface that the packet comes in by.",
    );
    return {
      is: "open",
      ask: (text) =>
        /^(missing|false|0)$/.test(text)
          ? false
          : /^(exists|true)$/.test(text)
            ? true
            : { why: `which way leads back to the source` },
      why: "which way leads back to the source",
    };
  }
  return open(`which way leads to ${what}`);
}

/** The kernel's own routing asks the same, and the answer has to be the same there. */
function undecided(type: number, local: Undecided, destination: string): Decision {
  if (type !== 2) return { why: `whether ${destination} is an address of another machine` };
  const asked: NamedDoubt = { ...local, id: `local ${destination}` };
  return asked;
}
