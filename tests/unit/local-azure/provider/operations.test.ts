import { Unready } from "../../../../local-azure/plugins/protocol/failures";
import { Properties, unknown } from "../../../../local-azure/plugins/protocol/values";
import { AzureNative } from "../../../../local-azure/provider/operations";
import { parametersOf } from "../../../../local-azure/provider/paths";
import { createResources, newCloud, ManualClock } from "../../../support/arm/fixture";
import { inputsOf, subject, type } from "../../../support/arm/provider-requests";
import { compute, valid } from "../../../support/arm/valid-resources";

const update = (id: string, news: Properties, state: Properties = {}) => ({
  ...subject,
  id,
  news,
  state,
  olds: news,
  preview: false,
});

it("previews the inputs, with unknown ids of sub-resources", async () => {
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
  await createResources(cloud, "balancer");

  const { id, state } = await new AzureNative(cloud).create(type("network:NetworkInterface"), {
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
  const { cloud } = newCloud();
  await createResources(cloud, "vnet");

  const create = new AzureNative(cloud).create(type("network:VirtualNetwork"), {
    ...subject,
    inputs: inputsOf("vnet"),
    preview: false,
  });

  await expect(create).rejects.toThrow(
    `cannot create already existing resource '${valid.vnet[0]}'`,
  );
});

it("reports an error of Azure as azure-native does", async () => {
  const { cloud } = newCloud();
  await createResources(cloud, "balancer");
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

it("keeps rules and subnets that are resources of their own in an update", async () => {
  const { cloud } = newCloud();
  await createResources(cloud);
  const azure = new AzureNative(cloud);

  await azure.update(
    type("network:NetworkSecurityGroup"),
    update(valid.securityGroup[0], { ...inputsOf("securityGroup"), tags: { a: "b" } }),
  );
  await azure.update(
    type("network:VirtualNetwork"),
    update(valid.vnet[0], { ...inputsOf("vnet"), tags: { a: "b" } }),
  );

  expect(cloud.peek(valid.securityGroup[0])).toMatchObject({
    tags: { a: "b" },
    securityRules: [{ name: "api" }],
  });
  expect(cloud.peek(valid.vnet[0])).toMatchObject({
    tags: { a: "b" },
    subnets: [{ name: "nodes-1" }],
  });
});

it("returns a resource whose operation failed, for the next update", async () => {
  const { cloud, machines } = newCloud();
  machines.scriptResult = () => ({ exitCode: 1, stdout: "", stderr: "boom" });
  await createResources(cloud, "machine");
  const inputs = {
    ...inputsOf("extension"),
    ...parametersOf(type("compute:VirtualMachineExtension"), valid.extension[0]),
  };

  const create = new AzureNative(cloud).create(type("compute:VirtualMachineExtension"), {
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

it("returns the resource when the run is interrupted", async () => {
  const clock = new ManualClock();
  const { cloud } = newCloud({ clock });
  await createResources(cloud, "group");
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
    id: valid.vnet[0],
    reasons: [expect.stringContaining("interrupted")],
  });
});

it("deletes a resource that does not exist without an error", async () => {
  const { cloud } = newCloud();

  await expect(
    new AzureNative(cloud).delete(compute("virtualMachines/none")),
  ).resolves.toBeUndefined();
});
