import { Client, Refused } from "./client";
import { items, text } from "./objects";

export interface Kind {
  readonly plural: string;
  readonly namespaced: boolean;
}

/**
 * The server has no such kind: most often its CustomResourceDefinition is not there yet, or not any
 * more.
 */
export class UnknownKind extends Error {
  constructor(apiVersion: string, kind: string) {
    super(
      `the Kubernetes API has no kind ${kind} in ${apiVersion}; if a CustomResourceDefinition ` +
        `makes it, let this object depend on that one`,
    );
  }
}

const pathOf = (apiVersion: string): string =>
  apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;

/** Which kinds the server knows, asked once for each API version and again where one is missing. */
export class Discovery {
  private readonly known = new Map<string, Promise<ReadonlyMap<string, Kind>>>();

  constructor(private readonly client: Client) {}

  async find(apiVersion: string, kind: string): Promise<Kind> {
    const cached = this.known.get(apiVersion);
    const found = (await (cached ?? this.ask(apiVersion))).get(kind);
    if (found) {
      return found;
    }
    // What was learnt before a definition came is out of date, so only a fresh answer counts.
    const fresh = cached ? (await this.ask(apiVersion)).get(kind) : undefined;
    if (!fresh) {
      this.known.delete(apiVersion);
      throw new UnknownKind(apiVersion, kind);
    }
    return fresh;
  }

  async path(apiVersion: string, kind: string, namespace: string, name = ""): Promise<string> {
    const { plural, namespaced } = await this.find(apiVersion, kind);
    const within =
      namespaced && namespace !== "" ? [`namespaces/${encodeURIComponent(namespace)}`] : [];
    const which = name === "" ? [] : [encodeURIComponent(name)];
    return [pathOf(apiVersion), ...within, plural, ...which].join("/");
  }

  private ask(apiVersion: string): Promise<ReadonlyMap<string, Kind>> {
    const answer = this.list(apiVersion);
    this.known.set(apiVersion, answer);
    answer.catch(() => this.known.delete(apiVersion));
    return answer;
  }

  private async list(apiVersion: string): Promise<ReadonlyMap<string, Kind>> {
    try {
      const { resources } = await this.client.get(pathOf(apiVersion));
      // A name with a slash is a part of an object, such as its status.
      const whole = items(resources ?? []).filter(({ name }) => !text(name).includes("/"));
      return new Map(
        whole.map(({ kind, name, namespaced }) => [
          text(kind),
          { plural: text(name), namespaced: namespaced === true },
        ]),
      );
    } catch (error) {
      if (error instanceof Refused && error.code === 404) {
        return new Map();
      }
      throw error;
    }
  }
}
