import { refuse } from "../azure-error";
import { ArmId, keyOf } from "../ids";
import { View } from "../resource-type";
import { NetworkInterfaceBody } from "./network-interface";
import { PublicIpBody } from "./public-ip-address";
import { MachineBody, nicsOf } from "./virtual-machine-body";

export function checkNics(body: MachineBody, id: ArmId, view: View): void {
  const nics = nicsOf(body);
  if (nics.length > 1 && nics.filter(({ primary }) => primary).length !== 1) {
    throw refuse(
      "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary",
      `Virtual machine ${id.id} must have one network interface set as the primary.`,
    );
  }
  for (const { id: nic } of nics) {
    const user = view.referrers(nic).find(({ owner }) => keyOf(owner) !== id.key);
    if (user) {
      throw refuse(
        "NicInUse",
        `Network Interface ${nic} is used by existing resource ${user.owner}. In order to use the network interface, it must be dissociated from the resource.`,
      );
    }
    const configurations =
      (view.find(nic)?.body as NetworkInterfaceBody | undefined)?.ipConfigurations ?? [];
    for (const { publicIPAddress } of configurations) {
      if (publicIPAddress?.id === undefined || body.zones === undefined) continue;
      const zones = (view.find(publicIPAddress.id)?.body as PublicIpBody | undefined)?.zones ?? [];
      if (zones.includes(body.zones[0] ?? "")) continue;
      throw refuse(
        "ComputeResourceZoneConstraintDoesNotMatchPublicIPAddressZoneConstraint",
        `Compute resource ${id.id} has a zone constraint ${body.zones[0]} but the PublicIPAddress ${publicIPAddress.id} used by the compute resource ` +
          `via NetworkInterface or LoadBalancer has a different zone constraint ${zones.length > 0 ? zones.join(", ") : "Regional"}.`,
      );
    }
  }
}
