import { getDiskEncryption } from "../../../components/azure/disk-classes";
import { ArmClient } from "../../../components/azure/resource-manager";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/ids";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { validSettings } from "../../support/sample";

const theirs = `${subscriptionPath}/resourceGroups/theirs`;
const setId = `${theirs}/providers/Microsoft.Compute/diskEncryptionSets/keys`;
const identityId = `${theirs}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/login`;
const location = "westeurope";

const set = {
  location,
  identity: { type: "SystemAssigned" },
  activeKey: { keyUrl: "https://ours.vault.azure.net/keys/disks/1" },
};

interface Scene {
  readonly settings: Partial<typeof validSettings>;
  /** The set as others have made it, if they have. */
  readonly made?: object;
  readonly isRegistered?: boolean;
  /** @default it owns the subscription */
  readonly hasRights?: false;
}

async function answerTo({ settings, made, isRegistered = false, hasRights }: Scene) {
  const { arm } = newArm();
  await arm.put(theirs, { location });
  if (made !== undefined) await arm.put(setId, { ...set, ...made });
  if (isRegistered) await arm.register("Microsoft.Compute/EncryptionAtHost");
  await arm.put(identityId, { location });
  const token = hasRights === false ? tokenOf(arm, identityId) : "me";
  const rest = await serveRest(arm, 0);
  try {
    const client = new ArmClient(`http://127.0.0.1:${rest.port}`, token);
    return await getDiskEncryption({ ...validSettings, ...settings }, { ...account, arm: client });
  } finally {
    await rest.close();
  }
}

it("asks for nothing where the settings want no encryption", async () => {
  const arm = new ArmClient("http://127.0.0.1:1", "token");

  expect(await getDiskEncryption(validSettings, { ...account, arm })).toEqual({ problems: [] });
});

const named = { diskEncryptionSetId: setId };

it.each(["EncryptionAtRestWithCustomerKey", "EncryptionAtRestWithPlatformAndCustomerKeys"])(
  "takes a set of type %s, and has it told to the disk driver",
  async (encryptionType) => {
    expect(await answerTo({ settings: named, made: { encryptionType } })).toEqual({
      set: { id: setId, encryptionType },
      problems: [],
    });
  },
);

it("takes hosts that encrypt where the subscription has the feature", async () => {
  const settings = { encryptionAtHost: true };

  expect(await answerTo({ settings, isRegistered: true })).toEqual({ problems: [] });
});

it.each<[string, Scene, RegExp]>([
  [
    "hosts that encrypt, in a subscription without the feature",
    { settings: { encryptionAtHost: true } },
    /^encryptionAtHost is true, and the feature EncryptionAtHost is NotRegistered in subscription 5ca1ab1e.*az feature register --namespace Microsoft\.Compute --name EncryptionAtHost;.*\(pulumi config rm encryptionAtHost\)$/,
  ],
  [
    "a set that Azure has not",
    { settings: named },
    /^diskEncryptionSetId is .*\/keys, expected a set that Azure has: see az disk-encryption-set list.*\(pulumi config set diskEncryptionSetId ID\)$/,
  ],
  [
    "a set of another region",
    { settings: { ...named, location: "northeurope" }, made: {} },
    /expected a set in northeurope, since .* in one region, and this one is in westeurope/,
  ],
  [
    "a set of another subscription",
    {
      settings: {
        diskEncryptionSetId: setId.replace(account.subscriptionId, validSettings.clusterName),
      },
    },
    /expected a set of subscription 5ca1ab1e.*, since Azure has disks and their set in one subscription/,
  ],
  [
    "a set of confidential machines",
    { settings: named, made: { encryptionType: "ConfidentialVmEncryptedWithCustomerKey" } },
    /encryptionType is ConfidentialVmEncryptedWithCustomerKey: make one with az disk-encryption-set create/,
  ],
  [
    "a set that the login may not read",
    { settings: named, made: {}, hasRights: false },
    /^the login may not read .*\/keys, .*az role assignment create --assignee LOGIN --role Reader --scope \S+\/keys$/,
  ],
])("refuses %s, with what is to be done", async (_, scene, says) => {
  const { set: found, problems } = await answerTo(scene);

  expect(found).toBeUndefined();
  expect(problems).toEqual([expect.stringMatching(says)]);
});

it("says all that is missing at once", async () => {
  const settings = { ...named, encryptionAtHost: true };

  expect((await answerTo({ settings })).problems).toHaveLength(2);
});
