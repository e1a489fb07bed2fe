/** A resource as the engine's state has it. */
export interface Recorded {
  readonly urn: string;
  readonly type: string;
  readonly custom?: boolean;
  readonly id?: string;
  readonly inputs?: Inputs;
  readonly outputs?: Inputs;
  readonly parent?: string;
  /** URN and id of its provider, joined by `::`. */
  readonly provider?: string;
  readonly dependencies?: readonly string[];
  readonly propertyDependencies?: Readonly<Record<string, readonly string[] | null>>;
  readonly deletedWith?: string;
  /** Another entry has taken its place, and the engine has yet to delete this one. */
  readonly delete?: boolean;
  /** Deleted, and its replacement is yet to be created. */
  readonly pendingReplacement?: boolean;
  /** With one of these the next update sends an update, also when no input has changed. */
  readonly initErrors?: readonly string[];
}

export type Inputs = Readonly<Record<string, unknown>>;

/** A resource that may have been created, and where. */
export type Created = Recorded & { readonly id: string; readonly inputs: Inputs };

export interface PendingOperation {
  readonly type: "creating" | "updating" | "deleting" | "reading" | "importing";
  readonly resource: Recorded;
}

/** What `pulumi stack export` writes. */
export interface Exported {
  readonly version: number;
  readonly deployment: Deployment;
}

export interface Deployment {
  readonly resources?: readonly Recorded[];
  readonly pending_operations?: readonly PendingOperation[];
}

export const nameOf = (urn: string): string => urn.split("::").at(-1)!;

/** The entry that stands for a resource now, and not the one that is still to be deleted. */
export const currentOf = ({ resources = [] }: Deployment, urn: string): Recorded | undefined =>
  resources.find((one) => one.urn === urn && !one.delete);

/** Azure compares ids without regard to case. */
export const isSameId = (one: string | undefined, other: string): boolean =>
  one?.toLowerCase() === other.toLowerCase();

/** URNs of all that must come before a resource in the state. */
export const referencesOf = (one: Recorded): string[] =>
  [
    one.parent,
    one.provider?.slice(0, one.provider.lastIndexOf("::")),
    ...(one.dependencies ?? []),
    ...Object.values(one.propertyDependencies ?? {}).flatMap((urns) => urns ?? []),
    one.deletedWith,
  ].filter((urn) => urn !== undefined && urn !== "") as string[];

/**
 * The state with resources that were created and not recorded.
 *
 * An entry of the same URN that was deleted before its replacement gives its place away. One that
 * is replaced by something with another id is left to the engine to delete.
 */
export function withCreated(deployment: Deployment, created: readonly Created[]): Deployment {
  const news = new Map(created.map((one) => [one.urn, one]));
  const kept = (deployment.resources ?? []).flatMap((old): Recorded[] => {
    const now = old.delete ? undefined : news.get(old.urn);
    if (now === undefined) return [old];
    return old.pendingReplacement || isSameId(old.id, now.id) ? [] : [{ ...old, delete: true }];
  });
  return { ...deployment, resources: inOrder([...kept, ...created]) };
}

/** The same resources, each after what it refers to, and otherwise as they were. */
function inOrder(resources: readonly Recorded[]): Recorded[] {
  const current = new Map(resources.filter((one) => !one.delete).map((one) => [one.urn, one]));
  const ordered = new Set<Recorded>();
  const seen = new Set<Recorded>();
  const place = (one: Recorded): void => {
    if (seen.has(one)) return;
    seen.add(one);
    for (const urn of referencesOf(one)) {
      const other = current.get(urn);
      if (other !== undefined) place(other);
    }
    ordered.add(one);
  };
  resources.forEach(place);
  return [...ordered];
}

/** How the engine marks a secret in its state. */
const secretMark = "4dabf18193072939515e22adb298388d";

const isMap = (value: unknown): value is Inputs =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The inputs to record for a resource that was created as `sent` and then read as `shown`.
 *
 * What Azure never shows, such as customData and protected settings, is as it was sent. Of what it
 * does show, only what was asked for counts: the rest are its defaults, which the next update would
 * take for changes.
 */
export function inputsOf(sent: Inputs, shown: Inputs): Inputs {
  return Object.fromEntries(
    Object.entries(sent).map(([key, value]) => [
      key,
      key in shown ? seen(value, shown[key]) : value,
    ]),
  );
}

function seen(sent: unknown, shown: unknown): unknown {
  if (isMap(sent) && secretMark in sent) return sent;
  if (isMap(sent) && isMap(shown)) return inputsOf(sent, shown);
  if (Array.isArray(sent) && Array.isArray(shown) && sent.length === shown.length) {
    return sent.map((part, index) => seen(part, shown[index]));
  }
  // A list that Azure shows as a map cannot be compared.
  return isMap(sent) === isMap(shown) ? shown : sent;
}
