import { Readable } from "node:stream";

import type { ResourceManager } from "../arm/resource-manager";
import {
  blobContainer,
  blobDomain,
  storageAccount,
  type StorageAccountBody,
} from "../arm/types/storage";
import type { BlobStore } from "../blobs/store";
import { changesBetween, type ResourceProvider } from "../plugins/protocol/protocol";
import { isProperties, isUnknown, type Properties } from "../plugins/protocol/values";
import { idOf, parametersOf, pathParameters } from "./check";

export const blobToken = "azure-native:storage:Blob";

const separator = "/blobs/";

/**
 * A blob, which is no resource of Resource Manager: azure-native writes it with the account's key, and
 * writes it anew when its content changes.
 */
export function blobProvider(
  arm: ResourceManager,
  store: BlobStore,
): Pick<ResourceProvider, "check" | "diff" | "create" | "read" | "update" | "delete"> {
  const place = (inputs: Properties) => ({
    accountId: idOf(storageAccount, inputs),
    containerId: idOf(blobContainer, inputs),
    name: String(inputs["blobName"]),
  });
  const stateOf = (inputs: Properties): Properties => {
    const { accountName, containerName, blobName: name } = inputs;
    const url = `https://${String(accountName)}.${blobDomain}/${String(containerName)}/${String(name)}`;
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
      failures: pathParameters({ token: blobToken })
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
      const id = idOf({ token: blobToken }, inputs);
      const { containerId, name } = place(inputs);
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
      const { containerId, blobName } = partsOf(id);
      store.remove(containerId, blobName);
    },
  };
}

/** The container of a blob, and its own name, in which slashes may be. */
function partsOf(id: string): { readonly containerId: string; readonly blobName: string } {
  const at = id.indexOf(separator);
  return { containerId: id.slice(0, at), blobName: id.slice(at + separator.length) };
}

/** What a program sets of an id, for an import. */
function parametersIn(id: string): Properties {
  const { containerId, blobName } = partsOf(id);
  return { ...parametersOf(blobContainer, containerId), blobName };
}

/** Of an asset of a text, as the engine sends it. */
function textOf(source: Properties[string]): string {
  if (isProperties(source) && !isUnknown(source) && typeof source["text"] === "string")
    return source["text"];
  throw new Error("the local Azure takes a blob's source as a StringAsset alone");
}
