import { randomUUID } from "node:crypto";

/** As Azure names what it is about to do to a machine. */
export const eventTypes = ["Reboot", "Redeploy", "Freeze", "Preempt", "Terminate"] as const;
export type EventType = (typeof eventTypes)[number];

/** The least notice that Azure gives, in seconds; that of Terminate is the machine's own setting. */
const leastNotice: Readonly<Record<EventType, number>> = {
  Reboot: 900,
  Redeploy: 600,
  Freeze: 900,
  Preempt: 30,
  Terminate: 300,
};

/** As far as Azure knows it; -1 is for what it does not know. */
const durations: Readonly<Partial<Record<EventType, number>>> = { Freeze: 5 };

const versions = [
  "2017-08-01",
  "2017-11-01",
  "2019-01-01",
  "2019-04-01",
  "2019-08-01",
  "2020-07-01",
];

/** The first version that tells of them, of those that not every one does. */
const toldSince: Readonly<Partial<Record<EventType, string>>> = {
  Preempt: "2017-11-01",
  Terminate: "2019-01-01",
};

const forgottenAfter = 24 * 3_600_000;

interface ScheduledEvent {
  readonly EventId: string;
  EventStatus: "Scheduled" | "Started";
  readonly EventType: EventType;
  readonly ResourceType: "VirtualMachine";
  readonly Resources: readonly string[];
  NotBefore: string;
  readonly Description: string;
  readonly EventSource: "Platform" | "User";
  readonly DurationInSeconds: number;
}

/** What a machine's metadata service says of events: a document of its own for a machine that stands alone. */
interface Document {
  incarnation: number;
  readonly events: ScheduledEvent[];
  askedAt: number;
}

export interface Order {
  readonly machine: string;
  readonly type: EventType;
  /** In seconds. @default the least that Azure gives */
  readonly notice?: number;
  /** Whether a user has asked Azure for it. */
  readonly isUsers?: boolean;
  /** What happens to the machine. */
  readonly perform: () => Promise<unknown>;
}

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

const refuse = (error: string): Reply => ({
  status: 400,
  body: { error: `Bad request. ${error}` },
});

/** Events of all machines, for as long as this process lives. */
export class ScheduledEvents {
  private readonly documents = new Map<string, Document>();
  /** Begins an event, by its id. */
  private readonly starts = new Map<string, () => void>();

  /** Whether a machine is told of events: it has asked for them in the last day. */
  isWatched(machine: string, now = Date.now()): boolean {
    return now - this.documentOf(machine).askedAt < forgottenAfter;
  }

  /**
   * Lets Azure do something to a machine: when the machine has approved it, or its time has come.
   *
   * @returns done when it has happened
   */
  schedule({ machine, type, notice = leastNotice[type], isUsers, perform }: Order): {
    readonly id: string;
    readonly done: Promise<void>;
  } {
    const document = this.documentOf(machine);
    const event: ScheduledEvent = {
      EventId: randomUUID().toUpperCase(),
      EventStatus: "Scheduled",
      EventType: type,
      ResourceType: "VirtualMachine",
      Resources: [machine],
      NotBefore: new Date(Date.now() + notice * 1000).toUTCString(),
      Description: isUsers
        ? `Virtual machine is going to be ${type === "Terminate" ? "deleted" : "restarted"} as requested by authorized user.`
        : "Host server is undergoing maintenance.",
      EventSource: isUsers ? "User" : "Platform",
      DurationInSeconds: durations[type] ?? -1,
    };
    document.events.push(event);
    document.incarnation += 1;
    const started = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, notice * 1000).unref();
      this.starts.set(event.EventId, () => {
        clearTimeout(timer);
        resolve();
      });
    });
    const happen = async (): Promise<void> => {
      await started;
      event.EventStatus = "Started";
      event.NotBefore = "";
      document.incarnation += 1;
      try {
        await perform();
      } finally {
        this.starts.delete(event.EventId);
        document.events.splice(document.events.indexOf(event), 1);
        document.incarnation += 1;
      }
    };
    return { id: event.EventId, done: happen() };
  }

  /** What a machine's metadata service answers to a request for events. */
  answer(
    machine: string,
    { method, version, text }: { method: string; version: string | null; text: string },
  ): Reply {
    if (version === null || !versions.includes(version)) {
      return refuse("api-version is invalid or was not specified in the request.");
    }
    const document = this.documentOf(machine);
    if (method === "GET") {
      document.askedAt = Date.now();
      const { incarnation, events } = document;
      const told = events.filter(({ EventType }) => version >= (toldSince[EventType] ?? ""));
      return { status: 200, body: { DocumentIncarnation: incarnation, Events: told } };
    }
    if (method !== "POST") return { status: 405, body: { error: "Method not allowed" } };
    const ids = approvedIn(text);
    if (ids === undefined) return refuse("StartRequests with an EventId each were expected.");
    const known = document.events.map(({ EventId }) => EventId);
    if (!ids.every((id) => known.includes(id))) return refuse("There is no such event.");
    for (const id of ids) this.starts.get(id)!();
    return { status: 200, body: {} };
  }

  private documentOf(machine: string): Document {
    const key = machine.toLowerCase();
    const document = this.documents.get(key) ?? { incarnation: 1, events: [], askedAt: -Infinity };
    this.documents.set(key, document);
    return document;
  }
}

/** Ids of the events that a machine approves; undefined where it does not say that. */
function approvedIn(text: string): readonly string[] | undefined {
  try {
    const { StartRequests } = JSON.parse(text) as { StartRequests: { EventId: unknown }[] };
    const ids = StartRequests.map(({ EventId }) => EventId);
    return ids.length > 0 && ids.every((id) => typeof id === "string")
      ? (ids as string[])
      : undefined;
  } catch {
    return undefined;
  }
}
