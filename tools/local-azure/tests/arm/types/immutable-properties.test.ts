import { Body } from "../../../arm/resources/resource";
import { createResources, newArm, refusedBy } from "../../support/arm/fixture";
import {
  withChange,
  Kind,
  network,
  roleDefinition,
  valid,
} from "../../support/arm/valid-resources";

const [key] = valid.machine[1].osProfile.linuxConfiguration.ssh.publicKeys;
const signIn = (publicKey: object) => ({
  linuxConfiguration: { ssh: { publicKeys: [publicKey] } },
});
const image = (imageReference: object) => ({ storageProfile: { imageReference } });
const osDisk = (disk: object) => ({ storageProfile: { osDisk: disk } });
const notAllowed = (path: string) => `PropertyChangeNotAllowed: Changing property '${path}'`;
const zonesFixed = "ResourceAvailabilityZonesCannotBeModified";

async function expectRefused(kind: Kind, change: Body, code: string): Promise<void> {
  const { arm } = newArm();
  await createResources(arm);
  const [id] = valid[kind];
  const before = arm.peek(id);

  const refusal = await refusedBy(arm.put(id, withChange(kind, change)));

  expect(refusal.slice(0, code.length)).toBe(code);
  expect(arm.peek(id)).toEqual(before);
}

const located = (Object.keys(valid) as Kind[]).filter((kind) => "location" in valid[kind][1]);

it.each(located)("does not move a %s to another region", async (kind) => {
  const code = kind === "group" ? "InvalidResourceGroupLocation:" : "InvalidResourceLocation:";

  await expectRefused(kind, { location: "northeurope" }, code);
});

it.each<[kind: Kind, property: string, change: Body, code: string]>([
  ["assignment", "principalId", { principalId: "other" }, "RoleAssignmentUpdateNotPermitted"],
  [
    "assignment",
    "roleDefinitionId",
    { roleDefinitionId: roleDefinition("b24988ac-6180-42a0-ab88-20f7382dd24c") },
    "RoleAssignmentUpdateNotPermitted",
  ],
  ["disk", "zones", { zones: ["2"] }, notAllowed("zones")],
  [
    "disk",
    "createOption",
    { creationData: { createOption: "Copy" } },
    notAllowed("creationData.createOption"),
  ],
  [
    "disk",
    "diskSizeGB (to less)",
    { diskSizeGB: 4 },
    "OperationNotAllowed: Disk size can only be increased",
  ],
  ["natIp", "sku", { sku: { name: "StandardV2" } }, "SkuCannotBeChangedForPublicIp"],
  ["natIp", "zones", { zones: ["2"] }, zonesFixed],
  ["nat", "zones", { zones: undefined }, zonesFixed],
  ["subnet", "addressPrefix", { addressPrefix: "172.16.9.0/24" }, "InUsePrefixCannotBeDeleted"],
  [
    "vnet",
    "subnets",
    { subnets: [{ name: "nodes-1", addressPrefix: "172.16.9.0/24" }] },
    "InUsePrefixCannotBeDeleted",
  ],
  [
    "subnet",
    "defaultOutboundAccess",
    { defaultOutboundAccess: false },
    "SubnetDefaultOutboundAccessCannotBeChanged",
  ],
  ["apiIp", "zones", { zones: ["1"] }, zonesFixed],
  ["balancer", "sku", { sku: { name: "Gateway" } }, "LoadBalancerSkuCannotBeChanged"],
  ["machine", "zones", { zones: ["2"] }, notAllowed("zones")],
  [
    "machine",
    "customData",
    { osProfile: { customData: "Iw==" } },
    notAllowed("osProfile.customData"),
  ],
  [
    "machine",
    "computerName",
    { osProfile: { computerName: "other" } },
    notAllowed("osProfile.computerName"),
  ],
  [
    "machine",
    "adminUsername",
    {
      osProfile: {
        adminUsername: "other",
        ...signIn({ ...key, path: "/home/other/.ssh/authorized_keys" }),
      },
    },
    notAllowed("osProfile.adminUsername"),
  ],
  [
    "machine",
    "publicKeys",
    { osProfile: signIn({ ...key, keyData: "ssh-rsa AAAA" }) },
    notAllowed("linuxConfiguration.ssh.publicKeys"),
  ],
  ["machine", "imageReference.id", image({ id: "/images/a" }), notAllowed("imageReference")],
  ["machine", "imageReference.sku", image({ sku: "minimal" }), notAllowed("imageReference")],
  [
    "machine",
    "imageReference.version",
    image({ version: "24.04.202604160" }),
    notAllowed("imageReference"),
  ],
  [
    "machine",
    "imageReference.offer",
    image({ offer: "0001-com-ubuntu-server-jammy", sku: "22_04-lts-gen2" }),
    notAllowed("imageReference"),
  ],
  ["machine", "osDisk.name", osDisk({ name: "other" }), notAllowed("osDisk.name")],
  [
    "machine",
    "storageAccountType",
    osDisk({ managedDisk: { storageAccountType: "Standard_LRS" } }),
    notAllowed("osDisk.managedDisk.storageAccountType"),
  ],
  [
    "machine",
    "osDisk.diskSizeGB",
    osDisk({ diskSizeGB: 128 }),
    "OperationNotAllowed: Disk resizing",
  ],
  [
    "machine",
    "securityType",
    { securityProfile: { securityType: "Standard" } },
    notAllowed("securityProfile.securityType"),
  ],
  [
    "machine",
    "availabilitySet",
    { availabilitySet: { id: "/sets/a" } },
    notAllowed("availabilitySet"),
  ],
  ["machine", "priority", { priority: "Spot" }, notAllowed("priority")],
  ["extension", "publisher", { publisher: "Other" }, notAllowed("publisher")],
  ["extension", "type", { type: "Other" }, notAllowed("type")],
])("does not change of a %s the property %s", (kind, _, change, code) =>
  expectRefused(kind, change, code),
);

