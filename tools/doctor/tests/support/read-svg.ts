export interface Element {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly Element[];
  /** Its own, without that of its children. */
  readonly text: string;
}

const entities: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&amp;": "&",
  "&quot;": '"',
};

const plain = (text: string): string => {
  if (/[<\p{Cc}]/u.test(text.replace(/[\t\n\r]/g, ""))) throw new Error(`not XML: ${text}`);
  return text.replace(/&\w*;?/g, (entity) => {
    if (entities[entity] === undefined) throw new Error(`not XML: ${text}`);
    return entities[entity];
  });
};

/** Reads the XML that this tool writes, which has neither comments nor namespaces inside. */
export function readSvg(xml: string): Element {
  const top = { tag: "", attributes: {}, children: [] as Element[], text: "" };
  const open = [top];
  for (const [, text = "", end, tag, attributes = "", closed] of xml.matchAll(
    /([^<]*)(?:<(\/)?(\w+)((?:\s+[\w:-]+="[^"]*")*)\s*(\/)?>|$)/gy,
  )) {
    open.at(-1)!.text += plain(text).trim();
    if (tag === undefined) break;
    if (end) {
      if (open.pop()!.tag !== tag) throw new Error(`not XML: </${tag}> ends another element`);
      continue;
    }
    const pairs = [...attributes.matchAll(/([\w:-]+)="([^"]*)"/g)];
    const element = {
      ...{ tag, children: [], text: "" },
      attributes: Object.fromEntries(pairs.map(([, name, value]) => [name, plain(value!)])),
    };
    open.at(-1)!.children.push(element);
    if (!closed) open.push(element);
  }
  const [root, ...others] = top.children;
  if (open.length !== 1 || root?.tag !== "svg" || others.length > 0) {
    throw new Error("not one whole svg element");
  }
  return root;
}

/** All elements of a kind, from outside to inside. */
export const all = (element: Element, tag: string): Element[] =>
  element.children.flatMap((child) => [...(child.tag === tag ? [child] : []), ...all(child, tag)]);

/** What a group is called. */
export const titleOf = ({ children }: Element): string =>
  children.find(({ tag }) => tag === "title")?.text ?? "";

/** The group of which the title has such a first line. */
export function groupOf(element: Element, title: string): Element {
  const found = all(element, "g").filter((one) => titleOf(one).split("\n")[0] === title);
  if (found.length !== 1) throw new Error(`${found.length} groups are called ${title}`);
  return found[0]!;
}

/** All words that are written in an element. */
export const wordsOf = (element: Element): string[] => all(element, "text").map(({ text }) => text);

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export const boxOf = ({ attributes }: Element): Box => {
  const [left, top, width, height] = ["x", "y", "width", "height"].map((name) =>
    Number(attributes[name]),
  ) as [number, number, number, number];
  return { left, top, right: left + width, bottom: top + height };
};

/** The frame that a group is drawn in. */
export const frameOf = (group: Element): Box => boxOf(all(group, "rect")[0]!);

export const overlap = (one: Box, other: Box): boolean =>
  one.left < other.right &&
  other.left < one.right &&
  one.top < other.bottom &&
  other.top < one.bottom;

export const isWithin = (inner: Box, outer: Box): boolean =>
  inner.left >= outer.left &&
  inner.right <= outer.right &&
  inner.top >= outer.top &&
  inner.bottom <= outer.bottom;
