import { badRequest, operationNotAllowed, propertyChangeNotAllowed } from "../../azure-error";
import { ArmId, Resource, withoutUndefined } from "../../resources/resource";
import { findSize, spotPrice } from "../../subscription/offers";
import { powerOf } from "./power";
import type { MachineBody } from "./virtual-machine-validation";

/** Stands for a price that is never too high. */
const anyPrice = -1;

const more = "For more information, see http://aka.ms/AzureSpot/errormessages.";

export const isSpot = ({ priority }: Pick<MachineBody, "priority">): boolean => priority === "Spot";

const priceOf = ({ billingProfile }: MachineBody): number => billingProfile?.maxPrice ?? anyPrice;

/**
 * Throws when Azure refuses what a machine says of spare capacity. The messages are those of Microsoft's page
 * error-codes-spot; that of a price is compared on each PUT of a machine that has hardware.
 */
export function checkSpot(
  body: MachineBody,
  old: Resource<MachineBody> | undefined,
  { name }: ArmId,
): void {
  if (!isSpot(body)) {
    if (body.evictionPolicy !== undefined) {
      throw badRequest(`Eviction policy can be set only on Azure Spot Virtual Machines. ${more}`);
    }
    if (body.billingProfile?.maxPrice !== undefined && body.billingProfile.maxPrice !== anyPrice) {
      throw badRequest(`Max price is supported only for Azure Spot Virtual Machines. ${more}`);
    }
    return;
  }
  if (body.scheduledEventsProfile?.terminateNotificationProfile?.enable === true) {
    throw badRequest("Terminate notifications cannot be enabled on Spot instances.");
  }
  const size = findSize(body.hardwareProfile?.vmSize ?? "")!;
  if (size.spot === false) {
    throw badRequest(
      `Azure Spot Virtual Machine is not supported for this VM size ${size.name}. ${more}`,
    );
  }
  const price = priceOf(body);
  if (price !== anyPrice && !(price > 0)) {
    throw badRequest(
      "Invalid max price value. The only supported values for max price are -1 or a decimal greater than zero. " +
        `Max price value of -1 indicates the Azure Spot Virtual Machine will not be evicted for price reasons. ${more}`,
    );
  }
  const policy = body.evictionPolicy;
  if (old && policy !== undefined && policy !== old.body.evictionPolicy) {
    throw propertyChangeNotAllowed("evictionPolicy");
  }
  const isAllocated = old === undefined || powerOf(old) !== "deallocated";
  if (old && isAllocated && body.billingProfile !== undefined && price !== priceOf(old.body)) {
    throw operationNotAllowed(
      `Max price change is not allowed when the VM '${name}' is currently allocated. Deallocate and try again. ${more}`,
    );
  }
  if (isAllocated && price !== anyPrice && price < spotPrice(size)) {
    throw operationNotAllowed(
      `Unable to perform operation '${old ? "Update VM" : "Create VM"}' since the provided max price '${price} USD' is lower than ` +
        `the current spot price '${spotPrice(size)} USD' for Azure Spot Virtual Machine size '${size.name}'. ${more}`,
    );
  }
}

/** What a spot machine has besides what the request says. */
export const spotDefaults = (body: MachineBody, old: MachineBody | undefined): object =>
  withoutUndefined(
    isSpot(body)
      ? {
          evictionPolicy: body.evictionPolicy ?? old?.evictionPolicy ?? "Deallocate",
          billingProfile: body.billingProfile ?? old?.billingProfile ?? { maxPrice: anyPrice },
        }
      : {},
  );
