import type { PowerAction } from "../../../machines/machines";
import { stateOf } from "../../admission";
import { Body, Resource } from "../../resources/resource";
import { MachineBody } from "./virtual-machine-validation";

const powerAfter = {
  start: "running",
  restart: "running",
  powerOff: "stopped",
  deallocate: "deallocated",
} as const satisfies Record<PowerAction, string>;

/** Of a machine: running, stopped or deallocated. */
export const powerOf = ({ hidden }: Pick<Resource, "hidden">): string =>
  String(hidden["power"] ?? "running");

export function setPower(machine: Resource, action: PowerAction): void {
  machine.hidden["power"] = powerAfter[action];
}

/** A machine's condition as Compute reports it. */
export function instanceViewOf(machine: Resource<MachineBody>): Body {
  const { body, changed } = machine;
  const power = powerOf(machine);
  const state = stateOf(body) ?? "Succeeded";
  const status = (code: string, displayStatus: string) => ({
    code,
    level: "Info",
    displayStatus,
    time: changed,
  });
  const provisioned = status(
    `ProvisioningState/${state.toLowerCase()}`,
    `Provisioning ${state.toLowerCase()}`,
  );
  return {
    computerName: body.osProfile?.computerName,
    hyperVGeneration: "V2",
    ...(power === "running" && {
      vmAgent: {
        vmAgentVersion: "2.11.1.4",
        statuses: [
          {
            ...status("ProvisioningState/succeeded", "Ready"),
            message: "Guest Agent is running",
          },
        ],
      },
    }),
    disks: [body.storageProfile?.osDisk?.name].map((name) => ({ name, statuses: [provisioned] })),
    statuses: [provisioned, status(`PowerState/${power}`, `VM ${power}`)],
  };
}
