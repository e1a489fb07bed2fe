import { rotationTexts, type RotationState } from "./rotation";

/** The keys of service accounts' tokens: the first one signs, and tokens of all are admitted. */
export interface ServiceAccountKeys extends RotationState {
  /** As long as others are left of before: when the update began that had the first one sign, as ISO 8601. */
  readonly signingSince?: string;
}

export const nameOf = (number: number): string => `service account key ${number}`;

export const { stageText, heldText } = rotationTexts({
  setting: "serviceAccountKeyGeneration",
  nameOf,
  adds: (number) =>
    `has every API server admit tokens of ${nameOf(number)}; publish /openid/v1/jwks anew after that where others verify tokens ` +
    "(the update itself does so for workloadIdentities)",
  uses: (number) => `has every token signed by ${nameOf(number)}`,
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
