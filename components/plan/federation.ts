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
 * @param previous what the last update of this cluster that ended well has left; nothing before there is one
 */
export function planFederation(
  { machineIdentity }: Pick<Settings, "machineIdentity">,
  isKnownToEntra: boolean,
  previous: Pick<PreviousOutputs, "isFederated"> | undefined,
): Federation {
  if (machineIdentity) return { isUsed: false, isOnMachines: true };
  const isUsed = isKnownToEntra;
  const isOnMachines = previous !== undefined && previous.isFederated !== true;
  return {
    isUsed,
    isOnMachines,
    ...(isUsed &&
      isOnMachines && {
        message:
          "this update has the cloud provider and the disk driver log in by tokens of their service accounts. " +
          "Run pulumi up again when it has ended: it takes the identity off the control planes",
      }),
  };
}
