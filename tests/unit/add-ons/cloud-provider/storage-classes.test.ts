import { StorageClasses } from "../../../../components/add-ons/cloud-provider/storage-classes";
import { diskClasses, type DiskEncryptionSet } from "../../../../components/azure/disk-classes";
import { Recorder } from "../../../support/record";
import { validSettings } from "../../../support/sample";

async function build(
  change: Partial<typeof validSettings> = {},
  diskEncryptionSet?: DiskEncryptionSet,
) {
  const recorder = await Recorder.start();
  const settings = { ...validSettings, ...change };
  new StorageClasses(
    "storage-classes",
    { settings, diskClasses: diskClasses(settings.zones), diskEncryptionSet },
    { transformations: [recorder.watch] },
  );
  const classes = await recorder.of("kubernetes:storage.k8s.io/v1:StorageClass");
  return { classes };
}

const isDefault = "storageclass.kubernetes.io/is-default-class";

describe("StorageClasses", () => {
  it("has exactly one default, of a kind that every size of machine takes", async () => {
    const { classes } = await build();

    const defaults = classes.filter(
      ({ inputs }) => inputs.metadata.annotations[isDefault] === "true",
    );

    expect(defaults.map(({ inputs }) => inputs.parameters.skuName)).toEqual(["StandardSSD_LRS"]);
    expect(defaults[0]!.inputs).not.toHaveProperty("allowedTopologies");
  });

  it("allows just one zone in a class of a zone, for each zone of the settings", async () => {
    const { classes } = await build({ zones: ["1", "3"], location: "eastus2" });

    const ofZones = classes.filter(({ inputs }) => inputs.allowedTopologies !== undefined);

    expect(
      ofZones.map(({ inputs }) => [
        inputs.metadata.name,
        inputs.parameters.skuName,
        inputs.allowedTopologies,
      ]),
    ).toEqual(
      [
        ["standard-ssd-zone-1", "StandardSSD_LRS", "eastus2-1"],
        ["standard-ssd-zone-3", "StandardSSD_LRS", "eastus2-3"],
        ["premium-ssd-zone-1", "Premium_LRS", "eastus2-1"],
        ["premium-ssd-zone-3", "Premium_LRS", "eastus2-3"],
      ].map(([name, sku, zone]) => [
        name,
        sku,
        [{ matchLabelExpressions: [{ key: "topology.disk.csi.azure.com/zone", values: [zone] }] }],
      ]),
    );
  });

  it("offers disks that outlive a zone, wherever their pod goes", async () => {
    const { classes } = await build();

    const redundant = classes.filter(({ inputs }) => inputs.parameters.skuName.endsWith("_ZRS"));

    expect(redundant.map(({ inputs }) => inputs.metadata.name)).toEqual([
      "standard-ssd-zrs",
      "premium-ssd-zrs",
    ]);
    expect(redundant.every(({ inputs }) => inputs.allowedTopologies === undefined)).toBe(true);
  });

  it("makes a disk only once a pod wants it, by the disk driver, and lets it grow", async () => {
    const { classes } = await build();

    for (const { inputs } of classes) {
      expect(inputs).toMatchObject({
        provisioner: "disk.csi.azure.com",
        volumeBindingMode: "WaitForFirstConsumer",
        allowVolumeExpansion: true,
        reclaimPolicy: "Delete",
      });
    }
  });

  it("has the disk driver tag every disk that it makes", async () => {
    const { classes } = await build({ tags: { owner: "a=b", cost: "1" } });

    for (const { inputs } of classes) expect(inputs.parameters.tags).toBe("owner=a=b,cost=1");
    const { classes: untagged } = await build();
    for (const { inputs } of untagged) expect(inputs.parameters).not.toHaveProperty("tags");
  });

  it("has the disk driver encrypt every disk by the set, in the set's way", async () => {
    const encryptionType = "EncryptionAtRestWithPlatformAndCustomerKeys";
    const { classes } = await build({}, { id: "/ids/set", encryptionType });

    for (const { inputs } of classes) {
      expect(inputs.parameters).toEqual({
        skuName: expect.any(String),
        diskEncryptionSetID: "/ids/set",
        diskEncryptionType: encryptionType,
      });
    }
    const { classes: others } = await build();
    for (const { inputs } of others) expect(Object.keys(inputs.parameters)).toEqual(["skuName"]);
  });
});
