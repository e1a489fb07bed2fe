import { Faults } from "../../arm/faults/faults";
import { Unready } from "../../plugins/protocol/failures";
import { Properties, unknown } from "../../plugins/protocol/values";
import { AzureNative } from "../../provider/operations";
import { parametersOf } from "../../provider/paths";
import { createResources, newArm, ManualClock } from "../support/arm/fixture";
import { inputsOf, subject, type } from "../support/arm/provider-requests";
import { compute, group, valid } from "../support/arm/valid-resources";

const update = (id: string, news: Properties) => ({
  ...subject,
  id,
  news,
  state: {},
  olds: news,
  preview: false,
});

it("previews the inputs, with unknown ids of sub-resources", async () => {
  const { arm } = newArm();
  const { id, state } = await new AzureNative(arm).create(type("network:LoadBalancer"), {
    ...subject,
    inputs: inputsOf("balancer"),
    preview: true,
  });

  expect(id).toBe("");
  expect(state).toMatchObject({
    location: "westeurope",
    backendAddressPools: [{ name: "cp", id: unknown }],
  });
  expect(state).not.toHaveProperty("name");
  expect(arm.isEmpty).toBe(true);
});

it("creates under ARM's id, and returns what a GET shows", async () => {
  const { arm } = newArm();
  await createResources(arm, "balancer");

  const { id, state } = await new AzureNative(arm).create(type("network:NetworkInterface"), {
    ...subject,
    inputs: inputsOf("nic"),
    preview: false,
  });

  expect(id).toBe(valid.nic[0]);
  expect(state).toMatchObject({
    name: "cp-1-nic",
    type: "Microsoft.Network/networkInterfaces",
    azureApiVersion: "2024-05-01",
    provisioningState: "Succeeded",
  });
});

it("refuses to create a resource that exists", async () => {
  const { arm } = newArm();
  await createResources(arm, "vnet");

  const create = new AzureNative(arm).create(type("network:VirtualNetwork"), {
    ...subject,
    inputs: inputsOf("vnet"),
    preview: false,
  });

  await expect(create).rejects.toThrow(
    `cannot create already existing resource '${valid.vnet[0]}'`,
  );
});

it("reports an error of Azure as azure-native does", async () => {
  const { arm } = newArm();
  await createResources(arm, "balancer");
  const inputs = { ...inputsOf("nic"), location: "northeurope" };

  const create = new AzureNative(arm).create(type("network:NetworkInterface"), {
    ...subject,
    inputs,
    preview: false,
  });

  await expect(create).rejects.toThrow(
    /^Status=400 Code="InvalidResourceReference" Message="Resource .* was not found/,
  );
  await expect(create).rejects.not.toBeInstanceOf(Unready);
});

it("keeps rules and subnets that are resources of their own in an update", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const azure = new AzureNative(arm);

  await azure.update(
    type("network:NetworkSecurityGroup"),
    update(valid.securityGroup[0], { ...inputsOf("securityGroup"), tags: { a: "b" } }),
  );
  await azure.update(
    type("network:VirtualNetwork"),
    update(valid.vnet[0], { ...inputsOf("vnet"), tags: { a: "b" } }),
  );

  expect(arm.peek(valid.securityGroup[0])).toMatchObject({
    tags: { a: "b" },
    securityRules: [{ name: "api" }],
  });
  expect(arm.peek(valid.vnet[0])).toMatchObject({
    tags: { a: "b" },
    subnets: [{ name: "nodes-1" }],
  });
});

it("takes an identity away by PATCH, as null, with the rest of what it sends; without one it sends a PUT", async () => {
  const { arm } = newArm();
  await createResources(arm, "machine");
  const [own, other] = ["own", "other"].map(
    (name) => `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`,
  );
  for (const id of [own, other]) await arm.put(id!, { location: "westeurope" });
  const azure = new AzureNative(arm);
  const machine = type("compute:VirtualMachine");
  const having = (...userAssignedIdentities: string[]): Properties => ({
    ...inputsOf("machine"),
    tags: { identities: String(userAssignedIdentities.length) },
    identity: { type: "UserAssigned", userAssignedIdentities },
  });
  const [id] = valid.machine;

  await azure.update(machine, update(id, having(own!, other!)));
  const { identity, tags } = await azure.update(machine, {
    ...update(id, having(own!)),
    olds: having(own!, other!),
  });

  expect(identity).toMatchObject({ type: "UserAssigned", userAssignedIdentities: { [own!]: {} } });
  expect(identity).not.toHaveProperty(["userAssignedIdentities", other!]);
  expect(tags).toEqual({ identities: "1" });
  const sent = arm.log.read().filter((one) => one.id === id && one.method !== "GET");
  expect(sent.map(({ method }) => method)).toEqual(["PUT", "PUT", "PATCH"]);
});

