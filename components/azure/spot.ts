import type { MachinePlan } from "../settings/topology";

/** Azure's own word for a price that is never too high, which it shows where none is given. */
const anyPrice = -1;

/** The properties by which a machine is one of spare capacity; none of a regular one. */
export const spotProperties = ({ spot }: Pick<MachinePlan, "spot">) =>
  spot && {
    priority: "Spot",
    evictionPolicy: spot.evictionPolicy,
    billingProfile: { maxPrice: spot.maxPrice ?? anyPrice },
  };

/** Azure's name of the quota that machines of spare capacity count against, whatever their size. */
export const spotCores = "lowPriorityCores";
