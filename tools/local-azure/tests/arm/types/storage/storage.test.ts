import { Body } from "../../../../arm/resources/resource";
import { Kind, storage, valid, withChange } from "../../../support/arm/valid-resources";
import {
  createResources,
  ManualClock,
  newArm,
  refusalOf,
  refusedBy,
} from "../../../support/arm/fixture";
import { AzureNative } from "../../../../provider/operations";
import { subject, type } from "../../../support/arm/provider-requests";

it("creates an account with Azure's defaults, and the Blob service in it", async () => {
  const { arm } = newArm();

  await createResources(arm, "container");

  expect(arm.peek(storage(""))).toMatchObject({
    accessTier: "Hot",
    allowBlobPublicAccess: false,
    enableHttpsTrafficOnly: true,
    primaryEndpoints: { blob: "https://zonedbackups.blob.core.windows.net/" },
    sku: { name: "Standard_ZRS", tier: "Standard" },
  });
  expect(arm.peek(storage("/blobServices/default"))).toMatchObject({ name: "default" });
  expect(arm.peek(valid.container[0])).toMatchObject({ publicAccess: "None", name: "etcd" });
});

it.each<[flaw: string, kind: Kind, change: Body, code: RegExp]>([
  ["an account without a kind", "storageAccount", { kind: undefined }, /^InvalidParameter: .*kind/],
  ["a kind that there is not", "storageAccount", { kind: "V3" }, /^InvalidValuesFor.*: kind\.$/],
  [
    "a size that there is not",
    "storageAccount",
    { sku: { name: "Standard_XRS" } },
    /^InvalidValuesForRequestParameters: .*: sku\.name\.$/,
  ],
  ["public access", "container", { publicAccess: "Blob" }, /^PublicAccessNotPermitted/],
])("refuses %s", async (_, kind, change, code) => {
  expect(await refusalOf(kind, change)).toMatch(code);
});

it("lets a container be public where its account does", async () => {
  const { arm } = newArm();
  await createResources(arm, "group");
  const [id, body] = valid.storageAccount;
  await arm.put(id, { ...body, allowBlobPublicAccess: true });

  await arm.put(valid.container[0], { publicAccess: "Blob" });

  expect(arm.peek(valid.container[0])).toMatchObject({ publicAccess: "Blob" });
});

it("keeps what an account and its Blob service are when the account is put once more", async () => {
  const clock = new ManualClock();
  const { arm } = newArm({ clock });
  await createResources(arm, "storageAccount");
  const { creationTime } = arm.peek(storage(""))!;
  const service = storage("/blobServices/default");
  await arm.put(service, { deleteRetentionPolicy: { enabled: true, days: 7 } });
  clock.advance(60);

  await arm.put(...valid.storageAccount);

  expect(arm.peek(storage(""))).toMatchObject({ creationTime });
  expect(arm.peek(service)).toMatchObject({ deleteRetentionPolicy: { days: 7 } });
});

it.each(["ab", "Zoned", "zoned-backups", "a".repeat(25)])(
  "refuses an account named %s",
  async (name) => {
    const { arm } = newArm();
    await createResources(arm, "group");
    const id = storage("").replace("zonedbackups", name);

    expect(await refusedBy(arm.put(id, valid.storageAccount[1]))).toMatch(
      /^AccountNameInvalid: .* between 3 and 24 characters/,
    );
  },
);

it.each(["ab", "Etcd", "etcd--a", "-etcd", "a".repeat(64)])(
  "refuses a container named %s",
  async (name) => {
    const { arm } = newArm();
    await createResources(arm, "storageAccount");

    const id = storage(`/blobServices/default/containers/${name}`);

    expect(await refusedBy(arm.put(id, {}))).toMatch(/^InvalidResourceName/);
  },
);

it("gives a name to one account only, in whatever group", async () => {
  const { arm } = newArm();
  await createResources(arm, "storageAccount");
  const other = valid.group[0].replace(/zoned$/, "other");
  await arm.put(other, valid.group[1]);
  const id = storage("").replace(valid.group[0], other);

  expect(await refusedBy(arm.put(id, valid.storageAccount[1]))).toMatch(
    /^StorageAccountAlreadyTaken: The storage account named zonedbackups is already taken/,
  );
});

it.each<[property: string, change: Body]>([
  ["isHnsEnabled", { isHnsEnabled: true }],
  ["sku.name", { sku: { name: "Premium_ZRS" } }],
])("does not change %s of an account", async (property, change) => {
  const { arm } = newArm();
  await createResources(arm, "storageAccount");

  const refusal = await refusedBy(
    arm.put(valid.storageAccount[0], withChange("storageAccount", change)),
  );

  expect(refusal).toMatch(`PropertyChangeNotAllowed: Changing property '${property}'`);
});

it("keeps the Blob service for as long as its account lives, and no longer", async () => {
  const { arm } = newArm();
  await createResources(arm, "container");
  const service = storage("/blobServices/default");

  expect(await refusedBy(arm.delete(service))).toMatch(/^MethodNotAllowed/);
  await arm.put(valid.storageAccount[0], valid.storageAccount[1]);
  expect(arm.peek(valid.container[0])).toBeDefined();
  await arm.delete(valid.storageAccount[0]);

  expect(arm.list(valid.group[0]).filter(({ id }) => id.startsWith(storage("")))).toEqual([]);
});

it("makes both by azure-native, and assigns a role at a container", async () => {
  const { arm } = newArm();
  await createResources(arm, "group");
  const native = new AzureNative(arm);
  const create = (token: string, inputs: object) =>
    native.create(type(token), { ...subject, inputs: { ...inputs }, preview: false });
  const inAccount = { resourceGroupName: "zoned", accountName: "zonedbackups" };

  const account = await create("storage:StorageAccount", {
    ...inAccount,
    ...valid.storageAccount[1],
  });
  const container = await create("storage:BlobContainer", { ...inAccount, containerName: "etcd" });
  const assignment = await create("authorization:RoleAssignment", {
    ...valid.assignment[1],
    scope: container.id,
    roleAssignmentName: "00000000-0000-4000-8000-000000000001",
  });

  expect(account.id).toBe(storage(""));
  expect(container.id).toBe(valid.container[0]);
  expect(assignment.state["scope"]).toBe(container.id);
});
