import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../shared/files";
import { sha256 } from "./hash";

/** What is known of something that was made or fetched earlier. */
export interface Stamp {
  /** Of what it was made. */
  readonly key: string;
  readonly isOfficial: boolean;
  /** Where it came from, in words. */
  readonly from: string;
  /** Where it is: a file's name, or an image's digest. */
  readonly result: string;
}

/** Notes beside what they are about, so that only what changed is made again. */
export class Stamps {
  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true });
  }

  /** The note about something, when it was made of the same. */
  find(name: string, recipe: unknown): Stamp | undefined {
    let stamp: Stamp;
    try {
      stamp = JSON.parse(readFileSync(this.#path(name), "utf8")) as Stamp;
    } catch {
      return undefined;
    }
    return stamp.key === keyOf(recipe) ? stamp : undefined;
  }

  write(name: string, recipe: unknown, stamp: Omit<Stamp, "key">): Stamp {
    const whole = { key: keyOf(recipe), ...stamp };
    writeWhole(this.#path(name), JSON.stringify(whole));
    return whole;
  }

  #path(name: string): string {
    return join(this.folder, `${encodeURIComponent(name)}.json`);
  }
}

const keyOf = (recipe: unknown): string => sha256(JSON.stringify(recipe));
