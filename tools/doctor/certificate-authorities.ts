import { nameOf } from "../../components/kubeadm/certificate-authorities";
import { isRewriting, only } from "../../components/kubeadm/rotation";
import type { Check, Expected } from "./check";

/** Whether a change of the CAs is under way, by what the last update that ended well left. */
export function certificateAuthorities({ cas = only(1) }: Expected): Check {
  const [first, ...others] = cas.keys as [number, ...number[]];
  const rest = others.map(nameOf).join(", ");
  return {
    name: "certificate authorities",
    saw: `${nameOf(first)} signs, and no other is trusted`,
    problems:
      others.length === 0
        ? []
        : [
            {
              saw: isRewriting(cas)
                ? `their change has not finished: ${nameOf(first)} signs, and ${rest} is still trusted`
                : `their change has not finished: ${nameOf(first)} still signs, and ${rest} is trusted as well`,
              fix: "restart pods of your own that ask the API, then pulumi up, and again until it says nothing of the CAs",
            },
          ],
  };
}
