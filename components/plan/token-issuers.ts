import { serviceAccountIssuer } from "../kubeadm/merged-arguments";
import { hasIssuer } from "../settings/logins";
import type { Settings } from "../settings/settings";
import { tokenIssuerOf } from "../token-issuer";
import type { PreviousOutputs } from "./machine-changes";

type TokenIssuers = readonly [string, ...string[]];

/** The issuers that an update leaves on every control plane, and what is to be said of their change. */
interface PlannedTokenIssuers {
  /** Nothing where it is kubeadm's alone. */
  readonly tokenIssuers?: TokenIssuers;
  /** Whether API servers give tokens that Entra takes. */
  readonly isKnownToEntra: boolean;
  readonly message?: string;
}

/**
 * One stage towards the issuer that the settings want. While an update is under way some API servers are a stage
 * ahead, so that one has to be admitted by all before one of them gives tokens of it. None is forgotten: tokens of
 * it may be out, and cost nothing.
 *
 * @param previous what the last update of this cluster that ended well has left; nothing before there is one
 */
export function planTokenIssuers(
  settings: Pick<
    Settings,
    "clusterName" | "machineIdentity" | "resourceManagerEndpoint" | "workloadIdentities"
  >,
  subscriptionId: string,
  previous: Pick<PreviousOutputs, "tokenIssuers"> | undefined,
): PlannedTokenIssuers {
  const isWanted = hasIssuer(settings);
  const wanted = isWanted ? tokenIssuerOf(settings, subscriptionId) : serviceAccountIssuer;
  const both: TokenIssuers = [wanted, serviceAccountIssuer];
  if (previous === undefined) {
    return { ...(isWanted && { tokenIssuers: both }), isKnownToEntra: isWanted };
  }
  const current: TokenIssuers = previous.tokenIssuers ?? [serviceAccountIssuer];
  if (current[0] === wanted) {
    return { tokenIssuers: previous.tokenIssuers, isKnownToEntra: isWanted };
  }
  if (!current.includes(wanted)) {
    return {
      tokenIssuers: [...current, wanted],
      isKnownToEntra: false,
      message:
        `this update has every API server admit tokens of ${wanted}. ` +
        "Run pulumi up again when it has ended: it has them give such tokens",
    };
  }
  return {
    tokenIssuers: [wanted, ...current.filter((issuer) => issuer !== wanted)],
    isKnownToEntra: isWanted,
    message: `this update has every API server give tokens of ${wanted}; those of before stay valid`,
  };
}
