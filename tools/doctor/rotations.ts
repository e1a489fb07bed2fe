import { nameOf as nameOfAuthority } from "../../components/kubeadm/certificate-authorities";
import { nameOf as nameOfKey } from "../../components/kubeadm/encryption";
import { nameOf as nameOfAccountsKey } from "../../components/kubeadm/service-account-keys";
import { isRewriting, only, type RotationState } from "../../components/kubeadm/rotation";
import type { Check, Expected } from "./check";

/** Whether a change of the CAs is under way, by what the last update that ended well left. */
export function certificateAuthorities({ cas = only(1) }: Expected): Check {
  const { first, rest } = named(cas, nameOfAuthority);
  const problem = isRewriting(cas)
    ? `their change has not finished: ${first} signs, and ${rest} is still trusted`
    : `their change has not finished: ${first} still signs, and ${rest} is trusted as well`;
  return {
    name: "certificate authorities",
    saw: `${first} signs, and no other is trusted`,
    problems: problemsOf(
      cas,
      problem,
      "restart pods of your own that ask the API, then pulumi up, and again until it says nothing of the CAs",
    ),
  };
}

/** Whether a change of the key of Secrets is under way, by what the last update that ended well left. */
export function encryptionKeyGeneration({ encryptionKeys }: Expected): Check {
  const name = "key of Secrets";
  if (encryptionKeys === undefined) {
    return { name, saw: "", problems: [], notAsked: "the outputs name none" };
  }
  const { first, rest } = named(encryptionKeys, nameOfKey);
  const problem = isRewriting(encryptionKeys)
    ? `its change has not finished: ${first} took all of them, and the API servers still read ${rest}`
    : `its change has not finished: ${first} is still in use, and the API servers read ${rest} as well`;
  return {
    name,
    saw:
      encryptionKeys.keys[0] === 0
        ? "none, as encryptionKeyGeneration 0 says"
        : `${first} encrypts all of them`,
    problems: problemsOf(
      encryptionKeys,
      problem,
      "pulumi up, and again until it says nothing of the key",
    ),
  };
}

/** Whether a change of the key of service accounts is under way, by what the last update that ended well left. */
export function serviceAccountKey({ serviceAccountKeys = only(1) }: Expected): Check {
  const { first, rest } = named(serviceAccountKeys, nameOfAccountsKey);
  const problem = isRewriting(serviceAccountKeys)
    ? `its change has not finished: ${first} signs, and tokens of ${rest} are still admitted`
    : `its change has not finished: ${first} still signs, and tokens of ${rest} are admitted as well`;
  return {
    name: "key of service accounts",
    saw: `${first} signs tokens, and those of no other are admitted`,
    problems: problemsOf(
      serviceAccountKeys,
      problem,
      "pulumi up, which says until when tokens of the key before may be in use, and again until it says nothing of the key",
    ),
  };
}

function named({ keys }: RotationState, nameOf: (key: number) => string) {
  const [first = "", ...others] = keys.map(nameOf);
  return { first, rest: others.join(", ") };
}

/** A change has finished once there is one key alone. */
const problemsOf = ({ keys }: RotationState, saw: string, fix: string): Check["problems"] =>
  keys.length === 1 ? [] : [{ saw, fix }];
