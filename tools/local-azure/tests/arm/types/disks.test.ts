import type { Body } from "../../../arm/resources/resource";
import {
  type Answer,
  createResources,
  itAnswers,
  itLimits,
  itNeverChanges,
  itRefuses,
  itShows,
  newArm,
  power,
  put,
  remove,
  taken,
} from "../../support/arm/fixture";
import {
  compute,
  group,
  type Kind,
  storage,
  valid,
  withChange,
} from "../../support/arm/valid-resources";

describe("disks", () => {
  const [diskId] = valid.disk;
  itNeverChanges("disk", [
    [{ zones: ["2"] }, "PropertyChangeNotAllowed: Changing property 'zones'"],
    [
      { "creationData.createOption": "Copy" },
      "PropertyChangeNotAllowed: .*creationData.createOption",
    ],
    [{ diskSizeGB: 4 }, "OperationNotAllowed: Disk size can only be increased"],
  ]);
  const diskOf = (change: Body) => put(`${diskId}-2`, withChange("disk", change));
  const copied = (id: string, snapshotId: string) =>
    put(id, {
      location: "westeurope",
      zones: ["1"],
      creationData: { createOption: "Copy", sourceResourceId: snapshotId },
    });
  const inUs = (name: string) => diskOf({ location: "centralus", sku: { name }, zones: undefined });
  itAnswers("disk", [
    ["a copy of no snapshot", "NotFound", copied(`${diskId}-2`, compute("snapshots/none"))],
    [
      "a copy smaller than its source",
      "OperationNotAllowed: .* 4 GB is smaller .* 8 GB",
      diskOf({
        ...{ creationData: { createOption: "Copy", sourceResourceId: diskId }, diskSizeGB: 4 },
      }),
    ],
    ["a disk as a copy", "PropertyChangeNotAllowed", copied(diskId, compute("snapshots/none"))],
    [
      "a disk of all zones in one",
      "OperationNotAllowed: .*StandardSSD_ZRS.* availability zone",
      diskOf({ sku: { name: "StandardSSD_ZRS" } }),
    ],
    ["a disk of all zones", taken, diskOf({ sku: { name: "StandardSSD_ZRS" }, zones: undefined })],
    // Which has no zones.
    ["a disk of all zones in centralus", "InvalidParameter: SKU Premium_ZRS", inUs("Premium_ZRS")],
    ["another disk in centralus", taken, inUs("Premium_LRS")],
  ]);

  const [setId] = valid.set;
  const [machineId] = valid.machine;
  const other = compute("diskEncryptionSets/other");
  const inMachine = "storageProfile.osDisk.managedDisk.diskEncryptionSet";

  itRefuses("set", [
    [{ location: "nowhere" }, "LocationNotAvailableForResourceType"],
    [{ activeKey: undefined }, "InvalidParameter: .*activeKey"],
    [{ "activeKey.keyUrl": undefined }, "InvalidParameter: .*activeKey.keyUrl"],
    [{ identity: undefined }, "InvalidParameter: .*identity"],
  ]);

  const madeOther = (change: Body = {}) => put(other, withChange("set", change));
  const diskBy = (set: string, more: object = {}) =>
    put(diskId, withChange("disk", { encryption: { diskEncryptionSetId: set, ...more } }));
  const machineBy = (set: string) =>
    put(machineId, withChange("machine", { [inMachine]: { id: set } }));
  const osDisk = compute("disks/cp-1-os");
  const osDiskBy = (diskEncryptionSetId: string) =>
    put(osDisk, {
      ...{ location: "westeurope", zones: ["1"], encryption: { diskEncryptionSetId } },
      creationData: { createOption: "FromImage" },
    });
  const snapshot = compute("snapshots/of-data");
  const snapshotMade = put(snapshot, {
    location: "westeurope",
    creationData: { createOption: "Copy", sourceResourceId: diskId },
  });

  const byPlatformToo = "EncryptionAtRestWithPlatformAndCustomerKeys";
  const confidential = { encryptionType: "ConfidentialVmEncryptedWithCustomerKey" };
  const keys = `${group}-keys`;
  const refusedSets: readonly (readonly [string, string, Body | undefined])[] = [
    ["that is not there", "NotFound: Resource .*other not found", undefined],
    ["of another region", "NotFound: Resource .*other not found", { location: "northeurope" }],
    ["of confidential machines", "BadRequest: .*other is for confidential", confidential],
  ];
  const last: Kind = "nic";
  itAnswers(last, [
    ...refusedSets.flatMap(([which, answer, change]): Answer[] =>
      [diskBy(other), machineBy(other)].map((request, index) => [
        `${["a disk", "a machine's disk"][index]} by a set ${which}`,
        answer,
        ...(change === undefined ? [] : [madeOther(change)]),
        request,
      ]),
    ),
    [
      "a disk in another way than its set's",
      "InvalidParameter: The encryption type .*PlatformAndCustomerKeys is not that of .*other",
      madeOther(),
      diskBy(other, { type: byPlatformToo }),
    ],
    [
      "another set of a machine",
      "PropertyChangeNotAllowed: .*osDisk\\.managedDisk\\.diskEncryptionSet",
      madeOther(),
      machineBy(setId),
      machineBy(other),
    ],
    [
      "another set of its disk while it runs",
      "OperationNotAllowed: .*deallocated",
      madeOther(),
      machineBy(setId),
      osDiskBy(other),
    ],
    [
      "another set of its disk while it is deallocated",
      taken,
      madeOther(),
      machineBy(setId),
      power(machineId, "deallocate"),
      osDiskBy(other),
    ],
    [
      "a set of another group",
      taken,
      put(keys, { location: "westeurope" }),
      put(setId.replace(group, keys), valid.set[1]),
      diskBy(setId.replace(group, keys)),
    ],
    ...[[diskBy(other)], [diskBy(other), snapshotMade, remove(diskId)], [machineBy(other)]].map(
      (use, index): Answer => [
        `the end of a set of ${["a disk", "a snapshot", "a machine"][index]}`,
        "OperationNotAllowed: .*other is used by ",
        madeOther(),
        ...use,
        remove(other),
      ],
    ),
    [
      "the end of a set of nobody",
      taken,
      madeOther(),
      diskBy(other),
      remove(diskId),
      remove(other),
    ],
  ]);

  const encryption = { diskEncryptionSetId: other, type: byPlatformToo };
  const made = madeOther({ encryptionType: byPlatformToo });
  itShows(last, [
    [
      "a set's identity, and the customer's key unless it is said otherwise",
      setId,
      {
        identity: { type: "SystemAssigned", principalId: expect.any(String) },
        encryptionType: "EncryptionAtRestWithCustomerKey",
      },
    ],
    ["Azure's keys of a disk", diskId, { encryption: { type: "EncryptionAtRestWithPlatformKey" } }],
    ["a set of a disk", diskId, { encryption }, made, diskBy(other)],
    ["a set of a disk's snapshot", snapshot, { encryption }, made, diskBy(other), snapshotMade],
    ["a set of a machine's disk", osDisk, { encryption }, made, machineBy(other)],
  ]);

  it("keeps a set's identity, to which roles are assigned", async () => {
    const { arm } = newArm();
    await createResources(arm, "set");
    const { identity } = arm.peek(setId)!;

    await arm.put(setId, withChange("set", { rotationToLatestKeyVersionEnabled: true }));

    expect(arm.peek(setId)).toMatchObject({ identity, rotationToLatestKeyVersionEnabled: true });
  });
});

