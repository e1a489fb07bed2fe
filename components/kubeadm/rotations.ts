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

/** What is said of the stages of a setting. */
export type RotationTexts = ReturnType<typeof rotationTexts>;

const again = (does: string): string => `Run pulumi up again when it has ended: it ${does}`;

export function rotationTexts({ setting, nameOf, adds, uses, drops }: RotationWords) {
  const namesOf = (keys: readonly number[]): string => keys.map(nameOf).join(", ");
  return {
    nameOf,
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

const nameOfCa = (number: number): string => `CA ${number}`;

export const caTexts = rotationTexts({
  setting: "caGeneration",
  nameOf: nameOfCa,
  adds: (number) =>
    `has all machines and new pods trust ${nameOfCa(number)}; get the kubeconfig anew after that, and restart your pods that ask the API`,
  uses: (number) => `has every certificate signed by ${nameOfCa(number)}`,
  drops: (names) => `has nobody trust ${names} any more`,
});

/** Whether members may have others than the first CAs, or did before the last stage back to those. */
export const areTaken = (authorities: RotationState): boolean =>
  !areFirst(authorities) || authorities.past.length > 0;

/**
 * The one certificate that the controller manager signs with: of several in a file it takes none
 * (pkg/controller/certificates/signer/ca_provider.go).
 */
export const signingFile = "/etc/kubernetes/pki/signing-ca.crt";

/**
 * In every static pod, so that each stage changes their manifests: `kubeadm upgrade` renews the
 * certificates of what it changes, by the first CA of ca.crt, and starts it anew, one after another.
 */
export const authoritiesVariable = ({ keys }: RotationState) => ({
  name: "ZONED_CERTIFICATE_AUTHORITIES",
  value: keys.join(" "),
});

/** The keys of service accounts' tokens: the first one signs, and tokens of all are admitted. */
export interface ServiceAccountKeys extends RotationState {
  /** As long as others are left of before: when the update began that had the first one sign, as ISO 8601. */
  readonly signingSince?: string;
}

const nameOfAccountKey = (number: number): string => `service account key ${number}`;

export const accountKeyTexts = rotationTexts({
  setting: "serviceAccountKeyGeneration",
  nameOf: nameOfAccountKey,
  adds: (number) =>
    `has every API server admit tokens of ${nameOfAccountKey(number)}; publish /openid/v1/jwks anew after that where others verify tokens ` +
    "(the update itself does so for workloadIdentities)",
  uses: (number) => `has every token signed by ${nameOfAccountKey(number)}`,
  drops: (names) => `has no API server admit tokens of ${names} any more`,
});

/**
 * In API servers and controller managers, which read the keys when they start: each stage changes their
 * manifests, so that `kubeadm upgrade` starts them anew, one control plane after another.
 */
export const serviceAccountKeysVariable = ({ keys }: RotationState) => ({
  name: "ZONED_SERVICE_ACCOUNT_KEYS",
  value: keys.join(" "),
});
