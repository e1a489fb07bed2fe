import { build, newCloud, refusedBy } from "../fixture";
import { Body } from "../resource-type";
import { changed, compute, Kind, sound } from "../sample";

const [id, body] = sound.machine;
const key = body.osProfile.linuxConfiguration.ssh.publicKeys[0];
const signIn = (publicKeys: object[]) => ({ linuxConfiguration: { ssh: { publicKeys } } });

it.each<[flaw: string, kind: Kind, change: Body, code: string]>([
  [
    "a group in another region",
    "group",
    { location: "northeurope" },
    "InvalidResourceGroupLocation",
  ],
  ["a network in another region", "vnet", { location: "northeurope" }, "InvalidResourceLocation"],
  [
    "an address in fewer zones",
    "apiIp",
    { zones: ["1"] },
    "ResourceAvailabilityZonesCannotBeModified",
  ],
  [
    "a balancer of another sku",
    "balancer",
    { sku: { name: "Gateway" } },
    "LoadBalancerSkuCannotBeChanged",
  ],
  [
    "a subnet of another range",
    "subnet",
    { addressPrefix: "172.16.9.0/24" },
    "InUsePrefixCannotBeDeleted",
  ],
  ["a machine in another zone", "machine", { zones: ["2"] }, "PropertyChangeNotAllowed: .*'zones'"],
  [
    "another image",
    "machine",
    { storageProfile: { imageReference: { version: "24.04.202604160" } } },
    "PropertyChangeNotAllowed: .*'imageReference'",
  ],
  [
    "other customData",
    "machine",
    { osProfile: { customData: "Iw==" } },
    "PropertyChangeNotAllowed: .*'osProfile.customData'",
  ],
  [
    "another key",
    "machine",
    { osProfile: signIn([{ ...key, keyData: "ssh-rsa AAAA" }]) },
    "PropertyChangeNotAllowed: .*publicKeys",
  ],
  [
    "another host name",
    "machine",
    { osProfile: { computerName: "other" } },
    "PropertyChangeNotAllowed: .*computerName",
  ],
  [
    "another security type",
    "machine",
    { securityProfile: { securityType: "Standard" } },
    "PropertyChangeNotAllowed: .*securityType",
  ],
  [
    "a bigger system disk",
    "machine",
    { storageProfile: { osDisk: { diskSizeGB: 128 } } },
    "OperationNotAllowed: Disk resizing",
  ],
])("refuses to make of what is there %s", async (_, kind, change, code) => {
  const { cloud } = newCloud();
  await build(cloud);
  const before = cloud.peek(sound[kind][0]);

  const refusal = await refusedBy(cloud.put(sound[kind][0], changed(kind, change)));

  expect(refusal).toMatch(new RegExp(`^${code}`));
  expect(cloud.peek(sound[kind][0])).toEqual(before);
});

it("leaves attached disks alone when a PUT does not name them, and detaches those it leaves out", async () => {
  const { cloud } = newCloud();
  await build(cloud);
  const disk = compute("disks/pv");
  await cloud.put(disk, {
    location: "westeurope",
    zones: ["1"],
    creationData: { createOption: "Empty" },
    diskSizeGB: 8,
  });
  const dataDisks = [{ lun: 0, createOption: "Attach", managedDisk: { id: disk } }];
  await cloud.put(id, changed("machine", { storageProfile: { dataDisks } }));

  await cloud.put(...sound.machine);
  expect(cloud.peek(id)).toMatchObject({ storageProfile: { dataDisks } });
  expect(await refusedBy(cloud.delete(disk))).toMatch(/^OperationNotAllowed: Disk pv is attached/);

  await cloud.put(id, changed("machine", { storageProfile: { dataDisks: [] } }));
  expect(await refusedBy(cloud.delete(disk))).toBe("not refused");
});