it("returns a resource whose operation failed, for the next update", async () => {
  const { arm, machines } = newArm();
  machines.scriptResult = () => ({ exitCode: 1, stdout: "", stderr: "boom" });
  await createResources(arm, "machine");
  const inputs = {
    ...inputsOf("extension"),
    ...parametersOf(type("compute:VirtualMachineExtension"), valid.extension[0]),
  };

  const create = new AzureNative(arm).create(type("compute:VirtualMachineExtension"), {
    ...subject,
    inputs,
    preview: false,
  });

  await expect(create).rejects.toBeInstanceOf(Unready);
  await expect(create).rejects.toMatchObject({
    id: valid.extension[0],
    inputs,
    state: { provisioningState: "Failed" },
    reasons: [expect.stringContaining("boom")],
  });
});

/** Azure's network, whose creation takes as long as on Azure. */
async function slowNetwork() {
  const clock = new ManualClock();
  const { arm } = newArm({ clock });
  await createResources(arm, "group");
  arm.durations.set({ factor: 1 });
  const create = (limits: { signal?: AbortSignal; timeoutSeconds?: number }) =>
    new AzureNative(arm).create(type("network:VirtualNetwork"), {
      ...{ ...subject, inputs: inputsOf("vnet"), preview: false },
      ...limits,
    });
  const asleep = jest.spyOn(clock, "sleep");
  const isUnderWay = async (): Promise<void> => {
    while (asleep.mock.calls.length === 0) await turn();
  };
  return { clock, arm, create, asleep, isUnderWay };
}
const turn = () => new Promise((next) => setImmediate(next));

it("keeps of a creation that is interrupted its inputs, and no output, since it can read nothing more", async () => {
  const { create, isUnderWay } = await slowNetwork();
  const interrupt = new AbortController();

  const creating = create({ signal: interrupt.signal });
  creating.catch(() => undefined);
  await isUnderWay();
  interrupt.abort();

  await expect(creating).rejects.toMatchObject({
    id: valid.vnet[0],
    inputs: inputsOf("vnet"),
    state: {},
    reasons: ["resource created but read failed context canceled: context canceled"],
  });
});

it("keeps nothing of a creation that is interrupted before Azure has accepted it", async () => {
  const { arm, create } = await slowNetwork();

  const creating = create({ signal: AbortSignal.abort() });

  await expect(creating).rejects.toThrow(/^context canceled$/);
  await expect(creating).rejects.not.toBeInstanceOf(Unready);
  expect(arm.peek(valid.vnet[0])).toBeUndefined();
});

it("ends an operation whose time is up", async () => {
  const { create } = await slowNetwork();

  await expect(create({ timeoutSeconds: 0.2 })).rejects.toMatchObject({
    id: valid.vnet[0],
    state: {},
    reasons: ["operation timed out"],
  });
});

it("ends a deletion that is interrupted, which Azure goes on with", async () => {
  const { clock, arm, asleep, isUnderWay } = await slowNetwork();
  await clock.until(arm.put(...valid.vnet));
  asleep.mockClear();
  const interrupt = new AbortController();

  const deleting = new AzureNative(arm).delete({
    ...{ ...subject, id: valid.vnet[0] },
    signal: interrupt.signal,
  });
  deleting.catch(() => undefined);
  await isUnderWay();
  interrupt.abort();

  await expect(deleting).rejects.toThrow("context canceled");
  expect(arm.peek(valid.vnet[0])).toMatchObject({ provisioningState: "Deleting" });
  clock.advance(60);
  while (arm.peek(valid.vnet[0]) !== undefined) await turn();
});

