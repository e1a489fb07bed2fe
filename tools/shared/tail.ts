import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** How one writing of a file is distinguished from the next: an event log begins with the time. */
const headBytes = 64;

/** Reads a file while another process writes it, also when that begins anew. */
export class Tail {
  #offset = 0;
  #head = Buffer.alloc(0);

  constructor(private readonly path: string) {}

  /** The lines that were ended since the last time; none while there is no such file. */
  lines(): string[] {
    let file: number;
    try {
      file = openSync(this.path, "r");
    } catch {
      return [];
    }
    try {
      const { size } = fstatSync(file);
      const head = Buffer.alloc(Math.min(headBytes, this.#offset, size));
      readSync(file, head, 0, head.length, 0);
      if (this.#offset > size || !this.#head.equals(head)) this.#offset = 0;
      const bytes = Buffer.alloc(size - this.#offset);
      const got = readSync(file, bytes, 0, bytes.length, this.#offset);
      const whole = bytes.subarray(0, got).lastIndexOf(0x0a) + 1;
      if (this.#offset < headBytes) {
        const seen = Buffer.concat([
          this.#offset === 0 ? Buffer.alloc(0) : this.#head,
          bytes.subarray(0, whole),
        ]);
        this.#head = seen.subarray(0, headBytes);
      }
      this.#offset += whole;
      return whole === 0
        ? []
        : bytes
            .subarray(0, whole - 1)
            .toString("utf8")
            .split("\n");
    } finally {
      closeSync(file);
    }
  }
}
