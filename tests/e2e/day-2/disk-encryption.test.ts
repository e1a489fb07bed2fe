import { subscriptionPath } from "../../../tools/local-azure/arm/resources/ids";
import { type Clients, soon } from "../../../tools/local-azure/tests/support/arm/sdk-clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(900_000);

const location = "southeastasia";
/** Where others keep keys. */
const theirs = "keys";
const diskEncryptionSetId = `${subscriptionPath}/resourceGroups/${theirs}/providers/Microsoft.Compute/diskEncryptionSets/ours`;
const encryptionType = "EncryptionAtRestWithPlatformAndCustomerKeys";
const names = [1, 2, 3].map((number) => `zoned-local-cp-${number}`);

/** Three control planes alone, of which one after another can be replaced. */
const settings = {
  ...fewAddOns,
  storageClasses: true,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 0 }],
  encryptionAtHost: true,
  diskEncryptionSetId,
};

interface StorageClass {
  readonly parameters: Readonly<Record<string, string>>;
}

/** A cluster whose disks are encrypted by others' key and on its hosts, from its first update to its end. */
describe("a cluster with a disk encryption set and hosts that encrypt", () => {
  let cloud: LocalCloud;
  let clients: Clients;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", { ...settings, controlPlaneSize: "Standard_A2_v2" });
    clients = cloud.sdks();
  });
  afterAll(() => cloud?.stop());

  const machines = () =>
    Promise.all(names.map((name) => clients.compute.virtualMachines.get("zoned-local", name)));

  it("is refused without feature, set and a size that can do it, all at once", async () => {
    const text = refused(await cloud.stack.preview());

    expect(text).toMatch(/feature EncryptionAtHost is NotRegistered .*az feature register/);
    expect(text).toMatch(/diskEncryptionSetId is .*\/ours, expected a set that Azure has/);
    for (const name of names) {
      expect(text).toMatch(
        new RegExp(`${name}: size Standard_A2_v2 has no encryption at host, .*controlPlaneSize`),
      );
    }
  });

  it("is made with both on every machine and its disk, and with the set in every StorageClass", async () => {
    await cloud.register("EncryptionAtHost");
    await clients.resources.resourceGroups.createOrUpdate(theirs, { location });
    await clients.compute.diskEncryptionSets.beginCreateOrUpdateAndWait(
      theirs,
      "ours",
      {
        location,
        identity: { type: "SystemAssigned" },
        activeKey: { keyUrl: "https://ours.vault.azure.net/keys/disks/1" },
        encryptionType,
      },
      soon,
    );
    await cloud.stack.configure(settings);

    asPlanned(await cloud.stack.up());

    for (const { securityProfile, storageProfile } of await machines()) {
      expect(securityProfile).toMatchObject({ encryptionAtHost: true });
      const { name, managedDisk } = storageProfile!.osDisk!;
      expect(managedDisk!.diskEncryptionSet).toEqual({ id: diskEncryptionSetId });
      const { encryption } = await clients.compute.disks.get("zoned-local", name!);
      expect(encryption).toEqual({ diskEncryptionSetId, type: encryptionType });
    }
    const classes = await cloud.get<StorageClass>("storageclasses");
    expect(classes.length).toBeGreaterThan(0);
    for (const { parameters } of classes) {
      expect(parameters).toMatchObject({
        diskEncryptionSetID: diskEncryptionSetId,
        diskEncryptionType: encryptionType,
      });
    }
  });

  it("has an identity that may read the set, as the disk driver has to", async () => {
    const { principalId } = await clients.identities.userAssignedIdentities.get(
      "zoned-local",
      "zoned-local",
    );
    const roles = clients.authorization.roleAssignments.listForScope(diskEncryptionSetId);
    const assigned: string[] = [];
    for await (const one of roles) {
      if (one.scope === diskEncryptionSetId && one.principalId === principalId) {
        assigned.push(one.roleDefinitionId!.split("/").at(-1)!);
      }
    }

    expect(assigned).toEqual(["acdd72a7-3385-48ef-bd42-f606fba81ae7"]);
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("has every machine made anew, each with what the settings say then, where they say otherwise", async () => {
    const before = (await machines()).map(({ vmId }) => vmId);
    await cloud.stack.configure({ ...settings, encryptionAtHost: false });

    const { stdout } = asPlanned(await cloud.stack.up());

    for (const name of names) {
      expect(stdout).toContain(
        `this change would replace ${name}: encryptionAtHost true -> not set`,
      );
    }
    for (const { vmId, securityProfile, storageProfile } of await machines()) {
      expect(before).not.toContain(vmId);
      expect(securityProfile?.encryptionAtHost).toBeUndefined();
      expect(storageProfile!.osDisk!.managedDisk!.diskEncryptionSet!.id).toBe(diskEncryptionSetId);
    }
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("leaves the set to its owners when it is destroyed, with nothing that uses it", async () => {
    succeeded(await cloud.stack.destroy());

    await clients.compute.diskEncryptionSets.beginDeleteAndWait(theirs, "ours", soon);
  });
});
