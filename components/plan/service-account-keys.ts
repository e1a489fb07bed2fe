import {
  heldText,
  nameOf,
  type ServiceAccountKeys,
  stageText,
} from "../kubeadm/service-account-keys";
import { isRewriting } from "../kubeadm/rotation";
import type { AzureState } from "../azure/state";
import type { LegacyTokens } from "./legacy-tokens";
import type { PreviousOutputs } from "./machine-changes";
import { planRotation } from "./rotation";
import type { Settings } from "../settings/settings";

/**
 * A kubelet gives a pod another token when the one that it has is a day old, or sooner
 * (pkg/kubelet/token). The rest is for the update itself, whose last API server signs with the key of
 * before until its step: five steps of 90 minutes are the longest.
 */
const hoursUntilRenewed = 24 + 12;

export interface ServiceAccountKeysArgs {
  readonly settings: Pick<Settings, "clusterName" | "serviceAccountKeyGeneration">;
  /** The initialization of the cluster, and its restoration. */
  readonly id: string;
  readonly azure: Pick<AzureState, "machines">;
  /** Of this initialization, maybe from before a restoration. */
  readonly previous: PreviousOutputs | undefined;
  readonly legacyTokens: LegacyTokens;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/** The keys that an update leaves on every control plane, and what is to be said of their change. */
interface PlannedServiceAccountKeys {
  readonly serviceAccountKeys: ServiceAccountKeys;
  readonly message?: string;
}

/**
 * One stage towards the key that the settings want. Control planes of two stages that follow each other
 * admit each other's tokens, so that an update may make, remove or upgrade some meanwhile.
 */
export function planServiceAccountKeys(args: ServiceAccountKeysArgs): PlannedServiceAccountKeys {
  const { settings, previous, now } = args;
  const current = previous?.serviceAccountKeys;
  const { keys, message } = planRotation({
    ...args,
    what: "serviceAccountKeys",
    now: current,
    wanted: settings.serviceAccountKeyGeneration,
    texts: { heldText, stageText },
    whyNot: () => undefined,
  });
  if (isRewriting(keys)) return { serviceAccountKeys: { signingSince: now, ...keys }, message };
  if (current === undefined || !isRewriting(current)) return { serviceAccountKeys: keys, message };
  const kept = keptText(current, args);
  return kept === undefined
    ? { serviceAccountKeys: keys, message }
    : { serviceAccountKeys: current, message: kept };
}

/** Why a key that signs no more has to stay: there are tokens of it. */
function keptText(
  { keys, signingSince }: ServiceAccountKeys,
  { now, legacyTokens }: Pick<ServiceAccountKeysArgs, "now" | "legacyTokens">,
): string | undefined {
  const names = keys.slice(1).map(nameOf).join(", ");
  const until = Date.parse(signingSince ?? now) + hoursUntilRenewed * 3_600_000;
  if (Date.parse(now) < until) {
    return (
      `pods may have tokens of ${names} until ${new Date(until).toISOString()}, so that this update keeps it. ` +
      "Run pulumi up again after that"
    );
  }
  if ("unknown" in legacyTokens) {
    return (
      `Secrets may have tokens of ${names}, so that this update keeps it: ${legacyTokens.unknown}. ` +
      "Run pulumi up again where the API answers"
    );
  }
  const { secrets } = legacyTokens;
  return secrets.length === 0
    ? undefined
    : `tokens of ${names} that never end are in Secrets (${secrets.join(", ")}), so that this update keeps it. Give whoever uses one ` +
        "another one, delete the Secret (kubectl delete secret --namespace NAMESPACE NAME), and run pulumi up again";
}
