import { RunError } from "@pulumi/pulumi/errors";
import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

import { fetch } from "../settings/shell-proxy";
import type { Settings } from "../settings/settings";

/** Azure answers most throttled or failed reads when asked again after a moment. */
const attempts = 4;
/** The list of sizes can take more than half a minute. */
const secondsPerAttempt = 120;
/** Azure may ask for more, after which a person had better try again. */
const longestPauseSeconds = 60;

/** Codes of a 404 that say "not there". Any other one says that the question was wrong. */
const absent = [
  "ContainerNotFound",
  "ResourceGroupNotFound",
  "ResourceNotFound",
  "ParentResourceNotFound",
  "NotFound",
];

/** Whether a refusal has one of the codes of the 409 that no waiting turns into an answer. */
export const isUnregistered = (refusal: string): boolean =>
  /\b(MissingSubscriptionRegistration|SubscriptionNotRegistered)\b/.test(refusal);

/**
 * What an answer must have at least, as an example: `{ name: "" }` asks for a name that is text.
 */
export type Example<T> = { readonly [K in keyof T]?: T[K] extends object ? Example<T[K]> : T[K] };

interface Page {
  readonly value?: unknown;
  readonly nextLink?: unknown;
}

interface Answer {
  readonly headers: Headers;
  readonly body: unknown;
}

/** A long-running operation, as its status shows it. */
interface Operation {
  readonly status?: string;
  readonly error?: { readonly code?: string; readonly message?: string };
}

/** How Azure refused, as far as it can be read. */
interface Refusal {
  readonly status: number;
  readonly code: string;
  /** For people. */
  readonly message: string;
}

/** Asks by REST what azure-native has no function for. */
export class ArmClient {
  private readonly asked = new Map<string, Promise<unknown>>();

  constructor(
    private readonly endpoint: string,
    private readonly token: string,
    private readonly pause = (milliseconds: number) =>
      new Promise<void>((resolve) => setTimeout(resolve, milliseconds)),
  ) {}

  /** The answer, or undefined when the thing or its resource group does not exist. */
  async get<T>(
    path: string,
    query: Record<string, string>,
    example: Example<T>,
  ): Promise<T | undefined> {
    const url = this.url(path, query);
    const answer = await this.ask(url);
    return answer === undefined ? undefined : this.checked<T>(url, answer.body, example);
  }

  /** The same of what others keep, where the login may have no right to see it, or not see its subscription at all. */
  getIfReadable<T>(
    path: string,
    query: Record<string, string>,
    example: Example<T>,
  ): Promise<T | undefined | "unreadable"> {
    return this.getOnce<T>(path, query, example).catch((error) => ofOthers(error, undefined));
  }

  /** All pages of a list; empty when the resource group does not exist. */
  async list<T>(path: string, query: Record<string, string>, example: Example<T>): Promise<T[]> {
    const values: T[] = [];
    for (let next: string | undefined = this.url(path, query); next;) {
      const url: string = next;
      const answer = await this.ask(url);
      if (answer === undefined) break;
      // Compute lists the versions of an image without an envelope.
      const { body } = answer;
      const page = (Array.isArray(body) ? { value: body } : body) as Page | null;
      if (!Array.isArray(page?.value)) throw this.misshapen(url, page, "a list called value");
      values.push(...page.value.map((one) => this.checked<T>(url, one, example)));
      next = typeof page.nextLink === "string" ? page.nextLink : undefined;
    }
    return values;
  }

  listIfReadable<T>(
    path: string,
    query: Record<string, string>,
    example: Example<T>,
  ): Promise<T[] | "unreadable"> {
    return this.list<T>(path, query, example).catch((error) => ofOthers(error, []));
  }

  /** Asks the same once, of what stays as it is while a program reads. */
  getOnce<T>(
    path: string,
    query: Record<string, string>,
    example: Example<T>,
  ): Promise<T | undefined> {
    return this.once(this.url(path, query), () => this.get(path, query, example));
  }

  listOnce<T>(path: string, query: Record<string, string>, example: Example<T>): Promise<T[]> {
    return this.once(this.url(path, query), () => this.list(path, query, example));
  }

  private once<T>(url: string, ask: () => Promise<T>): Promise<T> {
    const answer = this.asked.get(url.toLowerCase()) ?? ask();
    this.asked.set(url.toLowerCase(), answer);
    return answer as Promise<T>;
  }

  /** The answer to a question that is sent along, or undefined where that is about nothing that is there. */
  async query<T>(
    path: string,
    query: Record<string, string>,
    question: object,
    example: Example<T>,
  ): Promise<T | undefined> {
    const url = this.url(path, query);
    const answer = await this.ask(url, "POST", JSON.stringify(question));
    return answer === undefined ? undefined : this.checked<T>(url, answer.body, example);
  }

