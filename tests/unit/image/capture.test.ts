import timers from "node:timers/promises";
import * as pulumi from "@pulumi/pulumi";

import { captureWhenOff, outputOf } from "../../../components/image/capture";
import { serve } from "../../support/listen";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

afterEach(() => jest.restoreAllMocks());

/** What is read of a step of which Azure shows this message. */
async function readOf(message: string | undefined) {
  const resourceManagerEndpoint = await serve((_, response) => {
    const value = [{ subscriptionId: "the-subscription", tenantId: "t" }];
    const statuses = [{ code: "ProvisioningState/succeeded", message }];
    response.end(JSON.stringify({ value, properties: { instanceView: { statuses } } }));
  });
  await Recorder.start({
    calls: { "azure-native:authorization:getClientToken": () => ({ token: "local" }) },
  });
  const warn = jest.spyOn(pulumi.log, "warn").mockResolvedValue(undefined);
  try {
    const text = await outputOf("/the/step", { ...validSettings, resourceManagerEndpoint });
    return [text, warn.mock.calls.map(([said]) => said)] as const;
  } finally {
    warn.mockRestore();
  }
}

const written = (text: string) => `Enable succeeded: \n[stdout]\n${text}\n[stderr]\n`;

it("reads what the image has, and says when Azure has kept the end of it alone", async () => {
  const whole = "setting mirror \npackage kubelet 1.36.3-1.1\nimage a/b:c sha256:1";

  expect(await readOf(written(whole))).toEqual([whole, []]);
  expect(await readOf(written(whole.slice(5)))).toEqual([
    whole.slice(5),
    [expect.stringContaining("/opt/zoned/image")],
  ]);
});

it.each([
  ["nothing", undefined],
  ["no list", written("first boot: done")],
])("takes no step for ended well of which Azure shows %s", async (_, message) => {
  await expect(readOf(message)).rejects.toThrow(/Azure shows ".*" of \/the\/step, .*a list/);
});

/** What Azure is asked to do with a machine of which it shows this, once that has run for so long. */
async function asked(code: string, preview = false, minutes = 0): Promise<string[]> {
  const actions: string[] = [];
  const begun = Date.now();
  let now = begun;
  jest.spyOn(Date, "now").mockImplementation(() => now);
  jest.spyOn(timers, "setTimeout").mockImplementation(async (ms = 0) => (now += ms) as never);
  const resourceManagerEndpoint = await serve(({ method, url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    if (method === "POST") actions.push(pathname);
    const value = [{ subscriptionId: "the-subscription", tenantId: "t" }];
    const shown = now < begun + minutes * 60_000 ? "PowerState/running" : code;
    response.end(JSON.stringify({ value, statuses: [{ code: shown }] }));
  });
  await Recorder.start({
    preview,
    calls: { "azure-native:authorization:getClientToken": () => ({ token: "local" }) },
  });
  const machine = await captureWhenOff("/the/machine", {
    ...validSettings,
    resourceManagerEndpoint,
  });
  expect(machine).toBe("/the/machine");
  return actions;
}

it("waits longer than a machine needs to forget who it is, and says where one stays on", async () => {
  expect(await asked("PowerState/stopped", false, 10)).toEqual([
    "/the/machine/deallocate",
    "/the/machine/generalize",
  ]);
  await expect(asked("PowerState/stopped", false, 30)).rejects.toThrow(
    /the\/machine was to .* and still runs after 15 minutes: /,
  );
});

it.each<[string, string, boolean, string[]]>([
  ["that is off", "PowerState/stopped", false, ["/deallocate", "/generalize"]],
  ["that is marked already", "OSState/generalized", false, []],
  ["in a preview", "PowerState/stopped", true, []],
])("does what an image needs with a machine %s", async (_, code, preview, actions) => {
  expect(await asked(code, preview)).toEqual(actions.map((action) => `/the/machine${action}`));
});
