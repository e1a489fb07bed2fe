import { AzureNative } from "../../../../provider/operations";
import { createResources, ManualClock, newArm, refusedBy } from "../../../support/arm/fixture";
import { itNeverChanges, itRefuses } from "../../../support/arm/input-tables";
import { storage, valid } from "../../../support/arm/valid-resources";
import { subject, type } from "../../../support/arm/provider-requests";

itRefuses("storageAccount", [
  [{ kind: undefined }, "InvalidParameter: .*kind"],
  [{ kind: "V3" }, "InvalidValuesForRequestParameters: .*kind"],
  [{ "sku.name": "Standard_XRS" }, "InvalidValuesForRequestParameters: .*sku\\.name"],
]);
itRefuses("container", [[{ publicAccess: "Blob" }, "PublicAccessNotPermitted"]]);
itNeverChanges("storageAccount", [
  [{ isHnsEnabled: true }, "PropertyChangeNotAllowed: Changing property 'isHnsEnabled'"],
  [{ "sku.name": "Premium_ZRS" }, "PropertyChangeNotAllowed: Changing property 'sku.name'"],
]);

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

it("refuses names that no account or container may have", async () => {
  const { arm } = newArm();
  await createResources(arm, "storageAccount");
  const [account, body] = valid.storageAccount;
  const container = (name: string) => storage(`/blobServices/default/containers/${name}`);

  for (const name of ["ab", "Zoned", "zoned-backups", "a".repeat(25)]) {
    expect(await refusedBy(arm.put(account.replace("zonedbackups", name), body))).toMatch(
      /^AccountNameInvalid: .* between 3 and 24 characters/,
    );
  }
  for (const name of ["ab", "Etcd", "etcd--a", "-etcd", "a".repeat(64)]) {
    expect(await refusedBy(arm.put(container(name), {}))).toMatch(/^InvalidResourceName/);
  }
});

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
