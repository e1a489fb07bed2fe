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
/** Where others keep images. */
const theirs = "images";
const registryOf = (name: string): string =>
  `${subscriptionPath}/resourceGroups/${theirs}/providers/Microsoft.ContainerRegistry/registries/${name}`;
const registries = ["ourimages", "teamimages"].map(registryOf);
const kubelets = "zoned-local-kubelet";
const machines = ["zoned-local-cp-1", "zoned-local-workers-1"];

const settings = { ...fewAddOns, workerPools: [{ name: "workers", count: 1 }], registries };

/** A cluster that pulls from others' registries, from its first update to its end. */
describe("a cluster with registries", () => {
  let cloud: LocalCloud;
  let clients: Clients;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    clients = cloud.sdks();
  });
  afterAll(() => cloud?.stop());

  const shown = () =>
    Promise.all(machines.map((name) => clients.compute.virtualMachines.get("zoned-local", name)));

  const identitiesOf = async () =>
    (await shown()).map(({ identity }) =>
      Object.keys(identity?.userAssignedIdentities ?? {}).map((id) => id.split("/").at(-1)),
    );

  const rolesAt = async (scope: string): Promise<string[]> => {
    const assigned: string[] = [];
    for await (const one of clients.authorization.roleAssignments.listForScope(scope)) {
      if (one.scope === scope) assigned.push(one.roleDefinitionId!.split("/").at(-1)!);
    }
    return assigned;
  };

  it("is refused while Azure has none of them, each by name", async () => {
    const text = refused(await cloud.stack.preview());

    for (const [index, id] of registries.entries()) {
      expect(text).toContain(`registries[${index}] is ${id}, expected a registry that Azure has`);
    }
  });

  it("gives all machines one identity more, with the role that counts at each registry", async () => {
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

    asPlanned(await cloud.stack.up());

    expect(await identitiesOf()).toEqual([["zoned-local", kubelets], [kubelets]]);
    expect(await Promise.all(registries.map(rolesAt))).toEqual([
      ["7f951dda-4ed3-4680-a7ca-43fe172d538d"],
      ["b93aa761-3e63-49ed-ac28-beffa264f7ac"],
    ]);
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("has each kubelet start anew for another list, and replaces no machine", async () => {
    const before = (await shown()).map(({ vmId }) => vmId);
    await cloud.stack.configure({ ...settings, registries: registries.slice(1) });

    const { stdout } = asPlanned(await cloud.stack.up());

    for (const name of machines) {
      expect(stdout).toContain(`this change would reconfigure ${name}`);
    }
    expect((await shown()).map(({ vmId }) => vmId)).toEqual(before);
    expect(await rolesAt(registries[0]!)).toEqual([]);
  });

  it("takes the identity away with the last of them, and no other", async () => {
    await cloud.stack.configure({ ...settings, registries: [] });

    asPlanned(await cloud.stack.up());

    expect(await identitiesOf()).toEqual([["zoned-local"], []]);
    const names: (string | undefined)[] = [];
    for await (const { name } of clients.identities.userAssignedIdentities.listByResourceGroup(
      "zoned-local",
    )) {
      names.push(name);
    }
    expect(names).toEqual(["zoned-local"]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("leaves the registries to their owners when it is destroyed", async () => {
    succeeded(await cloud.stack.destroy());

    for (const id of registries) {
      expect(await clients.resources.resources.getById(id, "2025-11-01")).toMatchObject({ id });
    }
  });
});
