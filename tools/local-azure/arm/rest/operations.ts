import { randomUUID } from "node:crypto";

import { AzureError } from "../azure-error";
import { groupType, subscriptionPath } from "../resources/resource";
import { Outcome } from "../requests";

/** How a client learns that a request is done: by polling a status, a result, or not at all. */
type Waiting = "status" | "result";

const waits: readonly (readonly [RegExp, RegExp, Waiting])[] = [
  [/^microsoft\.(network|compute)\//i, /^(PUT|PATCH|POST|DELETE)$/, "status"],
  [/^microsoft\.storage\/storageaccounts$/i, /^PUT$/, "result"],
  [new RegExp(`^${groupType}$`, "i"), /^DELETE$/, "result"],
];

/** Undefined where Azure answers once it is done. */
export const waitingFor = (type: string, method: string): Waiting | undefined =>
  waits.find(([types, methods]) => types.test(type) && methods.test(method))?.[2];

/** What Azure asks clients to wait between two polls, in seconds, at its own pace. */
const pollSeconds = 10;

/** Where operations take no time, which a client that is asked nothing would not guess. */
const leastMilliseconds = 50;

interface Operation {
  readonly id: string;
  readonly startedAt: string;
  readonly namespace: string;
  endedAt?: string;
  outcome?: Outcome;
  error?: AzureError;
}

/** A polling answer. */
interface Poll {
  readonly status: number;
  readonly body?: unknown;
  readonly headers: Record<string, string>;
}

/** Long-running requests, for as long as this process lives. */
export class Operations {
  private readonly operations = new Map<string, Operation>();

  constructor(
    private readonly factor: () => number,
    private readonly now: () => Date,
  ) {}

  /** Follows a request to its end. Returns the headers by which a client follows it too. */
  track(
    done: Promise<Outcome>,
    { type, location, origin, version, method }: Tracked,
  ): Record<string, string> {
    const operation: Operation = {
      id: randomUUID(),
      startedAt: this.now().toISOString(),
      namespace: type.split("/")[0] ?? "",
    };
    this.operations.set(operation.id, operation);
    done
      .then(
        (outcome) => (operation.outcome = outcome),
        (error: unknown) => (operation.error = asAzureError(error)),
      )
      .finally(() => (operation.endedAt = this.now().toISOString()));
    const query = `?api-version=${version}`;
    if (waitingFor(type, method) === "result") {
      return {
        location: `${origin}${subscriptionPath}/operationresults/${operation.id}${query}`,
        ...this.retryAfter(),
      };
    }
    const base = `${origin}${subscriptionPath}/providers/${operation.namespace}/locations/${location}`;
    return {
      "azure-asyncoperation": `${base}/operations/${operation.id}${query}`,
      ...(method !== "PUT" && { location: `${base}/operationResults/${operation.id}${query}` }),
      ...this.retryAfter(),
    };
  }

  /** The answer to a poll; undefined for other paths. */
  poll(path: string, origin: string, query: string): Poll | undefined {
    const [, kind, id = ""] = /\/(operations|operationresults)\/([0-9a-f-]{36})$/i.exec(path) ?? [];
    if (kind === undefined) return undefined;
    const operation = this.operations.get(id);
    if (operation === undefined) {
      throw new AzureError(404, "NotFound", `The operation ${id} was not found.`);
    }
    return kind.toLowerCase() === "operations"
      ? this.statusOf(operation)
      : this.resultOf(operation, `${origin}${path}${query}`);
  }

  private statusOf({ id, namespace, startedAt, endedAt, outcome, error }: Operation): Poll {
    const isCompute = namespace.toLowerCase() === "microsoft.compute";
    return {
      status: 200,
      headers: outcome || error ? {} : this.retryAfter(),
      body: {
        ...(isCompute && { name: id, startTime: startedAt, endTime: endedAt }),
        status: error ? "Failed" : outcome ? "Succeeded" : "InProgress",
        error: error && { code: error.code, message: error.message, details: [] },
      },
    };
  }

  private resultOf({ outcome, error }: Operation, location: string): Poll {
    if (error) throw error;
    if (outcome === undefined) {
      return { status: 202, headers: { location, ...this.retryAfter() } };
    }
    const isEmpty = Object.keys(outcome.body).length === 0;
    return { status: 200, headers: {}, body: isEmpty ? undefined : outcome.body };
  }

  /**
   * azcore, by which azure-native asks, waits 10 s, and after a DELETE 30 s, where it is not told how
   * long. Less than a second it takes from a header that Microsoft's clients in JavaScript do not read.
   */
  private retryAfter(): Record<string, string> {
    const seconds = pollSeconds * this.factor();
    return {
      ...(seconds > 0 && { "retry-after": String(Math.ceil(seconds)) }),
      ...(seconds < 1 && {
        "retry-after-ms": String(Math.max(leastMilliseconds, Math.round(seconds * 1000))),
      }),
    };
  }
}

interface Tracked {
  /** ARM's type. */
  readonly type: string;
  readonly method: string;
  readonly location: string;
  /** Scheme, host and port by which the client reaches this Azure. */
  readonly origin: string;
  readonly version: string;
}

const asAzureError = (error: unknown): AzureError =>
  error instanceof AzureError
    ? error
    : new AzureError(500, "InternalServerError", (error as Error).message);
