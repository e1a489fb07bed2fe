import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { azureNamesOf, relay } from "../../../../machines/qemu/network/azure-services";
import { allowHttp, withBlobs } from "../../../support/arm/blobs";
import { createResources, newArm } from "../../../support/arm/fixture";

const curl = (words: string[]) => promisify(execFile)("curl", ["-sSf", ...words]);

it("gives accounts, registries and Entra the names that they have on Azure", async () => {
  const { arm } = newArm();
  await createResources(arm, "registry");

  expect(azureNamesOf(arm.view)).toEqual({
    "login.microsoftonline.com": "198.18.5.1",
    "zonedbackups.blob.core.windows.net": "198.18.2.1",
    "zonedimages.azurecr.io": "198.18.6.1",
  });
});

it("leads machines through a socket to the service, which knows the account by its name", () =>
  withBlobs(async ({ arm, port, grant, token }) => {
    const folder = mkdtempSync(join(tmpdir(), "zoned-relay-"));
    await grant();
    await allowHttp(arm);
    const path = join(folder, "storage.sock");
    const servers: Server[] = [
      await relay({ path }, { host: "127.0.0.1", port }),
      await relay({ host: "127.0.0.1", port: 0 }, { path }),
    ];
    const outer = (servers[1]!.address() as AddressInfo).port;

    const { stdout } = await curl([
      ...["--resolve", `zonedbackups.blob.core.windows.net:${outer}:127.0.0.1`],
      ...["-H", `Authorization: Bearer ${token()}`, "-H", "x-ms-version: 2024-11-04"],
      `http://zonedbackups.blob.core.windows.net:${outer}/etcd?restype=container&comp=list`,
    ]);

    servers.forEach((server) => server.close());
    rmSync(folder, { recursive: true });
    expect(stdout).toContain('ContainerName="etcd"');
  }));
