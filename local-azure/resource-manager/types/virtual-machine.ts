import { VirtualMachine } from "../../machines/machines";
import { AzureError, OperationFailed, refuse } from "../azure-error";
import { imageName } from "../images";
import { parseId } from "../ids";
import {
  Accepted,
  Body,
  Ledger,
  Put,
  Reference,
  Resource,
  ResourceType,
  Running,
  View,
} from "../resource-type";
import { checkNotReserved, NetworkInterfaceBody, reserve } from "./network-interface";
import { MachineBody, nicsOf } from "./virtual-machine-body";
import { checkMachineChange } from "./virtual-machine-changes";
import { completeMachine, identitiesOf } from "./virtual-machine-defaults";
import {
  checkDataDisks,
  createOsDisk,
  diskId,
  leaveDisks,
  moveDataDisks,
} from "./virtual-machine-disks";
import { checkNics } from "./virtual-machine-nics";
import { checkMachine } from "./virtual-machine-rules";

const machineType = "Microsoft.Compute/virtualMachines";

export const virtualMachine: ResourceType<MachineBody> = {
  token: "azure-native:compute:VirtualMachine",
  type: machineType,
  apiVersion: "2024-11-01",
  path: "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Compute/virtualMachines/{vmName}",
  autoName: "random",
  inputs: [
    "additionalCapabilities",
    "applicationProfile",
    "availabilitySet",
    "billingProfile",
    "capacityReservation",
    "diagnosticsProfile",
    "evictionPolicy",
    "extendedLocation",
    "extensionsTimeBudget",
    "hardwareProfile",
    "host",
    "hostGroup",
    "identity",
    "licenseType",
    "location",
    "networkProfile",
    "osProfile",
    "placement",
    "plan",
    "platformFaultDomain",
    "priority",
    "proximityPlacementGroup",
    "scheduledEventsPolicy",
    "scheduledEventsProfile",
    "securityProfile",
    "storageProfile",
    "tags",
    "userData",
    "virtualMachineScaleSet",
    "zones",
  ],
  required: [],
  readOnly: [
    "storageProfile.imageReference.exactVersion",
    "identity.principalId",
    "identity.tenantId",
  ],
  zones: { most: 1 },
  name: /^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?$/,

  references(body, id): Reference[] {
    const to = (target: string, missing: AzureError): Reference => ({
      from: id,
      owner: id,
      to: target,
      missing,
    });
    const notFound = (target: string) =>
      new AzureError(404, "NotFound", `Resource ${target} not found.`);
    return [
      ...nicsOf(body).map((nic) => to(nic.id, notFound(nic.id))),
      ...(body.storageProfile?.dataDisks ?? []).flatMap(({ managedDisk: { id: disk } = {} }) =>
        disk === undefined ? [] : [to(disk, notFound(disk))],
      ),
      ...identitiesOf(body).map((identity) =>
        to(
          identity,
          refuse(
            "FailedIdentityOperation",
            `Identity operation for resource '${id}' failed with error 'Failed to perform resource identity operation. ` +
              `Status: 'BadRequest'. Response: 'Resource '${identity}' was not found.'.`,
          ),
        ),
      ),
    ];
  },

  accept(put: Put<MachineBody>, view: View): Accepted<MachineBody> {
    const { id, body, old, now } = put;
    checkMachine(body, id, sizeOf(old?.body) !== sizeOf(body));
    checkNics(body, id, view);
    if (old) checkMachineChange(body, old);
    for (const nic of nicsOf(body)) {
      checkNotReserved(view.find(nic.id)?.hidden ?? {}, id.id, now);
    }
    checkDataDisks(body.storageProfile?.dataDisks ?? [], id, body, view);
    const diskName = body.storageProfile?.osDisk?.name;
    if (!old && diskName !== undefined && view.find(diskId(id, diskName)) !== undefined) {
      throw refuse(
        "ConflictingUserInput",
        `Disk ${diskName} already exists in resource group ${id.group?.toUpperCase()}. Only CreateOption.Attach is supported.`,
      );
    }
    return completeMachine(put, view);
  },

  commit(
    resource: Resource<MachineBody>,
    ledger: Ledger,
    now: Date,
    old?: Resource<MachineBody>,
  ): void {
    if (old === undefined) createOsDisk(resource, ledger, now);
    moveDataDisks(resource, old, ledger);
  },

  async run({ resource, old, ledger, machines }: Running<MachineBody>): Promise<void> {
    const machine = machineOf(resource, ledger);
    if (old !== undefined && old.body.provisioningState !== "Failed") {
      if (sizeOf(old.body) !== sizeOf(resource.body)) await machines.restart(machine);
      return;
    }
    try {
      await machines.create(machine);
    } catch (error) {
      throw new OperationFailed(
        200,
        "OSProvisioningInternalError",
        `OS Provisioning failed for VM '${machine.name}' due to an internal error: ${(error as Error).message}`,
      );
    }
  },

  failed(resource: Resource<MachineBody>, ledger: Ledger, now: Date): void {
    for (const nic of nicsOf(resource.body).flatMap(({ id }) => ledger.find(id) ?? [])) {
      reserve(nic, resource.id, now);
    }
  },

  toInputs(body: Body): Body {
    const { identity } = body as MachineBody;
    if (identity?.userAssignedIdentities === undefined) return body;
    const userAssignedIdentities = identitiesOf(body as MachineBody);
    return { ...body, identity: { ...identity, userAssignedIdentities } };
  },

  deleted({ body }: Resource<MachineBody>, ledger: Ledger): void {
    leaveDisks(body, ledger);
    for (const { id, deleteOption } of nicsOf(body)) {
      if (deleteOption === "Delete") ledger.remove(id);
    }
  },
};

const sizeOf = (body: MachineBody | undefined): string | undefined =>
  body?.hardwareProfile?.vmSize?.toLowerCase();

/** What the machines are told about a VM. */
export function machineOf({ id, body, hidden }: Resource<MachineBody>, view: View): VirtualMachine {
  const nics = nicsOf(body);
  const primary = nics.find((nic) => nic.primary) ?? nics[0];
  const nic = (primary && view.find(primary.id)?.body) as NetworkInterfaceBody | undefined;
  const configurations = nic?.ipConfigurations ?? [];
  const { name, group = "", subscription } = parseId(id)!;
  return {
    id,
    name,
    vmId: body.vmId!,
    zone: body.zones?.[0],
    location: body.location,
    size: body.hardwareProfile?.vmSize ?? "",
    resourceGroup: group,
    subscriptionId: subscription,
    customData: hidden["customData"] as string | undefined,
    privateAddress:
      (configurations.find((one) => one.primary) ?? configurations[0])?.privateIPAddress ?? "",
    image: imageName(body.storageProfile?.imageReference ?? {}),
  };
}

export const isMachine = (resource: Resource): resource is Resource<MachineBody> =>
  resource.type === machineType;
