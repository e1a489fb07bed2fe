/**
 * Keys that change on a living cluster, by the numbers of a setting: those by which Secrets are
 * encrypted, those of its certificate authorities, and those of service accounts' tokens. Every machine
 * that needs them has them all.
 */
export interface RotationState {
  /** The first one encrypts or signs; the others are only known, for what they did before. */
  readonly keys: readonly number[];
  /** Whether the first one has done everything anew. */
  readonly rewritten: boolean;
  /** Those that went: a snapshot of etcd from before may need one. */
  readonly past: readonly number[];
}

/** Where one key is left, as when a cluster is made. */
export const only = (key: number, past: readonly number[] = []): RotationState => ({
  keys: [key],
  rewritten: true,
  past,
});

/**
 * The next stage on the way to another key.
 *
 * While an update is under way, and after one that failed, some machines are a stage ahead. So each
 * stage needs the one before it everywhere: a key is known to all before it is used, it is used
 * everywhere and for everything before no other one is, and no key goes before that. Whatever key
 * is wanted meanwhile, no machine uses what another one does not know.
 *
 * @param now what the last update that ended well has left on every machine
 */
export function nextKeys({ keys, rewritten, past }: RotationState, wanted: number): RotationState {
  const [first, ...others] = keys as [number, ...number[]];
  if (rewritten && others.length > 0) return only(first, [...new Set([...past, ...others])]);
  if (first === wanted) return { keys, rewritten: true, past };
  return keys.includes(wanted)
    ? { keys: [wanted, ...keys.filter((key) => key !== wanted)], rewritten: true, past }
    : { keys: [...keys, wanted], rewritten: false, past };
}

/** Whether there is nothing but what a cluster begins with. */
export const areFirst = ({ keys }: RotationState): boolean => keys.length === 1 && keys[0] === 1;

/** Whether an update that leaves these does everything anew by the first one. */
export const isRewriting = ({ keys, rewritten }: RotationState): boolean =>
  rewritten && keys.length > 1;

/** Whether it makes another one known, before it is used. */
export const isAdding = ({ keys, rewritten }: RotationState): boolean =>
  !rewritten && keys.length > 1;

/** What the stages of a setting are called, as it does them: each after "this update" and after "it". */
interface RotationWords {
  readonly setting: string;
  readonly nameOf: (key: number) => string;
  readonly adds: (key: number) => string;
  readonly uses: (key: number) => string;
  readonly drops: (names: string) => string;
}

const again = (does: string): string => `Run pulumi up again when it has ended: it ${does}`;

export function rotationTexts({ setting, nameOf, adds, uses, drops }: RotationWords) {
  const namesOf = (keys: readonly number[]): string => keys.map(nameOf).join(", ");
  return {
    /** What a stage does, and what the next update is for; nothing where there is none. */
    stageText(now: RotationState, next: RotationState, wanted: number): string | undefined {
      const [first, ...others] = next.keys as [number, ...number[]];
      if (isRewriting(next)) return `this update ${uses(first)}. ${again(drops(namesOf(others)))}`;
      if (others.length > 0) return `this update ${adds(wanted)}. ${again(uses(wanted))}`;
      if (now.keys.length === 1) return undefined;
      const gone = namesOf(now.keys.filter((key) => key !== first));
      return `this update ${drops(gone)}${first === wanted ? "" : `. ${again(adds(wanted))}`}`;
    },
    /** What is said of an update in which there can be no stage. */
    heldText: ({ keys }: RotationState, wanted: number, why: string): string | undefined =>
      keys.length === 1 && keys[0] === wanted
        ? undefined
        : `${setting} is ${wanted}, and ${why}, so that this update keeps ${namesOf(keys)}. ${again(`goes on to ${nameOf(wanted)}`)}`,
  };
}

/** The keys as a tag. */
export const tagOf = ({ keys }: RotationState): string => keys.join(" ");

/** The keys of a tag. Tags are asked only for what a cluster began with. */
export const keysOfTag = (tag: string): RotationState => ({
  keys: (tag.match(/\d+/g) ?? []).map(Number),
  rewritten: true,
  past: [],
});
