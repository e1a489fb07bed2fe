const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Words as text or attribute of XML, which has no place for control characters. */
export const escaped = (words: string): string =>
  words
    .replace(/[&<>"]/g, (character) => escapes[character] ?? character)
    .replace(/[^\P{Cc}\t\n\r]|[\ufffe\uffff]/gu, " ");
