import type { IpSet } from "../model/dump";
import { canonical, isWithin, rangeOf } from "../model/packet";
import { isSourceIn } from "./addresses";
import type { Node, Path } from "./context";
import { anyOf, type Decision, type Flow } from "./flow";

interface Question {
  readonly node: Node;
  readonly flow: Flow;
  readonly path: Path;
  readonly sides: readonly string[];
}

/** Members by their first part if it is a single address or port; the others are searched. */
interface Index {
  readonly byFirst: ReadonlyMap<string, readonly Member[]>;
  readonly others: readonly Member[];
}

interface Member {
  readonly parts: readonly string[];
  readonly excludes: boolean;
  readonly prefix: number;
}

const indexes = new WeakMap<IpSet, Index>();

/** Whether the packet's addresses and port, taken by `sides` (`dst,dst,src`), are in the set. */
export function isInSet(name: string, question: Question, depth = 0): Decision {
  const { ipsets } = question.node.dump;
  if (ipsets === null) {
    question.path.note("Rules ask sets of ipset, which are in no dump: add `ipset save`.");
  }
  const set = ipsets?.sets.get(name);
  if (set === undefined)
    return { why: `whether the packet is in set ${name}, which is in no dump` };
  if (set.type === "list:set") {
    if (depth > 8) return { why: `whether the packet is in set ${name}, which contains itself` };
    return anyOf(set.members.map((member) => isInSet(member.split(" ")[0]!, question, depth + 1)));
  }
  if (set.family !== question.node.family && !set.type.startsWith("bitmap:port")) return false;
  const types = set.type.slice(set.type.indexOf(":") + 1).split(",");
  const index = indexOf(set);
  const first = types[0] === "port" ? String(question.flow.port) : addressOf(question, 0);
  const candidates =
    first === null
      ? [...[...index.byFirst.values()].flat(), ...index.others]
      : [...(index.byFirst.get(first) ?? []), ...index.others];
  const found = candidates.map((member) => ({ member, fits: memberFits(member, types, question) }));
  const sure = found.filter((each) => each.fits === true).map((each) => each.member);
  const best = sure.sort((a, b) => b.prefix - a.prefix)[0];
  const undecided = found.find((each) => typeof each.fits === "object");
  if (undecided !== undefined && (best === undefined || best.excludes)) return undecided.fits;
  return best !== undefined && !best.excludes;
}

function addressOf(question: Question, at: number): string | null {
  return question.sides[at] === "src" ? question.flow.source : question.flow.destination;
}

function memberFits(member: Member, types: readonly string[], question: Question): Decision {
  let undecided: Decision = true;
  for (const [at, type] of types.entries()) {
    const part = member.parts[at];
    if (part === undefined) return false;
    const fits = partFits(part, type, at, member, question);
    if (fits === false) return false;
    if (typeof fits === "object") undecided = fits;
  }
  return undecided;
}

function partFits(
  part: string,
  type: string,
  at: number,
  member: Member,
  question: Question,
): Decision {
  const { node, flow, path } = question;
  if (type === "port") return portFits(part, question.sides[at], flow);
  if (type === "mark") return Number(part) === flow.mark;
  if (type !== "ip" && type !== "net") return { why: `whether the packet's ${type} is ${part}` };
  const range = rangeOf(part);
  if (range === null) return { why: `what ${part} in a set stands for` };
  if (question.sides[at] !== "src") {
    const destination = rangeOf(flow.destination);
    return destination !== null && isWithin(destination, range);
  }
  // Of KUBE-LOOP-BACK's kind: an address that reaches itself.
  const ownEndpoint = member.parts.some((other, index) => index !== at && other === part);
  return isSourceIn(node, flow, range, ownEndpoint, path);
}

/**
 * `80`, `tcp:80`, `tcp:80-90`; a bare port stands in a bitmap, which the kernel asks for TCP and
 * UDP only.
 */
function portFits(part: string, side: string | undefined, flow: Flow): Decision {
  if (!part.includes(":") && flow.protocol === "sctp") return false;
  const [protocol, ports] = part.includes(":") ? part.split(":") : [null, part];
  if (protocol !== null && protocol !== flow.protocol) return false;
  const [low, high] = ports!.split("-").map(Number);
  if (side === "src") return { why: "which port the client has" };
  return flow.port >= low! && flow.port <= (high ?? low!);
}

function indexOf(set: IpSet): Index {
  const before = indexes.get(set);
  if (before !== undefined) return before;
  const byFirst = new Map<string, Member[]>();
  const others: Member[] = [];
  for (const text of set.members) {
    const [elements, ...options] = text.split(" ");
    const parts = elements!.split(",");
    const prefix = Number(parts.find((part) => part.includes("/"))?.split("/")[1] ?? 128);
    const member = { parts, excludes: options.includes("nomatch"), prefix };
    const first = parts[0]!;
    const key = /^\d+$/.test(first) ? first : /[/-]/.test(first) ? null : canonical(first);
    if (key === null) others.push(member);
    else if (byFirst.has(key)) byFirst.get(key)!.push(member);
    else byFirst.set(key, [member]);
  }
  const index = { byFirst, others };
  indexes.set(set, index);
  return index;
}
