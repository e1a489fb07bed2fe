import {
  diskClasses,
  getDiskEncryption,
  planDiskClasses,
} from "../../../components/azure/disk-classes";
import { ArmClient } from "../../../components/azure/resource-manager";
import type { Sku } from "../../../components/azure/size-offers";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { skusIn } from "../../../tools/local-azure/arm/subscription/offers";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { validSettings } from "../../support/sample";

describe("disk classes", () => {
  const settings = { ...validSettings, zones: ["1", "2", "3"], location: "westeurope" };
  const all = diskClasses(settings.zones).map(({ name }) => name);
  const redundant = ["standard-ssd-zrs", "premium-ssd-zrs"];

  /** What Azure says of a region, with a restriction of some kind of disk. */
  const offered = (location: string, restricted?: string, zones?: readonly string[]) => ({
    skus: (skusIn(location) as Sku[]).map((sku) =>
      sku.name !== restricted
        ? sku
        : {
            ...sku,
            restrictions: [
              {
                type: zones ? "Zone" : "Location",
                reasonCode: "NotAvailableForSubscription",
                restrictionInfo: { locations: [location], ...(zones && { zones }) },
              },
            ],
          },
    ),
  });

  const left = (...args: Parameters<typeof planDiskClasses>) =>
    planDiskClasses(...args).leftOut.map(({ name }) => name);

  const made = (...args: Parameters<typeof planDiskClasses>) =>
    planDiskClasses(...args).made.map(({ name }) => name);

  it("has all StorageClasses where Azure offers all disks", () => {
    expect(made(settings, offered("westeurope"), undefined)).toEqual(all);
  });

  it.each([
    { where: "in a region without zone-redundant disks", region: "centralus", leaves: redundant },
    {
      where: "where this subscription may not have them",
      restricted: "Premium_ZRS",
      leaves: ["premium-ssd-zrs"],
    },
    {
      where: "of a zone that is closed to it",
      restricted: "Premium_LRS",
      zones: ["2"],
      leaves: ["premium-ssd-zone-2"],
    },
  ])("leaves out those of disks that are not offered: $where", (scene) => {
    const { region: location = "westeurope", restricted, zones, leaves } = scene;
    const offers = offered(location, restricted, zones);

    expect(left({ ...settings, location }, offers, undefined)).toEqual(leaves);
  });

  it("takes no class from a cluster that has it, whatever Azure offers now", () => {
    const storageClasses = all.filter((name) => name !== "standard-ssd-zrs");
    const location = "centralus";

    expect(left({ ...settings, location }, offered(location), { storageClasses })).toEqual([
      "standard-ssd-zrs",
    ]);
  });

  it("makes a class that was left out when Azure begins to offer its disks", () => {
    expect(made(settings, offered("westeurope"), { storageClasses: [] })).toEqual(all);
  });

  it("has none where the setting says so", () => {
    expect(made({ ...settings, storageClasses: false }, offered("westeurope"), undefined)).toEqual(
      [],
    );
  });
});

describe("disk encryption", () => {
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
    const token = hasRights === false ? tokenOf(arm, identityId) : undefined;
    return getDiskEncryption({ ...validSettings, ...settings }, await connectionTo(arm, token));
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
      /^the login may not read .*\/keys, .*az role assignment create --assignee LOGIN --role 'Reader' --scope \S+\/keys$/,
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
});