it("neither attaches an interface to a machine nor detaches one", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const second = network("networkInterfaces/second");
  await arm.put(second, {
    location: "westeurope",
    ipConfigurations: [{ name: "ip", subnet: { id: valid.subnet[0] } }],
  });
  const withInterfaces = (networkInterfaces: object[]) =>
    arm.put(valid.machine[0], withChange("machine", { networkProfile: { networkInterfaces } }));

  const added = withInterfaces([{ id: valid.nic[0], primary: true }, { id: second }]);
  expect(await refusedBy(added)).toMatch(/^AddingOrDeletingNetworkInterfaces/);
  expect(await refusedBy(withInterfaces([{ id: second }]))).toMatch(
    /^AddingOrDeletingNetworkInterfaces/,
  );
});

it("does not move an interface to another virtual network", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const [id] = valid.nic;
  const subnet = network("virtualNetworks/other/subnets/nodes");
  await arm.put(network("virtualNetworks/other"), valid.vnet[1]);
  await arm.put(subnet, { addressPrefix: "172.16.1.0/24" });
  const [configuration] = valid.nic[1].ipConfigurations;

  const moved = arm.put(
    id,
    withChange("nic", { ipConfigurations: [{ ...configuration, subnet: { id: subnet } }] }),
  );

  expect(await refusedBy(moved)).toMatch(/^SubnetsNotInSameVnet/);
});

it("does not change the zones of a balancer's internal frontend", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const put = (zones: string[]) =>
    arm.put(network("loadBalancers/internal"), {
      location: "westeurope",
      sku: { name: "Standard" },
      frontendIPConfigurations: [{ name: "api", subnet: { id: valid.subnet[0] }, zones }],
    });
  await put(["1", "2", "3"]);

  expect(await refusedBy(put(["1"]))).toMatch(new RegExp(`^${zonesFixed}`));
});
