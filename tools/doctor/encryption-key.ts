import { nameOf } from "../../components/kubeadm/encryption";
import { isRewriting } from "../../components/kubeadm/rotation";
import type { Check, Expected } from "./check";

/** Whether a change of the key of Secrets is under way, by what the last update that ended well left. */
export function encryptionKeyGeneration({ encryptionKeys }: Expected): Check {
  const name = "key of Secrets";
  if (encryptionKeys === undefined) {
    return { name, saw: "", problems: [], notAsked: "the outputs name none" };
  }
  const [first, ...others] = encryptionKeys.keys as [number, ...number[]];
  const rest = others.map(nameOf).join(", ");
  return {
    name,
    saw:
      first === 0
        ? "none, as encryptionKeyGeneration 0 says"
        : `${nameOf(first)} encrypts all of them`,
    problems:
      others.length === 0
        ? []
        : [
            {
              saw: isRewriting(encryptionKeys)
                ? `its change has not finished: ${nameOf(first)} took all of them, and the API servers still read ${rest}`
                : `its change has not finished: ${nameOf(first)} is still in use, and the API servers read ${rest} as well`,
              fix: "pulumi up, and again until it says nothing of the key",
            },
          ],
  };
}
