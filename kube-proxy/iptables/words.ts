/** A rule's words as a shell would split them; iptables-save quotes what has spaces and escapes quotes in it. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|(\S+)/g;
  for (const match of text.matchAll(pattern)) {
    words.push(match[1] === undefined ? match[2]! : match[1].replace(/\\(.)/g, "$1"));
  }
  return words;
}

/** Where a rule stands, and its words, for a message. */
export const placed = (
  table: { readonly name: string },
  chain: { readonly name: string },
  rule: { readonly text: string },
): string => `table ${table.name}, chain ${chain.name}: \`${shorten(rule.text)}\``;

/** A rule in one line of a message. */
export function shorten(text: string): string {
  const plain = text.replace(/\s+/g, " ");
  return plain.length > 160 ? `${plain.slice(0, 157)}…` : plain;
}
