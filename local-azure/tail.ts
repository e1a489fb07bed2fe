import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** Reads a file while another process writes it. */
export class Tail {
  #offset = 0;

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
      const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - this.#offset));
      const got = readSync(file, bytes, 0, bytes.length, this.#offset);
      const whole = bytes.subarray(0, got).lastIndexOf(0x0a) + 1;
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
