import { stateOf } from "../../admission";
import { Body, Resource } from "../../resources/resource";
import { powerOf } from "./power";
import { MachineBody } from "./virtual-machine-validation";

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
