import {
  type Answer,
  itAnswers,
  itLimits,
  itNeverChanges,
  itRefuses,
  itShows,
  put,
  remove,
} from "../../support/arm/input-tables";
import { group, storage, valid, withChange } from "../../support/arm/valid-resources";

const [account, accountBody] = valid.storageAccount;
const [container] = valid.container;
const service = storage("/blobServices/default");
const elsewhere = `${group}-2`;
const inElsewhere = (id: string) => id.replace(group, elsewhere);

itRefuses("storageAccount", [
  [{ kind: undefined }, "InvalidParameter: .*kind"],
  [{ kind: "V3" }, "InvalidValuesForRequestParameters: .*kind"],
  [{ "sku.name": "Standard_XRS" }, "InvalidValuesForRequestParameters: .*sku\\.name"],
]);
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