  /**
   * Has Azure do something with a resource, and returns when that has ended.
   *
   * @throws RunError with Azure's reason, also where it has accepted the request and then failed
   */
  async act(path: string, query: Record<string, string>): Promise<void> {
    const url = this.url(path, query);
    const accepted = await this.ask(url, "POST");
    const operation = accepted?.headers.get("azure-asyncoperation");
    for (let last = accepted; operation && last;) {
      await this.pause(wanted(last.headers.get("retry-after")) ?? 1000);
      last = await this.ask(operation);
      const { status, error } = (last?.body ?? {}) as Operation;
      if (status === "Succeeded") return;
      if (status === "Failed" || status === "Canceled") {
        throw this.problem(url, `${status} ${error?.code}: ${error?.message}`, again, "POST");
      }
    }
    if (accepted === undefined) throw this.problem(url, "404", reach, "POST");
  }

  private url(path: string, query: Record<string, string>): string {
    // Not every Azure service reads a plus as a space.
    const text = new URLSearchParams(query).toString().replaceAll("+", "%20");
    return `${this.endpoint}${path}?${text}`;
  }

  /** What Azure answers; undefined when what was asked for is not there. */
  private async ask(url: string, method = "GET", sent?: string): Promise<Answer | undefined> {
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt === attempts;
      const patience = 1000 * 2 ** (attempt + 1);
      const answer = await this.request(url, method, sent);
      if (answer instanceof Error) {
        if (isLast) throw this.problem(url, answer.message, reach, method);
        await this.pause(patience);
        continue;
      }

      const { response, text } = answer;
      if (response.ok) {
        const { headers } = response;
        if (method === "POST" && text === "") return { headers, body: undefined };
        try {
          return { headers, body: JSON.parse(text) as unknown };
        } catch {
          throw this.misshapen(url, text, "JSON");
        }
      }
      const refusal = readRefusal(response.status, text);
      if (refusal.status === 404 && absent.includes(refusal.code)) return undefined;
      if (isLast || !passes(refusal)) {
        throw this.problem(url, refusal.message, wayOn(refusal), method);
      }
      await this.pause(wanted(response.headers.get("retry-after")) ?? patience);
    }
  }

  private async request(
    url: string,
    method: string,
    body: string | undefined,
  ): Promise<{ response: Response; text: string } | Error> {
    try {
      const response = await fetch(url, {
        method,
        headers: {
          authorization: `Bearer ${this.token}`,
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        body,
        signal: AbortSignal.timeout(secondsPerAttempt * 1000),
      });
      return { response, text: await response.text() };
    } catch (error) {
      const { message, cause } = error as Error;
      return new Error(cause instanceof Error ? `${message}: ${cause.message}` : message);
    }
  }

  private checked<T>(url: string, value: unknown, example: Example<T>): T {
    const lacking = lackingIn(value, example);
    if (lacking !== undefined) throw this.misshapen(url, value, lacking);
    return value as T;
  }

  private misshapen(url: string, value: unknown, expected: string): RunError {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return this.problem(url, `200 with ${shortened(text)}`, `Expected ${expected}. ${reach}`);
  }

  private problem(url: string, got: string, way: string, method = "GET"): RunError {
    const did = method === "GET" ? "answer" : "do";
    const text = `Azure Resource Manager did not ${did} ${method} ${url}: ${got}\n  ${way}`;
    return new RunError(text.replaceAll(this.token, "[token]"));
  }
}

/** What a refusal says of what others keep; Azure gives the second for a subscription of another tenant. */
function ofOthers<T>(error: Error, nothing: T): T | "unreadable" {
  if (error.message.includes(": 403 ")) return "unreadable";
  if (/: (404 SubscriptionNotFound|401 InvalidAuthenticationTokenTenant): /.test(error.message)) {
    return nothing;
  }
  throw error;
}

const again = "What was done so far stays. Fix the cause, then run pulumi up again: it goes on.";

const reach =
  "Check the network, `az account show`, and the setting resourceManagerEndpoint, then run again.";

/** Whether the same question may be answered in a moment. */
const passes = ({ status, code }: Refusal): boolean =>
  status === 408 || (status === 409 && !isUnregistered(code)) || status === 429 || status >= 500;

/**
 * Microsoft's own policy, which nobody can exempt: a person's token without multi-factor authentication may read, and change nothing.
 *
 * @see https://learn.microsoft.com/entra/identity/authentication/concept-mandatory-multifactor-authentication
 */
export const lacksMfa = (text: string): boolean =>
  text.includes("RequestDisallowedByPolicy") &&
  /\bMFA\b|\bmulti-?factor authentication\b/i.test(text);

export const withMfa =
  "Azure has people change something only with multi-factor authentication, and this login was without. " +
  "Log in with it: az logout; az login (Azure CLI 2.76 or newer; if Azure's text has a claims challenge: az login --claims-challenge CHALLENGE). " +
  "Or let a service principal or managed identity run Pulumi, of which Azure asks none. Then run again.";

