import type { Expression } from "../../model/statement";
import { type Kind, kindOf, numberOf } from "./kinds";
import { type Question, select } from "./select";
import { known, open, type Subject } from "./subject";

/** What the packet has for an expression, part by part, and how each is written in elements. */
export interface Key {
  readonly kinds: readonly Kind[];
  readonly subjects: readonly Subject[];
}

export function keyOf(expression: Expression, question: Question): Key {
  const parts = expression.kind === "concat" ? expression.parts : [expression];
  return {
    kinds: parts.map(kindIn),
    subjects: parts.map((part) => subjectOf(part, kindIn(part), question)),
  };
}

function kindIn(expression: Expression): Kind {
  if (expression.kind === "selector") return kindOf(expression.name);
  return expression.kind === "binary" ? kindIn(expression.left) : "number";
}

export function subjectOf(expression: Expression, kind: Kind, question: Question): Subject {
  switch (expression.kind) {
    case "selector":
      return select(expression.name, question);
    case "literal": {
      const value = numberOf(kind, expression.text);
      return value === null ? open(`what "${expression.text}" stands for`) : known(value);
    }
    case "pick":
      return { is: "pick", how: expression.how, mod: expression.mod, offset: expression.offset };
    case "binary": {
      const left = subjectOf(expression.left, kind, question);
      const right = subjectOf(expression.right, kind, question);
      return combine(expression.sign, left, right);
    }
    default:
      return open("what a rule computes");
  }
}

function combine(sign: string, left: Subject, right: Subject): Subject {
  if (left.is === "absent") return left;
  if (left.is === "pick" && sign === "&" && right.is === "value")
    return masked(left.how, left.mod, Number(right.value));
  if (left.is !== "value")
    return left.is === "open" ? open(left.why) : open("which number is picked");
  if (right.is !== "value")
    return right.is === "open" ? open(right.why) : open("which number is picked");
  const value = compute(sign, BigInt(left.value), BigInt(right.value));
  // IPv4 addresses stay addresses: only their numbers are compared.
  return {
    is: "value",
    value: typeof left.value === "bigint" ? value : Number(BigInt.asUintN(32, value)),
    text: String(value),
  };
}

function compute(sign: string, left: bigint, right: bigint): bigint {
  switch (sign) {
    case "&":
      return left & right;
    case "|":
      return left | right;
    case "^":
      return left ^ right;
    case "<<":
      return left << right;
    default:
      return left >> right;
  }
}

/** The low bits of a random number are random numbers themselves. */
function masked(how: string, mod: number, mask: number): Subject {
  return Number.isInteger(Math.log2(mask + 1)) && mod % (mask + 1) === 0
    ? { is: "pick", how, mod: mask + 1, offset: 0 }
    : open("which number is picked");
}
