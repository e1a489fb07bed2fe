import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

import { build, newCloud, refusalOf, refusedBy } from "../fixture";
import { changed, compute, sound } from "../sample";

const [id, body] = sound.extension;
const failing = { exitCode: 3, stdout: "step join\n", stderr: "no route" };

it("runs once for a configuration", async () => {
  const { cloud, machines } = newCloud();
  await build(cloud);

  await cloud.put(id, body);
  await cloud.put(id, { ...body, tags: { "zoned-run": "2" } });

  expect(machines.told.filter((one) => one.startsWith("run"))).toEqual([
    "run join the cluster on cp-1",
  ]);
  expect(cloud.peek(id)).toMatchObject({
    tags: { "zoned-run": "2" },
    provisioningState: "Succeeded",
  });
});

it.each([
  ["its script", { protectedSettings: { script: Buffer.from("other").toString("base64") } }],
  ["its open settings", { settings: { timestamp: 1 } }],
  ["forceUpdateTag", { forceUpdateTag: "2" }],
])("runs again when %s changed", async (_, change) => {
  const { cloud, machines } = newCloud();
  await build(cloud);

  await cloud.put(id, changed("extension", change));

  expect(machines.told.filter((one) => one.startsWith("run"))).toHaveLength(2);
});

it("gives an old failure again to an equal PUT, and runs when forced", async () => {
  const { cloud, machines } = newCloud();
  machines.outcome = () => failing;
  await build(cloud, "machine");

  const first = await refusedBy(cloud.put(id, body));
  machines.outcome = () => ({ ...failing, exitCode: 0 });
  const second = await refusedBy(cloud.put(id, body));

  expect(first).toMatch(
    /^VMExtensionProvisioningError: .*exit status=3\n\[stdout\]\nstep join\n\n\[stderr\]\nno route'/,
  );
  expect(second).toBe(first);
  expect(cloud.peek(id)).toMatchObject({ provisioningState: "Failed" });
  expect(machines.told.filter((one) => one.startsWith("run"))).toHaveLength(1);
  expect(await refusedBy(cloud.put(id, { ...body, forceUpdateTag: "2" }))).toBe("not refused");
});

it("keeps the last 4096 bytes of each stream", async () => {
  const { cloud, machines } = newCloud();
  machines.outcome = () => ({
    exitCode: 1,
    stdout: `lost${"o".repeat(4096)}`,
    stderr: `gone${"e".repeat(4096)}`,
  });
  await build(cloud, "machine");

  const failure = await refusedBy(cloud.put(id, body));

  expect(failure).toContain(`[stdout]\n${"o".repeat(4096)}\n[stderr]\n${"e".repeat(4096)}'`);
});

it("neither shows nor keeps protected settings", async () => {
  const { cloud, args } = newCloud();
  await build(cloud);

  const { script } = body.protectedSettings;
  for (const text of [
    JSON.stringify(cloud.peek(id)),
    readFileSync(args.stateFile, "utf8"),
    readFileSync(args.requestLog, "utf8"),
  ]) {
    expect(text).not.toContain(script);
    expect(text).not.toContain("join the cluster");
  }
});

it("reads a script that was compressed", async () => {
  const { cloud, machines } = newCloud();
  await build(cloud, "machine");

  await cloud.put(
    id,
    changed("extension", { protectedSettings: { script: gzipSync("short").toString("base64") } }),
  );

  expect(machines.told.at(-1)).toBe("run short on cp-1");
});

it.each([
  ["no publisher", { publisher: undefined }, "InvalidParameter: .*publisher"],
  [
    "a script both open and secret",
    { settings: { script: "ZWNobw==" } },
    "VMExtensionHandlerSettingsInvalid: .*both",
  ],
  [
    "nothing to run",
    { protectedSettings: { script: undefined } },
    "VMExtensionHandlerSettingsInvalid: .*exactly one",
  ],
  [
    "a script beyond 256 KiB",
    { protectedSettings: { script: "A".repeat(262_145) } },
    "VMExtensionHandlerSettingsInvalid: .*262145",
  ],
])("refuses one with %s", async (_, change, code) => {
  expect(await refusalOf("extension", change)).toMatch(new RegExp(`^${code}`));
});

it("is one of its kind on a machine, and needs the machine", async () => {
  const { cloud } = newCloud();
  await build(cloud);

  const second = cloud.put(compute("virtualMachines/cp-1/extensions/b"), body);
  const homeless = cloud.put(compute("virtualMachines/none/extensions/b"), body);

  expect(await refusedBy(second)).toMatch(/^BadRequest: Multiple VMExtensions per handler/);
  expect(await refusedBy(homeless)).toMatch(/^ParentResourceNotFound/);
});

it("ends with its machine, while it runs", async () => {
  const { cloud, machines } = newCloud();
  await build(cloud, "machine");
  let end: (result: typeof failing) => void = () => undefined;
  machines.outcome = () => new Promise((resolve) => (end = resolve));

  const running = refusedBy(cloud.put(id, body));
  while (!machines.told.some((one) => one.startsWith("run")))
    await new Promise((resolve) => setImmediate(resolve));
  expect(await refusedBy(cloud.put(id, body))).toMatch(/^AnotherOperationInProgress/);
  await cloud.delete(sound.machine[0]);
  end({ ...failing, exitCode: 0 });

  expect(await running).toMatch(/^OperationPreempted/);
  expect(cloud.peek(id)).toBeUndefined();
});
