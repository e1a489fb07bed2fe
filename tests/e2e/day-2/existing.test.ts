import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/ids";
import type { Clients } from "../../../tools/local-azure/tests/support/arm/sdk-clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(900_000);

const location = "westeurope";
/** Where others have what the cluster uses. */
const theirs = "theirs";
const contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const identityId = `${subscriptionPath}/resourceGroups/${theirs}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;

/** A cluster on what others have made, from its first update to its end. */
describe("a cluster on what exists already", () => {
  let cloud: LocalCloud;
  let clients: Clients;
  let before: Record<string, unknown>;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", { ...fewAddOns, cloudProvider: true, identityId });
    clients = cloud.sdks();
    await clients.resources.resourceGroups.createOrUpdate(theirs, { location });
    // Another region, which an identity serves as well.
    await clients.identities.userAssignedIdentities.createOrUpdate(theirs, "kubernetes", {
      location: "northeurope",
    });
  });
  afterAll(() => cloud?.stop());

  const identity = () => clients.identities.userAssignedIdentities.get(theirs, "kubernetes");

  /** All that Azure has, by its id. */
  async function everything(): Promise<Record<string, unknown>> {
    const ids: string[] = [];
    const { resources, authorization } = clients;
    for await (const { id } of resources.resourceGroups.list()) ids.push(id!);
    for await (const { id } of resources.resources.list()) ids.push(id!);
    for await (const { id } of authorization.roleAssignments.listForSubscription()) ids.push(id!);
    for await (const { id } of authorization.roleDefinitions.list(subscriptionPath)) ids.push(id!);
    const read = ids.map(async (id) => [id, await cloud.read(id)] as const);
    return Object.fromEntries(await Promise.all(read));
  }

  it("is previewed with the rights that the identity lacks, and the commands that give them", async () => {
    const { principalId } = await identity();

    const { diagnostics } = succeeded(await cloud.stack.preview());

    expect(diagnostics.join("\n")).toMatch(
      new RegExp(
        `kubernetes lacks rights.*--assignee-object-id ${principalId} .*--role 'Network Contributor' --scope \\S+/zoned-local\\b`,
        "s",
      ),
    );
  });

  it("is made without an identity, a role or an assignment of its own", async () => {
    const { principalId } = await identity();
    await clients.authorization.roleAssignments.create(
      subscriptionPath,
      "5c1b0c7e-3f0a-4a53-9d0e-2f6c3b1a7e88",
      {
        principalId: principalId!,
        principalType: "ServicePrincipal",
        roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${contributor}`,
      },
    );
    before = await everything();

    const { diagnostics } = asPlanned(await cloud.stack.up());

    expect(diagnostics.join("\n")).not.toContain("lacks rights");
    const added = Object.keys(await everything()).filter((id) => !(id in before));
    expect(added.length).toBeGreaterThan(10);
    expect(added.filter((id) => /ManagedIdentity|Authorization/i.test(id))).toEqual([]);
  });

  it("has that identity on its control plane, and in azure.json", async () => {
    const { clientId } = await identity();
    const { identity: ofMachine } = await clients.compute.virtualMachines.get(
      "zoned-local",
      "zoned-local-cp-1",
    );
    expect(Object.keys(ofMachine!.userAssignedIdentities!)).toEqual([identityId]);

    const secret = await cloud.kubectl(
      ...["get", "secret", "azure-cloud-provider", "--namespace", "kube-system"],
      ...["--output", "jsonpath={.data.cloud-config}"],
    );
    expect(JSON.parse(Buffer.from(secret, "base64").toString())).toMatchObject({
      useManagedIdentityExtension: true,
      userAssignedIdentityID: clientId,
      tenantId: account.tenantId,
    });
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("leaves exactly what was there before, when it is destroyed", async () => {
    succeeded(await cloud.stack.destroy());

    expect(await everything()).toEqual(before);
  });
});
