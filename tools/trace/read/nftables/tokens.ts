const word =
  /\s*(?:([{}(),;])|((?:==|!=|<=|>=|<<|>>|[<>&|^])(?=[\s"\w(]|$))|(!)(?=\s)|(#)|((?:"[^"]*"|[^\s{}(),;"])+))/y;

/**
 * The words of a rule: braces, commas and operators stand alone, everything else is cut at blanks.
 */
export function tokens(text: string): string[] {
  const words: string[] = [];
  word.lastIndex = 0;
  for (;;) {
    const found = word.exec(text);
    if (found === null) return words;
    words.push(found[0].trimStart());
  }
}

/** Walks over the words of a rule. */
export class Words {
  position = 0;

  constructor(private readonly words: readonly string[]) {}

  get done(): boolean {
    return this.position >= this.words.length;
  }

  peek(ahead = 0): string {
    return this.words[this.position + ahead] ?? "";
  }

  next(): string {
    return this.words[this.position++] ?? "";
  }

  /** Takes the next words if they are these. */
  take(...expected: readonly string[]): boolean {
    if (!expected.every((each, ahead) => this.peek(ahead) === each)) return false;
    this.position += expected.length;
    return true;
  }

  /** `{ … }` as text, with the braces inside; null when the next word opens none. */
  braces(): string | null {
    if (this.peek() !== "{") return null;
    const start = this.position;
    let depth = 0;
    do {
      const each = this.next();
      if (each === "{") depth++;
      if (each === "}") depth--;
    } while (depth > 0 && !this.done);
    return this.since(start);
  }

  since(start: number): string {
    return this.words.slice(start, this.position).join(" ");
  }
}

export function unquoted(text: string): string {
  return text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}
