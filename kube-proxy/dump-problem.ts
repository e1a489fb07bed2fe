/** A dump that cannot be what a node said; its message is for the person who gave it. */
export class DumpProblem extends Error {
  constructor(
    readonly file: string,
    readonly line: number,
    readonly expected: string,
    readonly got: string,
    readonly mend = "",
  ) {
    super(
      `${file}:${line}: expected ${expected}, got ${got === "" ? "nothing" : got}` +
        (mend === "" ? "" : `; ${mend}`),
    );
    this.name = "DumpProblem";
  }
}