function wayOn({ status, code, message }: Refusal): string {
  if (isUnregistered(code)) {
    return (
      "The subscription has never been used for this. Register what a cluster is made of, once, then run again:\n" +
      ["Compute", "Network", "ManagedIdentity"]
        .map((name) => `    az provider register -n Microsoft.${name} --wait`)
        .join("\n")
    );
  }
  if (code === "SubscriptionNotFound") {
    return (
      "The login sees no such subscription. Choose one that it has, then run again: az account list --output table; " +
      "az account set --subscription SUBSCRIPTION. A service principal: check ARM_SUBSCRIPTION_ID."
    );
  }
  if (lacksMfa(`${code} ${message}`)) return withMfa;
  if (status === 401) {
    return (
      "The login is missing, too old, or for another tenant: az login, then az account set -s SUBSCRIPTION, " +
      "and run again. A service principal: check ARM_CLIENT_ID, ARM_CLIENT_SECRET and ARM_TENANT_ID. " +
      "For Azure Government and Azure China set resourceManagerEndpoint, too."
    );
  }
  if (status === 403) {
    return (
      "The login may not read this. See who it is and what it may: az account show; az role assignment list --all. " +
      "This program needs Owner, or Contributor and User Access Administrator; with resourceGroup and identityId, Reader on the subscription " +
      "and Contributor on the group. Ask the subscription's owner, " +
      "az login anew, and run again."
    );
  }
  return reach;
}

function readRefusal(status: number, text: string): Refusal {
  let error: { code?: unknown; message?: unknown } | undefined;
  try {
    error = (JSON.parse(text) as { error?: typeof error } | null)?.error;
  } catch {
    error = undefined;
  }
  if (typeof error?.code !== "string") {
    return { status, code: "", message: `${status} ${shortened(text)}` };
  }
  return {
    status,
    code: error.code,
    message: `${status} ${error.code}: ${shortened(String(error.message))}`,
  };
}

/** Milliseconds until Azure wants to be asked again: seconds or a date, as HTTP has both. */
function wanted(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined;
  const milliseconds = /^\d+$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - Date.now();
  if (Number.isNaN(milliseconds)) return undefined;
  return Math.min(Math.max(milliseconds, 0), longestPauseSeconds * 1000);
}

/** The first thing of the example that a value does not have, in words. */
function lackingIn(value: unknown, example: object, place = ""): string | undefined {
  if (typeof value !== "object" || value === null) return `an object${place && ` at ${place}`}`;
  for (const [key, wantedValue] of Object.entries(example) as [string, unknown][]) {
    const got = (value as Record<string, unknown>)[key];
    const at = place === "" ? key : `${place}.${key}`;
    if (typeof wantedValue === "object" && wantedValue !== null) {
      const lacking = lackingIn(got, wantedValue, at);
      if (lacking !== undefined) return lacking;
    } else if (typeof got !== typeof wantedValue) {
      return `a ${typeof wantedValue} at ${at}`;
    }
  }
  return undefined;
}

/** One line that fits a screen. */
const shortened = (text: string): string => {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line === "" ? "nothing" : line.length > 500 ? `${line.slice(0, 500)} …` : line;
};

/** Azure as the operator's login reaches it. */
export interface AzureConnection extends Subscription {
  readonly arm: ArmClient;
}

interface Subscription {
  readonly subscriptionId: string;
  readonly tenantId: string;
}

/**
 * Asks Azure's plugin for one token. For each, and for who has logged in, it runs `az`, which takes a second.
 *
 * @throws RunError when there is no login, or no subscription of it
 */
export async function connect({ resourceManagerEndpoint }: Settings): Promise<AzureConnection> {
  const { token } = await ofLogin(authorization.getClientToken());
  const arm = new ArmClient(resourceManagerEndpoint, token);
  const { subscriptionId, tenantId } =
    (await plainSubscription(arm)) ?? (await ofLogin(authorization.getClientConfig()));
  if (!subscriptionId) {
    throw new pulumi.RunError(
      "the login has no subscription: az account list --output table; az account set --subscription SUBSCRIPTION",
    );
  }
  return { subscriptionId, tenantId, arm };
}

/** The subscription that the plugin is told, or the only one that there is; of several only it knows which. */
async function plainSubscription(arm: ArmClient): Promise<Subscription | undefined> {
  const version = { "api-version": "2022-12-01" };
  const example = { subscriptionId: "", tenantId: "" };
  const named =
    new pulumi.Config("azure-native").get("subscriptionId") ?? process.env.ARM_SUBSCRIPTION_ID;
  if (named) return arm.get<Subscription>(`/subscriptions/${named}`, version, example);
  const [only, ...others] = await arm.list<Subscription>("/subscriptions", version, example);
  return others.length === 0 ? only : undefined;
}

const ofLogin = <T>(answer: Promise<T>): Promise<T> =>
  answer.catch(({ message }: Error) => {
    throw new pulumi.RunError(
      `Pulumi's plugin for Azure has no login that works: ${message}\n` +
        "  Log in and choose the subscription, then run again: az login; az account set --subscription SUBSCRIPTION. " +
        "A service principal: set ARM_CLIENT_ID, ARM_CLIENT_SECRET, ARM_TENANT_ID and ARM_SUBSCRIPTION_ID. " +
        "Tokens of a pipeline and managed identities: docs/azure.md.",
    );
  });
