import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itLimits, itNeverChanges, itRefuses } from "../../../support/arm/input-tables";
import { withChange, compute, valid } from "../../../support/arm/valid-resources";

const [id, body] = valid.extension;
const failing = { exitCode: 3, stdout: "step join\n", stderr: "no route" };

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

it("runs once for a configuration", async () => {
  const { arm, machines } = newArm();
  await createResources(arm);

  await arm.put(id, body);
  await arm.put(id, { ...body, tags: { "zoned-bootstrap-requested-at": "2" } });

  expect(machines.calls.filter((one) => one.startsWith("run"))).toEqual([
    "run join the cluster on cp-1",
  ]);
  expect(arm.peek(id)).toMatchObject({
    tags: { "zoned-bootstrap-requested-at": "2" },
    provisioningState: "Succeeded",
  });
});

it.each([
  ["its script", { "protectedSettings.script": Buffer.from("other").toString("base64") }],
  ["its open settings", { "settings.timestamp": 1 }],
  ["forceUpdateTag", { forceUpdateTag: "2" }],
])("runs again when %s changed", async (_, change) => {
  const { arm, machines } = newArm();
  await createResources(arm);

  await arm.put(id, withChange("extension", change));

  expect(machines.calls.filter((one) => one.startsWith("run"))).toHaveLength(2);
});

it("returns the previous failure for an equal PUT, and runs again with another forceUpdateTag", async () => {
  const { arm, machines } = newArm();
  machines.scriptResult = () => failing;
  await createResources(arm, "machine");

  const first = await refusedBy(arm.put(id, body));
  machines.scriptResult = () => ({ ...failing, exitCode: 0 });
  const second = await refusedBy(arm.put(id, body));

  expect(first).toMatch(
    /^VMExtensionProvisioningError: .*exit status=3\n\[stdout\]\nstep join\n\n\[stderr\]\nno route'/,
  );
  expect(second).toBe(first);
  expect(arm.peek(id)).toMatchObject({ provisioningState: "Failed" });
  expect(machines.calls.filter((one) => one.startsWith("run"))).toHaveLength(1);
  expect(await refusedBy(arm.put(id, { ...body, forceUpdateTag: "2" }))).toBe("not refused");
});

it("keeps the last 4096 bytes of each stream", async () => {
  const { arm, machines } = newArm();
  machines.scriptResult = () => ({
    exitCode: 1,
    stdout: `lost${"o".repeat(4096)}`,
    stderr: `gone${"e".repeat(4096)}`,
  });
  await createResources(arm, "machine");

  const failure = await refusedBy(arm.put(id, body));

  expect(failure).toContain(`[stdout]\n${"o".repeat(4096)}\n[stderr]\n${"e".repeat(4096)}'`);
});

it("neither returns nor stores protected settings", async () => {
  const { arm, args } = newArm();
  await createResources(arm);

  const { script } = body.protectedSettings;
  for (const text of [
    JSON.stringify(arm.peek(id)),
    readFileSync(args.stateFile, "utf8"),
    readFileSync(args.requestLog, "utf8"),
  ]) {
    expect(text).not.toContain(script);
    expect(text).not.toContain("join the cluster");
  }
});

it("decompresses a script", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");

  await arm.put(
    id,
    withChange("extension", {
      "protectedSettings.script": gzipSync("short").toString("base64"),
    }),
  );

  expect(machines.calls.at(-1)).toBe("run short on cp-1");
});

it("is the only one of its handler on a machine, and needs the machine", async () => {
  const { arm } = newArm();
  await createResources(arm);

  const second = arm.put(compute("virtualMachines/cp-1/extensions/b"), body);
  const withoutMachine = arm.put(compute("virtualMachines/none/extensions/b"), body);

  expect(await refusedBy(second)).toMatch(/^BadRequest: Multiple VMExtensions per handler/);
  expect(await refusedBy(withoutMachine)).toMatch(/^ParentResourceNotFound/);
});

it("ends when its machine is deleted during the script", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");
  let end: (result: typeof failing) => void = () => undefined;
  machines.scriptResult = () => new Promise((resolve) => (end = resolve));

  const running = refusedBy(arm.put(id, body));
  while (!machines.calls.some((one) => one.startsWith("run")))
    await new Promise((resolve) => setImmediate(resolve));
  expect(await refusedBy(arm.put(id, body))).toMatch(/^AnotherOperationInProgress/);
  await arm.delete(valid.machine[0]);
  end({ ...failing, exitCode: 0 });

  expect(await running).toMatch(/^OperationPreempted/);
  expect(arm.peek(id)).toBeUndefined();
});
