import { mkdirSync, readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

import { UserError } from "../../../shared/user-error";
import { Resource } from "./resource";

const format = 1;

/**
 * All resources in one JSON file that is never half written.
 *
 * A write goes to a temporary file that replaces it once it is on the disk. Changes during a write
 * share the next one.
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
      throw new UserError(
        `the local Azure cannot read its state, ${this.path}: ${(error as Error).message}`,
      );
    }
    let problem: string;
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
      problem = `it has format ${JSON.stringify(state.format)} with ${Array.isArray(state.resources) ? "a damaged list of" : "no list of"} resources; expected format ${format}`;
    } catch (error) {
      problem = `it is not JSON: ${(error as Error).message}`;
    }
    throw new UserError(
      `the state of the local Azure, ${this.path}, cannot be used: ${problem}.\n` +
        "  It was not changed. Restore a good copy, or run npm stop, which removes it, and then npm start.",
    );
  }

  /** Resolves when all changes up to now are on the disk. */
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
    const temporary = `${this.path}.new`;
    const file = await open(temporary, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, this.path);
  }
}
