import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

import {
  createResources,
  itAnswers,
  itLimits,
  itNeverChanges,
  itRefuses,
  newArm,
  put,
  refusedBy,
} from "../../support/arm/fixture";
import { withChange, compute, valid } from "../../support/arm/valid-resources";

const [id, body] = valid.extension;

itRefuses("extension", [
  [{ publisher: undefined }, "InvalidParameter: .*publisher"],
  [{ "settings.script": "ZWNobw==" }, "VMExtensionHandlerSettingsInvalid: .*both"],
  [{ "protectedSettings.script": undefined }, "VMExtensionHandlerSettingsInvalid: .*exactly one"],
]);
itLimits("extension", [
  [
    "protectedSettings.script",
    ["A".repeat(262_144)],
    ["A".repeat(262_145), "A".repeat(262_148)],
    "VMExtensionHandlerSettingsInvalid: .*26214[58]",
  ],
]);
itNeverChanges("extension", [
  [{ publisher: "Other" }, "PropertyChangeNotAllowed: Changing property 'publisher'"],
  [{ type: "Other" }, "PropertyChangeNotAllowed: Changing property 'type'"],
]);

itAnswers("extension", [
  [
    "a second one of its handler",
    "BadRequest: Multiple VMExtensions per handler",
    put(compute("virtualMachines/cp-1/extensions/b"), body),
  ],
  [
    "one of no machine",
    "ParentResourceNotFound",
    put(compute("virtualMachines/none/extensions/b"), body),
  ],
]);

itAnswers("nic", [
  [
    "one of a machine without Azure's agent",
    "OperationNotAllowed: .* extension operations are disallowed",
    put(
      valid.machine[0],
      withChange("machine", { "osProfile.linuxConfiguration.provisionVMAgent": false }),
    ),
    put(id, body),
  ],
]);

it.each<[string, object, number]>([
  ["nothing but tags", { tags: { a: "2" } }, 1],
  ["its script", { "protectedSettings.script": Buffer.from("other").toString("base64") }, 2],
  ["its open settings", { "settings.timestamp": 1 }, 2],
  ["forceUpdateTag", { forceUpdateTag: "2" }, 2],
])("has run, when %s changed: %j", async (_, change, times) => {
  const { arm, machines } = newArm();
  await createResources(arm);

  await arm.put(id, withChange("extension", { ...change }));

  expect(machines.calls.filter((one) => one.startsWith("run"))).toHaveLength(times);
  expect(arm.peek(id)).toMatchObject({ provisioningState: "Succeeded" });
});

it("returns the previous failure for an equal PUT, with the end of each stream, and runs again with another forceUpdateTag", async () => {
  const { arm, machines } = newArm();
  const [out, err] = ["o".repeat(4096), "e".repeat(4096)];
  machines.scriptResult = () => ({ exitCode: 3, stdout: `lost${out}`, stderr: `gone${err}` });
  await createResources(arm, "machine");

  const first = await refusedBy(arm.put(id, body));
  machines.scriptResult = () => ({ exitCode: 0, stdout: "", stderr: "" });
  const second = await refusedBy(arm.put(id, body));

  expect(first).toMatch(/^VMExtensionProvisioningError: .*exit status=3/);
  expect(first).toContain(`\n[stdout]\n${out}\n[stderr]\n${err}'`);
  expect(second).toBe(first);
  expect(arm.peek(id)).toMatchObject({ provisioningState: "Failed" });
  expect(await refusedBy(arm.put(id, { ...body, forceUpdateTag: "2" }))).toBe("not refused");
});

it("neither returns nor stores protected settings", async () => {
  const { arm, args } = newArm();
  await createResources(arm);

  for (const text of [
    JSON.stringify(arm.peek(id)),
    readFileSync(args.stateFile, "utf8"),
    readFileSync(args.requestLog, "utf8"),
  ]) {
    expect(text).not.toContain(body.protectedSettings.script);
    expect(text).not.toContain("join the cluster");
  }
});

it("decompresses a script", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");
  const script = gzipSync("short").toString("base64");

  await arm.put(id, withChange("extension", { "protectedSettings.script": script }));

  expect(machines.calls.at(-1)).toBe("run short on cp-1");
});

it("holds up each update of its machine, as the detachment of a disk, until it has ended", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");
  const ended: string[] = [];
  let end: () => void = () => undefined;
  machines.scriptResult = () =>
    new Promise((resolve) => (end = () => resolve({ exitCode: 0, stdout: "", stderr: "" })));

  const running = arm.put(id, body).then(() => ended.push("the script"));
  while (!machines.calls.some((one) => one.startsWith("run")))
    await new Promise((resolve) => setImmediate(resolve));
  const [machineId, machine] = valid.machine;
  const updating = arm.put(machineId, machine).then(() => ended.push("the update"));
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(ended).toEqual([]);
  expect(arm.peek(machineId)).toMatchObject({ provisioningState: "Updating" });

  end();
  await Promise.all([running, updating]);
  expect(ended).toEqual(["the script", "the update"]);
});

it("ends when its machine is deleted during the script", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");
  let end: () => void = () => undefined;
  machines.scriptResult = () =>
    new Promise((resolve) => (end = () => resolve({ exitCode: 0, stdout: "", stderr: "" })));

  const running = refusedBy(arm.put(id, body));
  while (!machines.calls.some((one) => one.startsWith("run")))
    await new Promise((resolve) => setImmediate(resolve));
  expect(await refusedBy(arm.put(id, body))).toMatch(/^Conflict: /);
  await arm.delete(valid.machine[0]);
  end();

  expect(await running).toMatch(/^OperationPreempted/);
  expect(arm.peek(id)).toBeUndefined();
});
