import { DumpProblem } from "../../model/dump";

/** A statement with its line, and what ended it. */
export interface Piece {
  readonly text: string;
  readonly line: number;
  readonly end: "{" | "}" | ";" | "eof";
}

const NEWLINE = 10;

const QUOTE = 34;

const HASH = 35;

const SEMICOLON = 59;

const OPEN = 123;

const CLOSE = 125;

/** Cuts a listing into statements and blocks, without understanding what they say. */
export class Scanner {
  private position = 0;
  /** Of the place that is read next. */
  line: number;
  /** Comments that stand alone, such as nft's warnings. */
  readonly remarks: string[] = [];

  constructor(
    private readonly text: string,
    readonly file: string,
    firstLine: number,
  ) {
    this.line = firstLine;
  }

  /**
   * The next statement; with `blocks` a brace opens a block, without it belongs to the statement.
   */
  next(blocks: boolean): Piece {
    const text = this.text;
    const length = text.length;
    let start = -1;
    let stop = -1;
    let startLine = this.line;
    let depth = 0;
    for (; this.position < length; this.position++) {
      const code = text.charCodeAt(this.position);
      if (code === NEWLINE) {
        this.line++;
        if (start < 0 || depth > 0) continue;
        this.position++;
        return this.piece(start, stop, startLine, ";");
      }
      if (code <= 32) continue;
      if (code === HASH) {
        const end = this.endOfLine();
        const remark = text.slice(this.position, end);
        this.position = end - 1;
        if (start < 0) this.remarks.push(remark);
        // Within a rule, what is not its handle stands for a match that nft could not write.
        else if (!/^#\s*handle \d+\s*$/.test(remark)) {
          stop = this.position + 1 - (/\s*# handle \d+\s*$/.exec(remark)?.[0].length ?? 0);
        }
        continue;
      }
      if (depth === 0 && (code === CLOSE || code === SEMICOLON || (code === OPEN && blocks))) {
        if (code === SEMICOLON && start < 0) continue;
        if (code === CLOSE && start >= 0) return this.piece(start, stop, startLine, ";");
        this.position++;
        const end = code === OPEN ? "{" : code === CLOSE ? "}" : ";";
        return this.piece(start, stop, start < 0 ? this.line : startLine, end);
      }
      if (start < 0) {
        start = this.position;
        startLine = this.line;
      }
      if (code === OPEN) depth++;
      else if (code === CLOSE) depth--;
      else if (code === QUOTE) this.skipQuoted();
      stop = this.position + 1;
    }
    if (depth > 0) throw this.cutOff("}", text.slice(start, start + 60));
    return this.piece(start, stop, startLine, start < 0 ? "eof" : ";");
  }

  /** Leaves a block whose content does not matter. */
  skipBlock(what: string): void {
    for (let depth = 1; depth > 0;) {
      const piece = this.next(true);
      if (piece.end === "eof") throw this.cutOff("}", what);
      if (piece.end === "{") depth++;
      if (piece.end === "}") depth--;
    }
  }

  cutOff(expected: string, after: string): DumpProblem {
    const line = this.text.endsWith("\n") ? this.line - 1 : this.line;
    return new DumpProblem(
      this.file,
      line,
      `"${expected}" that ends ${after.split("\n")[0]!.trim()}`,
      "the end of the text",
      "the listing is cut off; take it again, whole",
    );
  }

  private piece(start: number, stop: number, line: number, end: Piece["end"]): Piece {
    return { text: start < 0 ? "" : this.text.slice(start, stop), line, end };
  }

  private endOfLine(): number {
    const end = this.text.indexOf("\n", this.position);
    return end < 0 ? this.text.length : end;
  }

  private skipQuoted(): void {
    const opened = this.position;
    for (this.position++; this.position < this.text.length; this.position++) {
      const code = this.text.charCodeAt(this.position);
      if (code === QUOTE) return;
      if (code === NEWLINE) break;
    }
    throw this.cutOff('"', this.text.slice(opened, opened + 40));
  }
}
