import { mkdirSync, readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

import { Resource } from "./resource-type";

const format = 1;

/** What is wrong with the state file, for the user's eyes. */
export class UnreadableState extends Error {
  override readonly name = "UnreadableState";
}

/**
 * The cloud's memory: one JSON file, always whole.
 *
 * A write goes to a file beside it that takes its place when it is on the disk. Changes that come while
 * one is under way share the next, so that many at once cost two writes.
 */
export class StateFile {
  private writing: Promise<void> = Promise.resolve();
  private next?: Promise<void>;

  constructor(
    private readonly path: string,
    private readonly resources: () => Iterable<Resource>,
  ) {
    mkdirSync(dirname(path), { recursive: true });
  }

  load(): Resource[] {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new UnreadableState(
        `the local Azure cannot read its state, ${this.path}: ${(error as Error).message}`,
      );
    }
    let trouble: string;
    try {
      const state = JSON.parse(text) as { format?: unknown; resources?: unknown };
      if (state.format === format && Array.isArray(state.resources)) {
        const resources = state.resources as Resource[];
        if (
          resources.every(
            (resource) =>
              typeof resource?.id === "string" &&
              resource.body !== null &&
              typeof resource.body === "object",
          )
        )
          return resources;
      }
      trouble = `it has format ${JSON.stringify(state.format)} with ${Array.isArray(state.resources) ? "a damaged list of" : "no list of"} resources; expected format ${format}`;
    } catch (error) {
      trouble = `it is no JSON: ${(error as Error).message}`;
    }
    throw new UnreadableState(
      `the state of the local Azure, ${this.path}, cannot be used: ${trouble}.\n` +
        "  It was left as it is. Put back a good copy, or give the rehearsal up: npm stop removes it, and npm start begins anew.",
    );
  }

  /** Resolves when everything up to now is on the disk. */
  save(): Promise<void> {
    this.next ??= this.writing
      .catch(() => undefined)
      .then(() => {
        this.next = undefined;
        this.writing = this.write();
        return this.writing;
      });
    return this.next;
  }

  private async write(): Promise<void> {
    const text = JSON.stringify({ format, resources: [...this.resources()] });
    const beside = `${this.path}.new`;
    const file = await open(beside, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, this.path);
  }
}
