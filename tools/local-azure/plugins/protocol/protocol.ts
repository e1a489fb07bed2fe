import type { Properties } from "./values";

/** Which resource a request is about, and the signal that ends it when the engine goes away. */
interface Subject {
  readonly urn: string;
  readonly type: string;
  readonly signal: AbortSignal;
}

export interface CheckRequest extends Subject {
  readonly olds: Properties;
  readonly news: Properties;
}

export interface CheckResult {
  readonly inputs: Properties;
  readonly failures?: readonly { readonly property: string; readonly reason: string }[];
}

export interface DiffRequest extends Subject {
  readonly id: string;
  readonly state: Properties;
  readonly olds: Properties;
  readonly news: Properties;
}

export interface Change {
  /** In Pulumi's notation: `spec.ports[0].name`. */
  readonly path: string;
  readonly kind: "add" | "delete" | "update";
  readonly replaces: boolean;
}

export interface DiffResult {
  readonly changes: readonly Change[];
  readonly deleteBeforeReplace?: boolean;
}

export interface CreateRequest extends Subject {
  readonly inputs: Properties;
  readonly preview: boolean;
  /** Of the option customTimeouts; 0 where it is not given. */
  readonly timeoutSeconds: number;
}

export interface ReadRequest extends Subject {
  readonly id: string;
  readonly state: Properties;
  /** Empty when a resource is imported. */
  readonly inputs: Properties;
}

export interface UpdateRequest extends DiffRequest {
  readonly preview: boolean;
  readonly timeoutSeconds: number;
}

export interface DeleteRequest extends Subject {
  readonly id: string;
  readonly state: Properties;
  readonly inputs: Properties;
  readonly timeoutSeconds: number;
}

/** One provider of a program: the engine dials once for each of them. */
export interface ResourceProvider {
  checkConfig?(request: CheckRequest): CheckResult;
  diffConfig?(request: DiffRequest): DiffResult;
  configure?(config: Properties): Promise<void>;
  check(request: CheckRequest): CheckResult | Promise<CheckResult>;
  diff(request: DiffRequest): DiffResult | Promise<DiffResult>;
  create(request: CreateRequest): Promise<{ readonly id: string; readonly state: Properties }>;
  /** Undefined when there is no such thing any more. */
  read(
    request: ReadRequest,
  ): Promise<
    { readonly id: string; readonly state: Properties; readonly inputs: Properties } | undefined
  >;
  update(request: UpdateRequest): Promise<Properties>;
  delete(request: DeleteRequest): Promise<void>;
  invoke?(token: string, args: Properties): Promise<Properties>;
}

/** The messages from a provider to the engine. */
export interface EngineLog {
  /** Shown beside the resource while it is being worked on, then forgotten. */
  progress(urn: string, message: string): void;
  warn(urn: string, message: string): void;
}

export interface Plugin {
  /** The version that the program's package asks for; the engine warns of any other. */
  readonly version: string;
  connect(engine: EngineLog): ResourceProvider;
}

export interface Served {
  readonly port: number;
  close(): Promise<void>;
}
