import type { PowerAction } from "../../../machines/machines";
import { stateOf } from "../../admission";
import { operationNotAllowed } from "../../azure-error";
import { parseId, type Resource } from "../../resources/resource";

const powerAfter = {
  start: "running",
  restart: "running",
  redeploy: "running",
  powerOff: "stopped",
  deallocate: "deallocated",
} as const satisfies Record<PowerAction, string>;

/** Of a machine: running, stopped or deallocated. */
export const powerOf = ({ hidden }: Pick<Resource, "hidden">): string =>
  String(hidden["power"] ?? "running");

/** Of a machine: whether it is for images only, from now on. */
export const isGeneralized = ({ hidden }: Pick<Resource, "hidden">): boolean =>
  hidden["generalized"] === true;

/** There is no way back from it (Azure/azure-powershell #2818, MicrosoftDocs/azure-docs #86809). */
export function generalize(machine: Resource): void {
  if (powerOf(machine) === "running") throw notAllowed("generalize", machine, "running");
  machine.hidden["generalized"] = true;
}

export function checkNotGeneralized(operation: string, machine: Resource): void {
  if (isGeneralized(machine)) throw notAllowed(operation, machine, "generalized");
}

/** azure-docs #32404, and terraform-provider-azurerm #28218 of one that is deallocated. */
export function checkPower(action: PowerAction, machine: Resource): void {
  const power = powerOf(machine);
  if (action === "powerOff" && power === "deallocated") {
    throw notAllowed(action, machine, "either deallocated or marked to be deallocated");
  }
  if (/^(restart|redeploy)$/.test(action) && power !== "running") {
    throw operationNotAllowed("The operation requires the VM to be running (or set to run).");
  }
}

/** azure-sdk-for-python #2702 and terraform-provider-azurerm #6669 have the refusal. */
export function checkNotDeleting(operation: string, machine: Resource): void {
  if (stateOf(machine.body) !== "Deleting") return;
  throw notAllowed(
    operation,
    machine,
    "marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete)",
  );
}

const notAllowed = (operation: string, { id }: Resource, state: string) =>
  operationNotAllowed(
    `Operation '${operation}' is not allowed on VM '${parseId(id)!.name}' since the VM is ${state}.`,
  );

export function setPower(machine: Resource, action: PowerAction): void {
  machine.hidden["power"] = powerAfter[action];
}
