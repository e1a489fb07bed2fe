import { randomUUID } from "node:crypto";

import {
  badRequest,
  invalidParameter,
  missingResource,
  operationNotAllowed,
} from "../../azure-error";
import { account } from "../../resources/ids";
import type { Reference, View } from "../../resources/resource";
import type { ResourceType, Right } from "../resource-type";

export type DiskEncryptionSetBody = {
  location: string;
  identity?: { type?: string; principalId?: string; tenantId?: string };
  activeKey?: { keyUrl?: string; sourceVault?: { id?: string } };
  encryptionType?: string;
  rotationToLatestKeyVersionEnabled?: boolean;
};

export const setType = "Microsoft.Compute/diskEncryptionSets";

const customerKey = "EncryptionAtRestWithCustomerKey";
const confidential = "ConfidentialVmEncryptedWithCustomerKey";
const encryptionTypes = [customerKey, "EncryptionAtRestWithPlatformAndCustomerKeys", confidential];

/** A set whose key is taken on trust: there are no vaults here. */
export const diskEncryptionSet: ResourceType<DiskEncryptionSetBody> = {
  token: "azure-native:compute:DiskEncryptionSet",
  type: setType,
  required: ["activeKey.keyUrl", "identity.type"],
  patches: "inputs",
  readOnly: ["identity.principalId", "identity.tenantId"],
  name: /^[A-Za-z0-9_-]{1,80}$/,

  accept({ body, old }) {
    const { encryptionType = old?.body.encryptionType ?? customerKey, identity } = body;
    if (!encryptionTypes.includes(encryptionType)) {
      throw invalidParameter(
        `The value '${encryptionType}' of parameter 'encryptionType' is not one of ${encryptionTypes.join(", ")}.`,
        "encryptionType",
      );
    }
    const hasOwn = identity?.type?.includes("SystemAssigned") === true;
    return {
      body: {
        rotationToLatestKeyVersionEnabled: false,
        ...body,
        encryptionType,
        identity: {
          ...identity,
          ...(hasOwn && {
            principalId: old?.body.identity?.principalId ?? randomUUID(),
            tenantId: account.tenantId,
          }),
        },
      },
    };
  },

  inUse: (id, [first]) =>
    operationNotAllowed(`Disk encryption set ${id.split("/").at(-1)} is used by ${first!.owner}.`),
};

/** What a disk, a snapshot or a machine refers to by naming a set, which is in its region. */
export const referenceToSet = (from: string, set: string | undefined): Reference[] =>
  set === undefined
    ? []
    : [
        {
          ...{ from, owner: from, to: set },
          missing: missingResource(set),
        },
      ];

/** What whoever names a set has to have: azuredisk-csi-driver #2609, of machines openshift-docs #52550. */
export const rightToSet = (set: string | undefined): Right[] =>
  set === undefined ? [] : [{ action: `${setType}/read`, scope: set }];

/** The encryption of a disk that names a set, whose type is the set's. */
export function encryptionBy(
  wanted: { readonly diskEncryptionSetId?: string; readonly type?: string } | undefined,
  view: View,
): { readonly diskEncryptionSetId?: string; readonly type: string } | undefined {
  const { diskEncryptionSetId: id, type } = wanted ?? {};
  const set = id === undefined ? undefined : view.find(id);
  if (set === undefined) return type === undefined ? undefined : { ...wanted, type };
  const { encryptionType = customerKey } = set.body as DiskEncryptionSetBody;
  if (encryptionType === confidential) {
    throw badRequest(`Disk encryption set ${id} is for confidential virtual machines.`);
  }
  if (type !== undefined && type !== encryptionType) {
    throw invalidParameter(
      `The encryption type ${type} is not that of the disk encryption set ${id}, ${encryptionType}.`,
      "encryption.type",
    );
  }
  return { diskEncryptionSetId: id, type: encryptionType };
}
