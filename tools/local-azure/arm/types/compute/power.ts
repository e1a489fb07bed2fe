import type { PowerAction } from "../../../machines/machines";
import type { Resource } from "../../resources/resource";

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

export function setPower(machine: Resource, action: PowerAction): void {
  machine.hidden["power"] = powerAfter[action];
}
