import { stateOf } from "../../admission";
import { Body, Resource } from "../../resources/resource";
import { isGeneralized } from "./power";
import { MachineBody } from "./virtual-machine-validation";

/** A machine's condition as Compute reports it, and its power as its host does. */
export function instanceViewOf(machine: Resource<MachineBody>, power: string): Body {
  const { body, changed } = machine;
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
    statuses: [
      provisioned,
      ...(isGeneralized(machine) ? [status("OSState/generalized", "VM generalized")] : []),
      status(`PowerState/${power}`, `VM ${power}`),
    ],
  };
}

/** What the agent reports of an extension: the end of what its script has written. */
export function extensionViewOf({ id, body, hidden, changed }: Resource): Body {
  const { type, typeHandlerVersion } = body;
  const state = stateOf(body) ?? "Succeeded";
  return {
    name: id.split("/").at(-1),
    type,
    typeHandlerVersion,
    statuses: [
      {
        code: `ProvisioningState/${state.toLowerCase()}`,
        level: state === "Failed" ? "Error" : "Info",
        displayStatus: `Provisioning ${state.toLowerCase()}`,
        message: hidden["message"] ?? "",
        time: changed,
      },
    ],
  };
}
