import type { Element } from "../../model/nftables";

/** Where an element's options begin: everything between its key and its value. */
const options =
  /\s+(?:comment\s+"|timeout\s|expires\s|counter\b|limit\s|quota\s|last\s|ct count\s)/;

/** Cuts `{ a . b comment "x" : goto c, d-e }` (with or without its braces) into elements. */
export function readElements(text: string): Element[] {
  const elements: Element[] = [];
  const inner = text.trimStart().startsWith("{")
    ? text.slice(text.indexOf("{") + 1, text.lastIndexOf("}"))
    : text;
  let start = 0;
  let quoted = false;
  let depth = 0;
  for (let i = 0; i <= inner.length; i++) {
    const code = i === inner.length ? 44 : inner.charCodeAt(i);
    if (code === 34) quoted = !quoted;
    else if (quoted && i < inner.length) continue;
    else if (code === 123) depth++;
    else if (code === 125) depth--;
    else if (code === 44 && depth === 0) {
      const element = inner.slice(start, i).trim();
      if (element !== "") elements.push(readElement(element));
      start = i + 1;
    }
  }
  return elements;
}

function readElement(text: string): Element {
  const colon = text.includes('"') ? colonOutsideQuotes(text) : colonAt(text);
  const left = colon < 0 ? text : text.slice(0, colon).trimEnd();
  const end = left.search(options);
  const key = end < 0 ? left : left.slice(0, end);
  return {
    key: key.split(" . ").map((part) => part.trim()),
    value: colon < 0 ? null : text.slice(colon + 1).trim(),
    comment: end < 0 ? null : (/\scomment\s+"([^"]*)"/.exec(left)?.[1] ?? null),
  };
}

/** The colon before a value has a blank behind it; those of IPv6 addresses have not. */
function colonAt(text: string): number {
  const spaced = text.indexOf(" : ");
  return spaced >= 0 ? spaced + 1 : text.search(/:\s/);
}

function colonOutsideQuotes(text: string): number {
  return colonAt(text.replace(/"[^"]*"/g, (quoted) => "_".repeat(quoted.length)));
}
