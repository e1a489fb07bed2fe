import type { Settings } from "../settings/settings";
import type { PreviousOutputs } from "./machine-changes";

/** How this program's own pods log in to Azure, and what control planes have for it. */
export interface Federation {
  /** Whether they log in by tokens of their service accounts. */
  readonly isUsed: boolean;
  /** Whether control planes carry the cluster's identity. */
  readonly isOnMachines: boolean;
  readonly message?: string;
}

/**
 * Entra takes such tokens once API servers give them with an issuer that it knows; and the identity leaves the
 * machines once nobody there needs it, an update later. A new cluster begins with all of it.
 *
 * @param isKnownToEntra whether API servers give tokens that Entra takes by this update
 * @param previous what the last update of this cluster has left; nothing before there is one
 * @param loginProblem why the machines' identity may still be needed; see token-logins.ts
 */
export function planFederation(
  { machineIdentity }: Pick<Settings, "machineIdentity">,
  isKnownToEntra: boolean,
  previous: Pick<PreviousOutputs, "isFederated"> | undefined,
  loginProblem: string | undefined,
): Federation {
  if (machineIdentity) return { isUsed: false, isOnMachines: true };
  const isUsed = isKnownToEntra;
  const hasToStay = previous?.isFederated !== true || loginProblem !== undefined;
  const isOnMachines = previous !== undefined && hasToStay;
  const message =
    previous?.isFederated === true
      ? "this update leaves the cluster's identity on the control planes, since the cloud provider and the disk driver are not known to log in " +
        `without it: ${loginProblem}. Run pulumi up again when they do`
      : "this update has the cloud provider and the disk driver log in by tokens of their service accounts. " +
        "Run pulumi up again when it has ended: it takes the identity off the control planes";
  return { isUsed, isOnMachines, ...(isUsed && isOnMachines && { message }) };
}
