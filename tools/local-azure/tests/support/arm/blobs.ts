import { readdirSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";

import type { TokenCredential } from "@azure/core-auth";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";

import { testFolder } from "../../../../../tests/support/test-folder";
import { wallClock } from "../../../arm/durations";
import { certificateIn } from "../../../arm/rest/listener";
import { BlobService } from "../../../blobs/blob-service";
import { BlobStore } from "../../../blobs/store";
import { issueToken, type MachineIdentity } from "../../../machines/identity-token";
import { createResources, newArm } from "./fixture";
import { group, roleDefinition, storage, valid } from "./valid-resources";

const contributor = roleDefinition("ba92f5b4-2d11-453d-a403-e96b0029c9fe");

const assignmentAt = (scope: string): string =>
  `${scope}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000005`;

const folder = testFolder();

interface Downloaded {
  readonly content: Buffer;
  readonly metadata?: Record<string, string>;
}

/**
 * A Resource Manager with a container, its Blob service, and an identity without any role yet; `grant` gives it
 * one.
 */
export async function withBlobs<T>(
  use: (built: {
    readonly arm: ReturnType<typeof newArm>["arm"];
    readonly port: number;
    /** Where its containers are, for curl. */
    readonly endpoint: string;
    readonly stateFolder: string;
    /** What is on the disk of all content. */
    readonly blockFiles: () => string[];
    readonly identity: MachineIdentity;
    readonly token: (resource?: string, issued?: Date) => string;
    readonly grant: (scope?: string, role?: string) => Promise<unknown>;
    readonly revoke: (scope: string) => Promise<unknown>;
    readonly client: (credential?: TokenCredential) => ContainerClient;
    /** As snapshots are put: a block, and then the list of all. */
    readonly upload: (
      name: string,
      content: string | Buffer,
      metadata?: Record<string, string>,
    ) => Promise<unknown>;
    readonly download: (name: string) => Promise<Downloaded>;
  }) => Promise<T>,
  stateFolder = testFolder(),
): Promise<T> {
  const store = new BlobStore(join(stateFolder, "blobs"), () => wallClock.now());
  const { arm } = newArm({
    removed: ({ id, type }) => type.endsWith("/containers") && store.removeContainer(id),
  });
  await createResources(arm, "container");
  const resourceId = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/zoned`;
  const { body } = await arm.put(resourceId, { location: "westeurope" });
  const identity = {
    resourceId,
    principalId: String(body["principalId"]),
    clientId: String(body["clientId"]),
  };
  const certificate = await certificateIn(folder);
  const server = await new BlobService(arm, store).serve(0, certificate);
  const token = (resource = "https://storage.azure.com/", issued = new Date()) => {
    const query = new URLSearchParams({ "api-version": "2018-02-01", resource });
    return (issueToken(query, [identity], issued).body as { access_token: string }).access_token;
  };
  const expiresOnTimestamp = Date.now() + 3_600_000;
  const own: TokenCredential = { getToken: async () => ({ token: token(), expiresOnTimestamp }) };
  const options = { tlsOptions: { ca: certificate.authority }, retryOptions: { maxTries: 1 } };
  const authority = `127.0.0.1:${server.port}/zonedbackups`;
  const client = (credential = own) =>
    new BlobServiceClient(`https://${authority}`, credential, options).getContainerClient("etcd");
  try {
    return await use({
      arm,
      port: server.port,
      endpoint: `http://${authority}`,
      stateFolder,
      blockFiles: () =>
        readdirSync(join(stateFolder, "blobs"), { recursive: true, encoding: "utf8" }).filter(
          (file) => file.endsWith(".block"),
        ),
      identity,
      token,
      grant: (scope = valid.container[0], role = contributor) =>
        arm.put(assignmentAt(scope), {
          principalId: identity.principalId,
          roleDefinitionId: role,
        }),
      revoke: (scope) => arm.delete(assignmentAt(scope)),
      client,
      upload: async (name, content, metadata) => {
        const blob = client().getBlockBlobClient(name);
        await blob.stageBlock("AAAA", content, Buffer.byteLength(content));
        return await blob.commitBlockList(["AAAA"], { metadata });
      },
      download: async (name) => {
        const { readableStreamBody, metadata } = await client().getBlobClient(name).download();
        return { content: await buffer(readableStreamBody!), metadata };
      },
    });
  } finally {
    await server.close();
  }
}

/** Makes the account take plain HTTP, as curl in these tests speaks it. */
export const allowHttp = (arm: ReturnType<typeof newArm>["arm"]): Promise<unknown> =>
  arm.patch(storage(""), { enableHttpsTrafficOnly: false });
