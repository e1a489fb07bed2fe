import { build, newCloud, PlayedClock } from "../resource-manager/fixture";
import { compute, sound } from "../resource-manager/sample";
import { typeOf, typeOfToken } from "../resource-manager/types";
import { Unready } from "../standins/protocol/failures";
import { Properties, unknown } from "../standins/protocol/values";
import { AzureNative } from "./operations";
import { parametersOf } from "./paths";

const type = (name: string) => typeOfToken(`azure-native:${name}`)!;
const subject = {
  urn: "urn",
  type: "t",
  name: "n",
  signal: new AbortController().signal,
  timeoutSeconds: 0,
};

/** What a program would have sent for a sound body. */
const inputsOf = (kind: keyof typeof sound): Properties => {
  const [id, body] = sound[kind];
  const token = id.split("/").at(-2)!;
  const found = ["Network", "Compute"].flatMap(
    (namespace) => typeOf(`Microsoft.${namespace}/${token}`) ?? [],
  )[0];
  return {
    ...(JSON.parse(JSON.stringify(body)) as Properties),
    ...(found && parametersOf(found, id)),
  };
};

const update = (id: string, news: Properties, state: Properties = {}) => ({
  ...subject,
  id,
  news,
  state,
  olds: news,
  preview: false,
});

it("knows in a preview what was asked for, and not what Azure will give", async () => {
  const { cloud } = newCloud();
  const { id, state } = await new AzureNative(cloud).create(type("network:LoadBalancer"), {
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
  expect(cloud.isEmpty).toBe(true);
});

it("creates under ARM's id, and returns what a GET shows", async () => {
  const { cloud } = newCloud();
  await build(cloud, "balancer");

  const { id, state } = await new AzureNative(cloud).create(type("network:NetworkInterface"), {
    ...subject,
    inputs: inputsOf("nic"),
    preview: false,
  });

  expect(id).toBe(sound.nic[0]);
  expect(state).toMatchObject({
    name: "cp-1-nic",
    type: "Microsoft.Network/networkInterfaces",
    azureApiVersion: "2024-05-01",
    provisioningState: "Succeeded",
  });
});

it("refuses to create what is there", async () => {
  const { cloud } = newCloud();
  await build(cloud, "vnet");

  const create = new AzureNative(cloud).create(type("network:VirtualNetwork"), {
    ...subject,
    inputs: inputsOf("vnet"),
    preview: false,
  });

  await expect(create).rejects.toThrow(
    `cannot create already existing resource '${sound.vnet[0]}'`,
  );
});

it("tells a refusal in azure-native's words", async () => {
  const { cloud } = newCloud();
  await build(cloud, "balancer");
  const inputs = { ...inputsOf("nic"), location: "northeurope" };

  const create = new AzureNative(cloud).create(type("network:NetworkInterface"), {
    ...subject,
    inputs,
    preview: false,
  });

  await expect(create).rejects.toThrow(
    /^Status=400 Code="InvalidResourceReference" Message="Resource .* was not found/,
  );
  await expect(create).rejects.not.toBeInstanceOf(Unready);
});

it("carries rules and subnets of others along when it updates", async () => {
  const { cloud } = newCloud();
  await build(cloud);
  const azure = new AzureNative(cloud);

  await azure.update(
    type("network:NetworkSecurityGroup"),
    update(sound.securityGroup[0], { ...inputsOf("securityGroup"), tags: { a: "b" } }),
  );
  await azure.update(
    type("network:VirtualNetwork"),
    update(sound.vnet[0], { ...inputsOf("vnet"), tags: { a: "b" } }),
  );

  expect(cloud.peek(sound.securityGroup[0])).toMatchObject({
    tags: { a: "b" },
    securityRules: [{ name: "api" }],
  });
  expect(cloud.peek(sound.vnet[0])).toMatchObject({
    tags: { a: "b" },
    subnets: [{ name: "nodes-1" }],
  });
});

it("keeps a resource whose operation failed, for the next update to go on with", async () => {
  const { cloud, machines } = newCloud();
  machines.outcome = () => ({ exitCode: 1, stdout: "", stderr: "boom" });
  await build(cloud, "machine");
  const inputs = {
    ...inputsOf("extension"),
    ...parametersOf(type("compute:VirtualMachineExtension"), sound.extension[0]),
  };

  const create = new AzureNative(cloud).create(type("compute:VirtualMachineExtension"), {
    ...subject,
    inputs,
    preview: false,
  });

  await expect(create).rejects.toBeInstanceOf(Unready);
  await expect(create).rejects.toMatchObject({
    id: sound.extension[0],
    inputs,
    state: { provisioningState: "Failed" },
    reasons: [expect.stringContaining("boom")],
  });
});

it("keeps what was ordered when the run is interrupted", async () => {
  const clock = new PlayedClock();
  const { cloud } = newCloud({ clock });
  await build(cloud, "group");
  cloud.durations.set({ factor: 1 });
  const interrupt = new AbortController();

  const create = new AzureNative(cloud).create(type("network:VirtualNetwork"), {
    ...subject,
    inputs: inputsOf("vnet"),
    signal: interrupt.signal,
    preview: false,
  });
  interrupt.abort();

  await expect(create).rejects.toMatchObject({
    id: sound.vnet[0],
    reasons: [expect.stringContaining("not waited for")],
  });
});

it("has deleted what is not there", async () => {
  const { cloud } = newCloud();

  await expect(
    new AzureNative(cloud).delete(compute("virtualMachines/none")),
  ).resolves.toBeUndefined();
});
