import type { Step } from "./answer";

/** What is told of the way: the rules met, in order and once each, and what was assumed. */
export class Path {
  readonly steps: Step[] = [];
  readonly notes = new Set<string>();
  /** How many rules were looked at; tests of the work done count it. */
  visited = 0;
  private readonly told = new Set<string>();

  step(table: string, chain: string, rule: string, effect: string): void {
    const key = `${table}\n${chain}\n${rule}\n${effect}`;
    if (this.told.has(key)) return;
    this.told.add(key);
    this.steps.push({ table, chain, rule, effect });
  }

  note(sentence: string): void {
    this.notes.add(sentence);
  }
}
