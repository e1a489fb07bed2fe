import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { type Clients, soon } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

const location = "southeastasia";
/** Where others keep images and keys. */
const theirs = "theirs";
const inTheirs = (path: string): string =>
  `${subscriptionPath}/resourceGroups/${theirs}/providers/${path}`;
const registries = ["ourimages", "teamimages"].map((name) =>
  inTheirs(`Microsoft.ContainerRegistry/registries/${name}`),
);
const diskEncryptionSetId = inTheirs("Microsoft.Compute/diskEncryptionSets/ours");
const encryptionType = "EncryptionAtRestWithPlatformAndCustomerKeys";
const kubelets = "zoned-local-kubelet";
const names = ["cp-1", "cp-2", "cp-3", "workers-1"].map((name) => `zoned-local-${name}`);

/** Three control planes, of which one after another can be replaced. */
const settings = {
  ...fewAddOns,
  storageClasses: true,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }],
  registries,
  encryptionAtHost: true,
  diskEncryptionSetId,
};

interface StorageClass {
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * A cluster that pulls from others' registries, and whose disks are encrypted by others' key and on its hosts, from its
 * first update to its end.
 */
describe("a cluster with registries, a disk encryption set and hosts that encrypt", () => {
  let cloud: LocalCloud;
  let clients: Clients;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", { ...settings, controlPlaneSize: "Standard_A2_v2" });
    clients = cloud.sdks();
  });
  afterAll(() => cloud?.stop());

  const machines = () =>
    Promise.all(names.map((name) => clients.compute.virtualMachines.get("zoned-local", name)));

  const vmIds = async () => (await machines()).map(({ vmId }) => vmId);

  const identitiesOf = async () =>
    (await machines()).map(({ identity }) =>
      Object.keys(identity?.userAssignedIdentities ?? {}).map((id) => id.split("/").at(-1)),
    );

  /** What is assigned at a scope itself, to this principal or to anybody. */
  async function rolesAt(scope: string, to?: string): Promise<string[]> {
    const assigned: string[] = [];
    for await (const one of clients.authorization.roleAssignments.listForScope(scope)) {
      if (one.scope === scope && (to ?? one.principalId) === one.principalId)
        assigned.push(one.roleDefinitionId!.split("/").at(-1)!);
    }
    return assigned;
  }

  it("is refused without registries, feature, set and a size that can do it, all at once", async () => {
    const text = refused(await cloud.stack.preview());

    for (const [index, id] of registries.entries()) {
      expect(text).toContain(`registries[${index}] is ${id}, expected a registry that Azure has`);
    }
    expect(text).toMatch(/feature EncryptionAtHost is NotRegistered .*az feature register/);
    expect(text).toMatch(/diskEncryptionSetId is .*\/ours, expected a set that Azure has/);
    for (const name of names.slice(0, 3)) {
      expect(text).toMatch(
        new RegExp(`${name}: size Standard_A2_v2 has no encryption at host, .*controlPlaneSize`),
      );
    }
  });

  it("is made with both on every machine and its disk, and with the set in every StorageClass", async () => {
    await cloud.register("EncryptionAtHost");
    await clients.resources.resourceGroups.createOrUpdate(theirs, { location });
    const modes = ["LegacyRegistryPermissions", "AbacRepositoryPermissions"];
    for (const [index, id] of registries.entries()) {
      await clients.resources.resources.beginCreateOrUpdateByIdAndWait(
        id,
        "2025-11-01",
        {
          location,
          sku: { name: "Basic" },
          properties: { roleAssignmentMode: modes[index] },
        },
        soon,
      );
    }
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

    expect(await rolesAt(diskEncryptionSetId, principalId)).toEqual([
      "acdd72a7-3385-48ef-bd42-f606fba81ae7",
    ]);
  });

  it("gives all machines one identity more, with the role that counts at each registry", async () => {
    const ofControlPlanes = ["zoned-local", kubelets];

    expect(await identitiesOf()).toEqual([...Array(3).fill(ofControlPlanes), [kubelets]]);
    expect(await Promise.all(registries.map((id) => rolesAt(id)))).toEqual([
      ["7f951dda-4ed3-4680-a7ca-43fe172d538d"],
      ["b93aa761-3e63-49ed-ac28-beffa264f7ac"],
    ]);
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("has each kubelet start anew for another list of registries, and replaces no machine", async () => {
    const before = await vmIds();
    await cloud.stack.configure({ ...settings, registries: registries.slice(1) });

    const { stdout } = asPlanned(await cloud.stack.up());

    for (const name of names) {
      expect(stdout).toContain(`this change would reconfigure ${name}`);
    }
    expect(await vmIds()).toEqual(before);
    expect(await rolesAt(registries[0]!)).toEqual([]);
  });

  it("takes the identity away with the last of them, and no other", async () => {
    await cloud.stack.configure({ ...settings, registries: [] });

    asPlanned(await cloud.stack.up());

    expect(await identitiesOf()).toEqual([...Array(3).fill(["zoned-local"]), []]);
    const left: (string | undefined)[] = [];
    for await (const { name } of clients.identities.userAssignedIdentities.listByResourceGroup(
      "zoned-local",
    )) {
      left.push(name);
    }
    expect(left).toEqual(["zoned-local"]);
  });

  it("has every machine made anew, each with what the settings say then, where they say otherwise", async () => {
    const before = await vmIds();
    await cloud.stack.configure({ ...settings, registries: [], encryptionAtHost: false });

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

  it("leaves registries and set to their owners when it is destroyed, with nothing that uses the set", async () => {
    succeeded(await cloud.stack.destroy());

    for (const id of registries) {
      expect(await clients.resources.resources.getById(id, "2025-11-01")).toMatchObject({ id });
    }
    await clients.compute.diskEncryptionSets.beginDeleteAndWait(theirs, "ours", soon);
  });
});
