import type { PowerAction } from "../../../machines/machines";
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

const notAllowed = (operation: string, { id }: Resource, state: string) =>
  operationNotAllowed(
    `Operation '${operation}' is not allowed on VM '${parseId(id)!.name}' since the VM is ${state}.`,
  );

export function setPower(machine: Resource, action: PowerAction): void {
  machine.hidden["power"] = powerAfter[action];
}