describe("after a creation that failed and left nothing", () => {
  const failing = async (kind: "vnet" | "apiIp", token: string) => {
    const fault = { method: "PUT", accepted: true, leavesNothing: true } as const;
    const { arm } = newArm({ faults: new Faults([{ ...fault, id: `${valid[kind][0]}$` }]) });
    await createResources(arm, "group");
    const azure = new AzureNative(arm);
    const inputs = inputsOf(kind);
    const create = azure.create(type(token), { ...subject, inputs, preview: false });
    await expect(create).rejects.toMatchObject({
      id: valid[kind][0],
      inputs,
      state: {},
      reasons: [expect.stringMatching(/^resource created but read failed Status=404 /)],
    });
    return { arm, again: azure.update(type(token), update(valid[kind][0], inputs)) };
  };

  it("keeps the id, with which the next update creates it", async () => {
    const { arm, again } = await failing("apiIp", "network:PublicIPAddress");

    await again;
    expect(arm.peek(valid.apiIp[0])).toMatchObject({ provisioningState: "Succeeded" });
  });

  it("keeps the id, and no update can be made of what has parts that are to be kept", async () => {
    const { again } = await failing("vnet", "network:VirtualNetwork");

    await expect(again).rejects.toThrow(
      /^failed maintaining unset sub-resource properties: reading cloud state: Status=404 /,
    );
  });
});

describe("with a GET that Azure refuses", () => {
  const refused = (nth: number, kind: "vnet" | "extension" = "vnet") =>
    new Faults([{ method: "GET", id: `${valid[kind][0]}$`, nth, status: 403, code: "Forbidden" }]);
  const network = { ...subject, inputs: inputsOf("vnet"), preview: false };

  it("does not create what it cannot look for", async () => {
    const { arm } = newArm({ faults: refused(1) });
    await createResources(arm, "group");

    const create = new AzureNative(arm).create(type("network:VirtualNetwork"), network);

    await expect(create).rejects.toThrow(
      `cannot check existence of resource '${valid.vnet[0]}': status code 403`,
    );
    expect(arm.peek(valid.vnet[0])).toBeUndefined();
  });

  it("warns of what it cannot read after it was written", async () => {
    const { arm } = newArm({ faults: refused(2) });
    await createResources(arm, "group");
    const warnings: string[] = [];
    const azure = new AzureNative(arm, (_, message) => warnings.push(message));

    const { state } = await azure.create(type("network:VirtualNetwork"), network);

    expect(state).toMatchObject({ provisioningState: "Succeeded" });
    expect(warnings).toEqual([expect.stringMatching(/^failed to read the resource after/)]);
  });

  it("changes nothing whose rules and subnets it cannot send along", async () => {
    const { arm } = newArm({ faults: refused(1) });
    await createResources(arm);

    const changed = new AzureNative(arm).update(
      type("network:VirtualNetwork"),
      update(valid.vnet[0], { ...inputsOf("vnet"), tags: { a: "b" } }),
    );

    await expect(changed).rejects.toThrow("failed maintaining unset sub-resource properties");
    expect(arm.peek(valid.vnet[0])).not.toHaveProperty("tags");
  });

  it("keeps of a failed operation no output", async () => {
    const { arm, machines } = newArm({ faults: refused(2, "extension") });
    machines.scriptResult = () => ({ exitCode: 1, stdout: "", stderr: "boom" });
    await createResources(arm, "machine");
    const inputs = {
      ...inputsOf("extension"),
      ...parametersOf(type("compute:VirtualMachineExtension"), valid.extension[0]),
    };

    const create = new AzureNative(arm).create(type("compute:VirtualMachineExtension"), {
      ...{ ...subject, inputs, preview: false },
    });

    await expect(create).rejects.toMatchObject({
      id: valid.extension[0],
      state: {},
      reasons: [expect.stringMatching(/^resource created but read failed .*boom/s)],
    });
  });
});

it("deletes a resource that does not exist without an error", async () => {
  const { arm } = newArm();

  await expect(
    new AzureNative(arm).delete({ ...subject, id: compute("virtualMachines/none") }),
  ).resolves.toBeUndefined();
});
