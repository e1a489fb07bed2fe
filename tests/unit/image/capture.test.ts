import { createServer } from "node:http";

import { captureWhenOff } from "../../../components/image/capture";
import { listen } from "../../support/listen";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

/** What Azure is asked to do with a machine of which it shows this. */
async function asked(code: string, preview = false): Promise<string[]> {
  const actions: string[] = [];
  const azure = createServer(({ method, url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    if (method === "POST") actions.push(pathname);
    const value = [{ subscriptionId: "the-subscription", tenantId: "t" }];
    response.end(JSON.stringify({ value, statuses: [{ code }] }));
  });
  const resourceManagerEndpoint = `http://127.0.0.1:${await listen(azure)}`;
  await Recorder.start({
    preview,
    calls: { "azure-native:authorization:getClientToken": () => ({ token: "local" }) },
  });
  const machine = await captureWhenOff("/the/machine", {
    ...validSettings,
    resourceManagerEndpoint,
  });
  azure.closeAllConnections();
  azure.close();
  expect(machine).toBe("/the/machine");
  return actions;
}

it.each<[string, string, boolean, string[]]>([
  ["that is off", "PowerState/stopped", false, ["/deallocate", "/generalize"]],
  ["that is marked already", "OSState/generalized", false, []],
  ["in a preview", "PowerState/stopped", true, []],
])("does what an image needs with a machine %s", async (_, code, preview, actions) => {
  expect(await asked(code, preview)).toEqual(actions.map((action) => `/the/machine${action}`));
});
