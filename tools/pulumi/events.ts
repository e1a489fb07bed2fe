import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** What an operation did, as the engine reports it. */
export interface Outcome {
  /** How many resources by what was done with them; unchanged ones are `same`. */
  readonly changes: Readonly<Record<string, number>>;
  /** Errors and warnings, as text. */
  readonly diagnostics: readonly string[];
  /**
   * What was begun with which resource, such as `update zoned-dev-nsg`, in order; unchanged ones
   * are left out.
   */
  readonly steps: readonly string[];
}

interface EngineEvent {
  /** The first of a preview, and of an update. */
  readonly preludeEvent?: object;
  readonly resourcePreEvent?: { readonly metadata: Metadata };
  readonly resOutputsEvent?: { readonly metadata: Metadata };
  readonly resOpFailedEvent?: { readonly metadata: Metadata };
  readonly diagnosticEvent?: { readonly severity: string; readonly message: string };
  readonly summaryEvent?: { readonly resourceChanges?: Record<string, number> };
}

interface Metadata {
  readonly op: string;
  readonly urn: string;
  /** A component is under way as long as anything in it is, which says nothing. */
  readonly new?: { readonly custom?: boolean } | null;
  readonly old?: { readonly custom?: boolean } | null;
}

/** The engine's own notation of colours. */
const colour = /<\{%.*?%\}>/g;

/**
 * Providers that the program does not name are made by the engine, and no preview announces them.
 */
const provider = /::pulumi:providers:/;

const noChange = new Set(["same", "read"]);

/** Follows the engine's event log while the engine writes it. */
export class Events {
  readonly #log: Tail;
  readonly #underWay = new Map<string, string>();
  #diagnostics: string[] = [];
  #steps: string[] = [];
  #changes: Record<string, number> = {};

  constructor(path: string) {
    this.#log = new Tail(path);
  }

  get outcome(): Outcome {
    return {
      changes: this.#changes,
      diagnostics: this.#diagnostics,
      steps: this.#steps,
    };
  }

  /** What the engine waits for now: names of resources, with what is being done to them. */
  get underWay(): string[] {
    return [...this.#underWay].map(([urn, op]) => `${op} ${urn.split("::").at(-1)}`);
  }

  /** Reads what was added since the last time. */
  read(): void {
    for (const line of this.#log.lines()) {
      // Debug messages are most of the log and say nothing here.
      if (!line.includes('"severity":"debug"')) this.#take(JSON.parse(line));
    }
  }

  #take(event: EngineEvent): void {
    const { resourcePreEvent, diagnosticEvent, summaryEvent } = event;
    const ended = event.resOutputsEvent ?? event.resOpFailedEvent;
    if (event.preludeEvent) {
      this.#steps = [];
      this.#diagnostics = [];
      this.#changes = {};
    }
    if (resourcePreEvent) this.#began(resourcePreEvent.metadata);
    if (ended) this.#underWay.delete(ended.metadata.urn);
    if (diagnosticEvent && /^(error|warning)$/.test(diagnosticEvent.severity)) {
      this.#diagnostics.push(diagnosticEvent.message.replaceAll(colour, "").trimEnd());
    }
    if (summaryEvent) this.#changes = summaryEvent.resourceChanges ?? {};
  }

  #began({ op, urn, new: after, old: before }: Metadata): void {
    const isCustom = (after ?? before)?.custom === true;
    if (!isCustom || noChange.has(op)) return;
    this.#underWay.set(urn, op);
    if (!provider.test(urn)) this.#steps.push(`${op} ${urn.split("::").at(-1)}`);
  }
}

/** Whether anything was made, changed or taken away. */
export const changedAnything = ({ changes }: Outcome): boolean =>
  Object.entries(changes).some(([op, count]) => count > 0 && !noChange.has(op));

/** How the engine prints a step of a preview, and what its event log calls the same. */
const operations: Readonly<Record<string, string>> = {
  create: "create",
  update: "update",
  delete: "delete",
  replace: "replace",
  "create replacement": "create-replacement",
  "delete original": "delete-replaced",
  refresh: "refresh",
};

const stepLine =
  /^ *\S+ +(?<type>\S+:\S+) (?<name>\S+) (?<operation>[a-z]+(?: replacement| original)?)(\[retain\])? *(\[.*)?$/;

/** Components come and go with what is in them, and providers with their resources. */
const component = /^(zoned:|pulumi:)/;

const terminalColours = new RegExp(String.raw`${"\u001b"}\[[0-9;]*m`, "g");

/**
 * The steps that a preview announced, such as `update zoned-dev-nsg`; undefined where none came
 * before the operation itself.
 *
 * Read from what the engine prints: over its preview's event log it writes that of the operation.
 */
export function plannedSteps(stdout: string): string[] | undefined {
  const [, preview, operation] =
    /^Previewing [^\n]*\n(.*?)^(Updating|Refreshing|Destroying) /ms.exec(
      stdout.replaceAll(terminalColours, ""),
    ) ?? [];
  if (preview === undefined || operation === undefined) return undefined;
  return preview.split("\n").flatMap((text) => {
    const { type = "", name, operation: words = "" } = stepLine.exec(text)?.groups ?? {};
    const step = operations[words];
    return step === undefined || component.test(type) ? [] : [`${step} ${name}`];
  });
}

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
