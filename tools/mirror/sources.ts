import { fetch } from "../../components/settings/shell-proxy";
import { withTimeLimit } from "../shared/concurrency";

/** How long an official source may take to answer. */
const answerWithin = 5000;

/** Which official sources answer here: each is asked once. */
export class Sources {
  readonly #asked = new Map<string, Promise<boolean>>();

  constructor(private readonly signal: AbortSignal) {}

  /** Whether this address answers; 401 counts, since registries require a token. */
  answers(url: string): Promise<boolean> {
    const known = this.#asked.get(url);
    if (known) return known;
    const asked = this.#ask(url);
    this.#asked.set(url, asked);
    return asked;
  }

  async #ask(url: string): Promise<boolean> {
    try {
      const { status } = await withTimeLimit(answerWithin, this.signal, (signal) =>
        fetch(url, { method: "HEAD", signal }),
      );
      return status < 400 || status === 401;
    } catch {
      this.signal.throwIfAborted();
      return false;
    }
  }
}

/** One thing that a mirror has. */
export interface Item {
  readonly what: string;
  /** Where it came from, in words. */
  readonly from: string;
}

export interface Missing {
  readonly what: string;
  readonly why: string;
  /** The command that sets up a stack without it. */
  readonly without?: string;
}

export interface Report {
  readonly items: readonly Item[];
  readonly missing: readonly Missing[];
}
