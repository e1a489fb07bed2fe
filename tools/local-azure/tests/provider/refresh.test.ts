import type { Properties } from "../../plugins/protocol/values";
import { AzureNative } from "../../provider/operations";
import { createResources, newArm } from "../support/arm/fixture";
import { inputsOf, network, subject, type, valid } from "../support/arm/valid-resources";

const read = async (
  kind: keyof typeof valid,
  token: string,
  change?: (arm: ReturnType<typeof newArm>["arm"]) => Promise<unknown>,
) => {
  const { arm } = newArm();
  await createResources(arm);
  const azure = new AzureNative(arm);
  const [id] = valid[kind];
  const inputs = { ...inputsOf(kind), azureApiVersion: "x" };
  const before = await azure.read(type(token), { ...subject, id, state: {}, inputs: {} });
  await change?.(arm);
  return {
    inputs,
    now: await azure.read(type(token), { ...subject, id, state: before!.state, inputs }),
  };
};

it.each([
  ["nic", "network:NetworkInterface"],
  ["balancer", "network:LoadBalancer"],
  ["apiIp", "network:PublicIPAddress"],
  ["machine", "compute:VirtualMachine"],
  ["securityGroup", "network:NetworkSecurityGroup"],
  ["vnet", "network:VirtualNetwork"],
] as const)("leaves the inputs of a %s as they are when nothing changed", async (kind, token) => {
  const { inputs, now } = await read(kind, token);

  expect(now?.inputs).toEqual(inputs);
});

it("adds a changed value to the inputs, and no default", async () => {
  const { inputs, now } = await read("machine", "compute:VirtualMachine", (arm) =>
    arm.put(valid.machine[0], {
      ...valid.machine[1],
      hardwareProfile: { vmSize: "Standard_D4s_v5" },
    }),
  );

  expect(now?.inputs).toEqual({ ...inputs, hardwareProfile: { vmSize: "Standard_D4s_v5" } });
});

it("adds no rules and pool members of other resources to the inputs", async () => {
  const rule = await read("securityGroup", "network:NetworkSecurityGroup", (arm) =>
    arm.put(network("networkSecurityGroups/nsg/securityRules/cloud"), {
      ...valid.rule[1],
      priority: 500,
    }),
  );
  const balancer = await read("balancer", "network:LoadBalancer", (arm) =>
    arm.delete(valid.machine[0]).then(() => arm.delete(valid.nic[0])),
  );

  expect(rule.now?.inputs).toEqual(rule.inputs);
  expect(balancer.now?.inputs).toEqual(balancer.inputs);
});

it.each([
  ["securityGroup", "network:NetworkSecurityGroup", "securityRules"],
  ["vnet", "network:VirtualNetwork", "subnets"],
  ["routeTable", "network:RouteTable", "routes"],
] as const)(
  "empties in the outputs of a %s what is a resource of its own, and keeps what is an input",
  async (kind, token, list) => {
    const { arm } = newArm();
    await createResources(arm);
    const [id] = valid[kind];
    const azure = new AzureNative(arm);
    const outputs = async (inputs: Properties) =>
      (await azure.read(type(token), { ...subject, id, state: {}, inputs }))?.state[list];

    const all = arm.peek(id)![list];
    expect(await outputs(inputsOf(kind))).toEqual([]);
    expect(await outputs({ ...inputsOf(kind), [list]: [{ name: "inline" }] })).toEqual(all);
    expect(await outputs({})).toEqual(all);
  },
);

it("shows in properties that are inputs who is in a pool, and which gateway has an address", async () => {
  const { arm } = newArm();
  const azure = new AzureNative(arm);
  await createResources(arm, "balancer");
  const [pool] = valid.balancer;
  const inputs = { ...inputsOf("balancer"), azureApiVersion: "x" };
  const balancer = type("network:LoadBalancer");
  const before = await azure.read(balancer, { ...subject, id: pool, state: {}, inputs: {} });
  await createResources(arm);

  const now = await azure.read(balancer, { ...subject, id: pool, state: before!.state, inputs });

  expect(now?.inputs["backendAddressPools"]).toEqual([
    expect.objectContaining({ loadBalancerBackendAddresses: [{ name: expect.any(String) }] }),
  ]);
  const shown = await azure.read(type("network:PublicIPAddress"), {
    ...subject,
    id: valid.natIp[0],
    state: {},
    inputs: {},
  });
  expect(shown?.inputs).toMatchObject({ natGateway: { id: valid.nat[0] } });
});

it("cannot send the machines that it saw in a pool once one of them has gone, and a balancer without them is taken", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const azure = new AzureNative(arm);
  const balancer = type("network:LoadBalancer");
  const [id] = valid.balancer;
  const inputs = inputsOf("balancer");
  const send = (news: Properties) =>
    azure.update(balancer, { ...subject, id, news, olds: inputs, state: {}, preview: false });
  const seen = await azure.read(balancer, { ...subject, id, state: {}, inputs });

  await expect(send(seen!.inputs)).resolves.toMatchObject({ provisioningState: "Succeeded" });
  await arm.delete(valid.machine[0]);
  await arm.delete(valid.nic[0]);

  await expect(send(seen!.inputs)).rejects.toThrow(
    /ModificationOfNICIpConfigBackendPoolNotSupported/,
  );
  await expect(send(inputs)).resolves.toMatchObject({ provisioningState: "Succeeded" });
});

it("lays over the inputs all that Azure shows where no outputs are known, and nothing that it hides", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const inputs: Properties = { ...inputsOf("machine"), azureApiVersion: "x" };

  const now = await new AzureNative(arm).read(type("compute:VirtualMachine"), {
    ...{ ...subject, id: valid.machine[0], state: {}, inputs },
  });

  expect(inputs["osProfile"]).toHaveProperty("customData");
  expect(now?.inputs["osProfile"]).not.toHaveProperty("customData");
  expect(now?.inputs["osProfile"]).toMatchObject({ computerName: "cp-1" });
  expect(now?.inputs["vmName"]).toBe("cp-1");
});

it("reports a deleted resource", async () => {
  const { now } = await read("extension", "compute:VirtualMachineExtension", (arm) =>
    arm.delete(valid.extension[0]),
  );

  expect(now).toBeUndefined();
});

it("reads the inputs of an import by id", async () => {
  const { arm } = newArm();
  await createResources(arm);

  const found = await new AzureNative(arm).read(type("compute:VirtualMachineExtension"), {
    ...subject,
    id: valid.extension[0],
    state: {},
    inputs: {},
  });

  expect(found?.inputs).toMatchObject({
    resourceGroupName: "zoned",
    vmName: "cp-1",
    vmExtensionName: "bootstrap",
    publisher: "Microsoft.Azure.Extensions",
  });
});