describe("storage", () => {
  const [account, accountBody] = valid.storageAccount;
  const [container] = valid.container;
  const service = storage("/blobServices/default");
  const elsewhere = `${group}-2`;
  const inElsewhere = (id: string) => id.replace(group, elsewhere);

  itRefuses("storageAccount", [[{ kind: undefined }, "InvalidParameter: .*kind"]]);
  itRefuses("container", [[{ publicAccess: "Blob" }, "PublicAccessNotPermitted"]]);
  itNeverChanges("storageAccount", [
    [{ isHnsEnabled: true }, "PropertyChangeNotAllowed: .*'isHnsEnabled'"],
    [{ "sku.name": "Premium_ZRS" }, "PropertyChangeNotAllowed: .*'sku.name'"],
  ]);
  itAnswers("storageAccount", [
    ...["ab", "Zoned", "zoned-backups", "a".repeat(25)].map((name): Answer => [
      `an account ${name}`,
      "AccountNameInvalid: .* between 3 and 24 characters",
      put(account.replace("zonedbackups", name), accountBody),
    ]),
    ...["ab", "Etcd", "etcd--a", "-etcd", "a".repeat(64)].map((name): Answer => [
      `a container ${name}`,
      "InvalidResourceName",
      put(`${service}/containers/${name}`, {}),
    ]),
    [
      "an account of a name that another group's has",
      "StorageAccountAlreadyTaken: .*zonedbackups",
      put(elsewhere, valid.group[1]),
      put(inElsewhere(account), accountBody),
    ],
    ["the end of a Blob service", "MethodNotAllowed", remove(service)],
  ]);
  itShows("container", [
    [
      "Azure's defaults of an account",
      account,
      {
        accessTier: "Hot",
        allowBlobPublicAccess: false,
        enableHttpsTrafficOnly: true,
        primaryEndpoints: { blob: "https://zonedbackups.blob.core.windows.net/" },
        sku: { name: "Standard_ZRS", tier: "Standard" },
      },
    ],
    ["a Blob service that comes with its account", service, { name: "default" }],
    [
      "what a Blob service was told, after its account was put once more",
      service,
      { deleteRetentionPolicy: { days: 7 } },
      put(service, { deleteRetentionPolicy: { enabled: true, days: 7 } }),
      put(account, accountBody),
    ],
    ["a container is private", container, { publicAccess: "None", name: "etcd" }],
    [
      "a container is public where its account lets it",
      container,
      { publicAccess: "Blob" },
      put(account, { ...accountBody, allowBlobPublicAccess: true }),
      put(container, { publicAccess: "Blob" }),
    ],
    ["nothing of an account that is gone", container, undefined, remove(account)],
  ]);

  const [registry] = valid.registry;
  const abac = "AbacRepositoryPermissions";
  itRefuses("registry", [
    [{ location: "nowhere" }, "LocationNotAvailableForResourceType"],
    [{ sku: undefined }, "InvalidParameter: .*sku"],
    [{ "sku.name": undefined }, "InvalidParameter: .*sku.name"],
  ]);
  itLimits("registry", [
    ["sku.name", ["Basic", "Standard"], ["Classic"], "InvalidParameter: .*sku.name"],
    [
      "roleAssignmentMode",
      [abac, "LegacyRegistryPermissions"],
      ["rbac-abac"],
      "InvalidParameter: .*roleAssignmentMode",
    ],
  ]);
  itAnswers("registry", [
    [
      "a registry of a name that another group's has",
      "AlreadyInUse: .*ZonedImages\\.azurecr\\.io",
      put(elsewhere, valid.group[1]),
      put(inElsewhere(registry).replace("zonedimages", "ZonedImages"), valid.registry[1]),
    ],
  ]);
  itShows("registry", [
    [
      "a registry by its name, and how its roles count",
      registry,
      { loginServer: "zonedimages.azurecr.io", roleAssignmentMode: abac, adminUserEnabled: true },
      put(registry, withChange("registry", { roleAssignmentMode: abac })),
      put(registry, withChange("registry", { adminUserEnabled: true })),
    ],
  ]);
});
