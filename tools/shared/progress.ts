const tick = 1000;
const silence = 20_000;

/** A duration for users: `4 s`, `2 min 10 s`. */
export function spoken(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const rest = seconds % 60;
  return rest === 0 ? `${seconds / 60} min` : `${Math.floor(seconds / 60)} min ${rest} s`;
}

/** Where progress goes; a terminal gets one living line, anything else a line now and then. */
export interface Sink {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** One thing that is being waited for. */
export interface Step {
  /** What it is doing now; shown behind the name. */
  update(detail: string): void;
  /** Ends the step; a text replaces the name in the closing line, `false` leaves that line out. */
  done(text?: string | false): void;
}

interface Running {
  readonly name: string;
  readonly typical?: string;
  readonly since: number;
  detail: string;
  shown: number;
}

/** Says what is going on and for how long, so that a wait never looks like a hang. */
export class Progress {
  readonly #running = new Set<Running>();
  #timer?: NodeJS.Timeout;

  constructor(private readonly sink: Sink = process.stdout) {}

  /** Whether the output is a terminal, for colours and a line that is rewritten. */
  get isLiving(): boolean {
    return this.sink.isTTY === true;
  }

  /** A line of its own, for good. */
  line(text: string): void {
    this.#clear();
    this.sink.write(`${text}\n`);
    this.#draw();
  }

  /** Begins something; `typical` is how long it usually takes, in words. */
  step(name: string, typical?: string): Step {
    const step: Running = { name, typical, since: Date.now(), detail: "", shown: Date.now() };
    this.#running.add(step);
    if (!this.sink.isTTY) this.sink.write(`${this.#describe(step)} …\n`);
    this.#timer ??= setInterval(() => this.#tick(), tick).unref();
    this.#draw();
    return {
      update: (detail) => {
        step.detail = detail;
      },
      done: (text = name) => this.#end(step, text),
    };
  }

  /** Runs `work` as a step, which ends with it; a failure leaves no closing line. */
  async during<T>(name: string, work: (step: Step) => Promise<T>, typical?: string): Promise<T> {
    const step = this.step(name, typical);
    let closing: false | undefined = false;
    try {
      const result = await work(step);
      closing = undefined;
      return result;
    } finally {
      step.done(closing);
    }
  }

  #end(step: Running, text: string | false): void {
    if (!this.#running.delete(step)) return;
    this.#clear();
    if (text !== false) this.sink.write(`${text} (${spoken(Date.now() - step.since)})\n`);
    if (this.#running.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#draw();
  }

  #tick(): void {
    if (this.sink.isTTY) return this.#draw();
    for (const step of this.#running) {
      if (Date.now() - step.shown < silence) continue;
      step.shown = Date.now();
      this.sink.write(`  still ${this.#describe(step)}\n`);
    }
  }

  #describe({ name, detail, typical, since }: Running): string {
    const elapsed = Date.now() - since;
    const times = [
      ...(elapsed < tick ? [] : [spoken(elapsed)]),
      ...(typical === undefined ? [] : [`typically ${typical}`]),
    ].join(", ");
    return `${name}${detail && `: ${detail}`}${times && ` (${times})`}`;
  }

  #draw(): void {
    if (!this.sink.isTTY || this.#running.size === 0) return;
    const text = [...this.#running].map((step) => this.#describe(step)).join(" | ");
    this.sink.write(`\r\x1b[2K${text.slice(0, (this.sink.columns ?? 80) - 1)}`);
  }

  #clear(): void {
    if (this.sink.isTTY) this.sink.write("\r\x1b[2K");
  }
}
