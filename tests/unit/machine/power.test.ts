import { createServer } from "node:http";

import * as pulumi from "@pulumi/pulumi";

import { switchPower } from "../../../components/machine/power";
import { listen } from "../../support/listen";
import { Recorder } from "../../support/record";
import { machine, validSettings } from "../../support/sample";

interface Scene {
  readonly preview?: boolean;
  /** How Azure's operation ends. */
  readonly ends?: object;
}

/** What Azure is asked to do, and why that has failed, if it has. */
async function start({ preview = false, ends = { status: "Succeeded" } }: Scene = {}) {
  const asked: string[] = [];
  const answers = [{ status: "InProgress" }, ends];
  const azure = createServer(({ method, url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    if (pathname === "/subscriptions") {
      return response.end(
        JSON.stringify({ value: [{ subscriptionId: "the-subscription", tenantId: "t" }] }),
      );
    }
    asked.push(`${method} ${pathname}`);
    if (method !== "POST") return response.end(JSON.stringify(answers.shift()));
    const operation = `http://127.0.0.1:${port}/operation`;
    return response.writeHead(202, { "azure-asyncoperation": operation, "retry-after": "0" }).end();
  });
  const port = await listen(azure);
  await Recorder.start({
    preview,
    calls: { "azure-native:authorization:getClientToken": () => ({ token: "local" }) },
  });
  const log = jest.spyOn(pulumi.log, "info").mockImplementation(async () => undefined);
  const settings = { ...validSettings, resourceManagerEndpoint: `http://127.0.0.1:${port}` };
  const error = await switchPower("start", machine, settings).catch(String);
  log.mockRestore();
  azure.closeAllConnections();
  azure.close();
  return { asked, error };
}

it("starts a machine, and waits until Azure has done so", async () => {
  expect(await start()).toEqual({
    asked: [
      `POST /subscriptions/the-subscription/resourceGroups/zoned-test/providers/Microsoft.Compute/virtualMachines/${machine.name}/start`,
      "GET /operation",
      "GET /operation",
    ],
    error: undefined,
  });
});

it("touches no machine in a preview", async () => {
  expect(await start({ preview: true })).toEqual({ asked: [], error: undefined });
});

it("fails with Azure's reason, and with what it means for this machine", async () => {
  const reason = { code: "AllocationFailed", message: "there is no room" };

  const { error } = await start({ ends: { status: "Failed", error: reason } });

  expect(error).toMatch(/AllocationFailed: there is no room\n/);
  expect(error).toContain(machine.name);
});
