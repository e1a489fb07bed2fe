import type { View } from "../../../arm/resources/resource";
import { isMachine, machineOf } from "../../../arm/types/compute/virtual-machine";
import type { MachineMetadata } from "./metadata";
import { networksOf, plugOf, type VirtualNetwork } from "./network-view";

/** What the metadata service serves to every machine. */
export const machineMetadata = (view: View): MachineMetadata[] =>
  networksOf(view).flatMap((network) => metadataOf(network, view));

/** What the metadata service of this network serves. */
export function metadataOf(network: VirtualNetwork, view: View): MachineMetadata[] {
  return view.ofType("Microsoft.Compute/virtualMachines").flatMap((resource) => {
    const plug = plugOf(resource.id, view);
    if (!isMachine(resource) || plug?.network !== network.key) return [];
    const vm = machineOf(resource, view);
    const [subnet = "", bits = ""] = plug.subnet.prefix.split("/");
    const compute = {
      azEnvironment: "AzurePublicCloud",
      location: vm.location,
      name: vm.name,
      osType: "Linux",
      platformFaultDomain: "0",
      provider: "Microsoft.Compute",
      resourceGroupName: vm.resourceGroup,
      resourceId: vm.id,
      subscriptionId: vm.subscriptionId,
      vmId: vm.vmId,
      vmSize: vm.size,
      zone: vm.zone ?? "",
    };
    const { address } = plug;
    const inboundRules = network.balanced
      .filter(({ backends }) => backends.includes(address))
      .map((rule) => ({
        frontendIpAddress: rule.address,
        protocol: rule.protocol.toLowerCase(),
        frontendPort: rule.port,
        backendPort: rule.backendPort,
        privateIpAddress: address,
      }));
    return [
      {
        address,
        mac: plug.mac,
        subnet: { address: subnet, prefix: bits },
        compute,
        identities: vm.identities,
        inboundRules,
      },
    ];
  });
}
