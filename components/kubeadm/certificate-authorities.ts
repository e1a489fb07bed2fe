import { areFirst, rotationTexts, type RotationState } from "./rotation";

export const nameOf = (number: number): string => `CA ${number}`;

export const { stageText, heldText } = rotationTexts({
  setting: "caGeneration",
  nameOf,
  adds: (number) =>
    `has all machines and new pods trust ${nameOf(number)}; get the kubeconfig anew after that, and restart your pods that ask the API`,
  uses: (number) => `has every certificate signed by ${nameOf(number)}`,
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
