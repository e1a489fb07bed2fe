import { encryptionTexts } from "../../components/kubeadm/encryption";
import {
  accountKeyTexts,
  caTexts,
  isRewriting,
  type RotationState,
} from "../../components/kubeadm/rotations";
import { type Check, type Expected, problemIf } from "./check";

/** What is said of one that is changed stage by stage: of the first of its keys, and of the others. */
interface Words {
  readonly name: string;
  readonly nameOf: (key: number) => string;
  readonly whose: "its" | "their";
  readonly well: (first: string) => string;
  /** Before the new one has taken the place of the old one, and after it. */
  readonly before: (first: string, rest: string) => string;
  readonly after: (first: string, rest: string) => string;
  readonly fix: string;
}

const authorities: Words = {
  name: "certificate authorities",
  nameOf: caTexts.nameOf,
  whose: "their",
  well: (first) => `${first} signs, and no other is trusted`,
  before: (first, rest) => `${first} still signs, and ${rest} is trusted as well`,
  after: (first, rest) => `${first} signs, and ${rest} is still trusted`,
  fix: "restart pods of your own that ask the API, then pulumi up, and again until it says nothing of the CAs",
};

const encryption: Words = {
  name: "key of Secrets",
  nameOf: encryptionTexts.nameOf,
  whose: "its",
  well: (first) => `${first} encrypts all of them`,
  before: (first, rest) => `${first} is still in use, and the API servers read ${rest} as well`,
  after: (first, rest) => `${first} took all of them, and the API servers still read ${rest}`,
  fix: "pulumi up, and again until it says nothing of the key",
};

const accounts: Words = {
  name: "key of service accounts",
  nameOf: accountKeyTexts.nameOf,
  whose: "its",
  well: (first) => `${first} signs tokens, and those of no other are admitted`,
  before: (first, rest) => `${first} still signs, and tokens of ${rest} are admitted as well`,
  after: (first, rest) => `${first} signs, and tokens of ${rest} are still admitted`,
  fix: "pulumi up, which says until when tokens of the key before may be in use, and again until it says nothing of the key",
};

/** Whether a change is under way, by what the last update that ended well left: once it has ended there is one alone. */
function checked(
  state: RotationState | undefined,
  { name, nameOf, whose, fix, ...says }: Words,
): Check {
  if (state === undefined) {
    return { name, saw: "", problems: [], notAsked: "the outputs name none" };
  }
  const [first = "", ...others] = state.keys.map(nameOf);
  const stage = says[isRewriting(state) ? "after" : "before"](first, others.join(", "));
  return {
    name,
    saw: says.well(first),
    problems: problemIf(others.length > 0, {
      saw: `${whose} change has not finished: ${stage}`,
      fix,
    }),
  };
}

export const certificateAuthorities = ({ cas }: Expected): Check => checked(cas, authorities);

export const serviceAccountKey = ({ serviceAccountKeys }: Expected): Check =>
  checked(serviceAccountKeys, accounts);

export function encryptionKeyGeneration({ encryptionKeys }: Expected): Check {
  const check = checked(encryptionKeys, encryption);
  const isNone = encryptionKeys?.keys[0] === 0;
  return isNone ? { ...check, saw: "none, as encryptionKeyGeneration 0 says" } : check;
}
