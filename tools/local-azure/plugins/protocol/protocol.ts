import { isProperties, isUnknown, type Properties, Value } from "./values";

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

const joined = (path: string, key: string): string => {
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) {
    return `${path}["${key}"]`;
  }
  return path === "" ? key : `${path}.${key}`;
};

interface Rules {
  replaces(path: string, kind: Change["kind"]): boolean;
  /**
   * The property by which the elements of an array are told apart, wherever they are in it; its path is
   * without indices.
   *
   * @default their places
   */
  identifierOf?(path: string): string | undefined;
}

/** Every place where two values differ. A value that is not known yet counts as changed. */
export function changesBetween(before: Value, after: Value, rules: Rules, path = ""): Change[] {
  const change = (kind: Change["kind"]): Change[] => [
    { path, kind, replaces: rules.replaces(path, kind) },
  ];
  if (isProperties(before) && isProperties(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      changesBetween(before[key], after[key], rules, joined(path, key)),
    );
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const identifier = rules.identifierOf?.(path.replaceAll(/\[\d+\]/g, ""));
    return pairsOf(before, after, identifier).flatMap(([old, now, index]) =>
      changesBetween(old, now, rules, `${path}[${index}]`),
    );
  }
  const absentBefore = before === undefined || before === null;
  const absentAfter = after === undefined || after === null;
  if (absentBefore || absentAfter) {
    if (absentBefore && absentAfter) {
      return [];
    }
    return change(absentBefore ? "add" : "delete");
  }
  return before === after && !isUnknown(after) ? [] : change("update");
}

/** Elements of two arrays that are the same thing, and where that is. */
function pairsOf(
  before: readonly Value[],
  after: readonly Value[],
  identifier: string | undefined,
): (readonly [old: Value, now: Value, index: number])[] {
  if (identifier === undefined) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) => [before[index], after[index], index] as const);
  }
  const keyOf = (element: Value) => (isProperties(element) ? element[identifier] : undefined);
  const partner = (element: Value, others: readonly Value[]) =>
    others.findLast((other) => keyOf(other) === keyOf(element));
  return [
    ...after.map((now, index) => [partner(now, before), now, index] as const),
    ...before
      .map((old, index) => [old, undefined, index] as const)
      .filter(([old]) => partner(old, after) === undefined),
  ];
}
