import { Readable } from "node:stream";

import type { ResourceManager } from "../arm/resource-manager";
import { subscriptionPath } from "../arm/resources/ids";
import type { StorageAccountBody } from "../arm/types/storage/storage-account";
import type { BlobStore } from "../blobs/store";
import { changesBetween } from "../plugins/protocol/changes";
import type { ResourceProvider } from "../plugins/protocol/protocol";
import { isProperties, isUnknown, type Properties } from "../plugins/protocol/values";

export const blobToken = "azure-native:storage:Blob";

export const blobPath =
  "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Storage/storageAccounts/{accountName}/blobServices/default/containers/{containerName}/blobs/{blobName}";

const required = ["resourceGroupName", "accountName", "containerName", "blobName"] as const;

/**
 * A blob, which is no resource of Resource Manager: azure-native writes it with the account's key, and
 * writes it anew when its content changes.
 */
export function blobProvider(
  arm: ResourceManager,
  store: BlobStore,
): Pick<ResourceProvider, "check" | "diff" | "create" | "read" | "update" | "delete"> {
  const place = (inputs: Properties) => {
    const [group, account, container, name] = required.map((key) => String(inputs[key]));
    const accountId = `${subscriptionPath}/resourceGroups/${group}/providers/Microsoft.Storage/storageAccounts/${account}`;
    const containerId = `${accountId}/blobServices/default/containers/${container}`;
    return { accountId, containerId, name: name!, id: `${containerId}/blobs/${name}` };
  };
  const stateOf = (inputs: Properties): Properties => {
    const { name, accountId } = place(inputs);
    const account = accountId.split("/").at(-1);
    const url = `https://${account}.blob.core.windows.net/${String(inputs["containerName"])}/${name}`;
    return { ...inputs, name, url, metadata: {}, type: inputs["type"] ?? "Block" };
  };
  const write = async (inputs: Properties): Promise<void> => {
    const { accountId, containerId, name } = place(inputs);
    const account = arm.peek(accountId) as StorageAccountBody | undefined;
    if (account === undefined) throw new Error(`the storage account ${accountId} was not found`);
    if (account.allowSharedKeyAccess === false) {
      throw new Error(
        "KeyBasedAuthenticationNotPermitted: Key based authentication is not permitted on this storage account.",
      );
    }
    if (arm.peek(containerId) === undefined) {
      throw new Error("ContainerNotFound: The specified container does not exist.");
    }
    const content = Readable.from([Buffer.from(textOf(inputs["source"]))]);
    await store.putBlock(containerId, name, "b25l", content);
    await store.putBlockList(containerId, name, ["b25l"], {}, String(inputs["contentType"] ?? ""));
  };
  return {
    check: async ({ news }) => ({
      inputs: news,
      failures: required
        .filter((key) => news[key] === undefined)
        .map((key) => ({ property: "", reason: `missing required property '${key}'` })),
    }),
    diff: async ({ olds, news }) => {
      const changes = changesBetween(olds, news, {
        identifierOf: () => undefined,
        replaces: (path) => !/^(contentType|metadata|accessTier)/.test(path),
      });
      return { changes, deleteBeforeReplace: changes.some(({ replaces }) => replaces) };
    },
    create: async ({ inputs, preview }) => {
      if (preview) return { id: "", state: inputs };
      const { id, containerId, name } = place(inputs);
      if (store.find(containerId, name) !== undefined) {
        throw new Error(`cannot create already existing resource '${id}'`);
      }
      await write(inputs);
      return { id, state: stateOf(inputs) };
    },
    read: async ({ id, state, inputs }) => {
      const isImported = Object.keys(inputs).length === 0;
      const known = isImported ? parametersIn(id) : inputs;
      const { containerId, name } = place(known);
      if (store.find(containerId, name) === undefined) return undefined;
      return { id, state: isImported ? stateOf(known) : state, inputs: known };
    },
    update: async ({ news, preview }) => {
      if (!preview) await write(news);
      return stateOf(news);
    },
    delete: async ({ id }) => {
      const [containerId = "", name = ""] = id.split("/blobs/");
      store.remove(containerId, name);
    },
  };
}

/** What a program sets of an id, for an import. */
function parametersIn(id: string): Properties {
  const [, , , , group = "", , , , account = "", , , , container = ""] = id.split("/");
  return {
    ...{ resourceGroupName: group, accountName: account, containerName: container },
    blobName: id.split("/blobs/").slice(1).join("/blobs/"),
  };
}

/** Of an asset of a text, as the engine sends it. */
function textOf(source: Properties[string]): string {
  if (isProperties(source) && !isUnknown(source) && typeof source["text"] === "string")
    return source["text"];
  throw new Error("the local Azure takes a blob's source as a StringAsset alone");
}
