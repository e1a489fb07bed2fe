import { readFileSync } from "node:fs";

import { ResourceManager } from "../arm/resource-manager";
import { account } from "../arm/resources/resource";
import { ResourceType } from "../arm/types/resource-type";
import { typeOfToken } from "../arm/types/types";
import { loginToken } from "../machines/identity-token";
import type { EngineLog, Plugin, ResourceProvider, Served } from "../plugins/protocol/protocol";
import { serve } from "../plugins/protocol/serve";
import type { BlobStore } from "../blobs/store";
import { blobProvider, blobToken } from "./blob";
import { check, diff } from "./check";
import { AzureNative } from "./operations";

const { version } = JSON.parse(
  readFileSync(require.resolve("@pulumi/azure-native/package.json"), "utf8"),
) as { version: string };

/** Serves the azure-native provider for `PULUMI_DEBUG_PROVIDERS`. Port 0 takes any free one. */
export const serveAzureNative = (
  arm: ResourceManager,
  blobs: BlobStore,
  port: number,
): Promise<Served> => serve(plugin(arm, blobs), port);

const plugin = (arm: ResourceManager, blobs: BlobStore): Plugin => ({
  version,
  connect: (engine) => provider(arm, blobs, engine),
});

function provider(arm: ResourceManager, blobs: BlobStore, engine: EngineLog): ResourceProvider {
  const blob = blobProvider(arm, blobs);
  const isBlob = ({ type }: { readonly type: string }): boolean => type === blobToken;
  const operations = new AzureNative(arm, (urn, message) => engine.warn(urn, message));
  let location: string | undefined;
  return {
    configure: async (config) => {
      location = typeof config["location"] === "string" ? config["location"] : undefined;
    },
    check: (request) =>
      isBlob(request)
        ? blob.check(request)
        : check(typeFor(request.type), request, { arm, location }),
    diff: (request) =>
      isBlob(request) ? blob.diff(request) : diff(typeFor(request.type), request),
    create: (request) =>
      isBlob(request) ? blob.create(request) : operations.create(typeFor(request.type), request),
    read: (request) =>
      isBlob(request) ? blob.read(request) : operations.read(typeFor(request.type), request),
    update: (request) =>
      isBlob(request) ? blob.update(request) : operations.update(typeFor(request.type), request),
    delete: (request) => (isBlob(request) ? blob.delete(request) : operations.delete(request)),
    invoke: async (token, { endpoint }) => {
      switch (token) {
        case "azure-native:authorization:getClientConfig":
          return { ...account };
        case "azure-native:authorization:getClientToken":
          return { token: loginToken(typeof endpoint === "string" ? endpoint : undefined) };
        default:
          throw new Error(
            `the local Azure does not support the function ${token}; it supports getClientConfig and getClientToken of authorization`,
          );
      }
    },
  };
}

function typeFor(token: string): ResourceType {
  const type = typeOfToken(token);
  if (type !== undefined) return type;
  throw new Error(
    `the local Azure does not support ${token}; add its type under tools/local-azure/arm/types`,
  );
}
