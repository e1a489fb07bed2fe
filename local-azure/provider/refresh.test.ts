import { build, newCloud } from "../resource-manager/fixture";
import { network, sound } from "../resource-manager/sample";
import { typeOf, typeOfToken } from "../resource-manager/types";
import { Properties } from "../standins/protocol/values";
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

const read = async (
  kind: keyof typeof sound,
  token: string,
  change?: (cloud: ReturnType<typeof newCloud>["cloud"]) => Promise<unknown>,
) => {
  const { cloud } = newCloud();
  await build(cloud);
  const azure = new AzureNative(cloud);
  const [id] = sound[kind];
  const inputs = { ...inputsOf(kind), azureApiVersion: "x" };
  const before = await azure.read(type(token), { ...subject, id, state: {}, inputs: {} });
  await change?.(cloud);
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

it("takes a changed value into the inputs, and no default", async () => {
  const { inputs, now } = await read("machine", "compute:VirtualMachine", (cloud) =>
    cloud.put(sound.machine[0], {
      ...sound.machine[1],
      hardwareProfile: { vmSize: "Standard_D4s_v5" },
    }),
  );

  expect(now?.inputs).toEqual({ ...inputs, hardwareProfile: { vmSize: "Standard_D4s_v5" } });
});

it("leaves what others made or attached out of the inputs", async () => {
  const rule = await read("securityGroup", "network:NetworkSecurityGroup", (cloud) =>
    cloud.put(network("networkSecurityGroups/nsg/securityRules/cloud"), {
      ...sound.rule[1],
      priority: 500,
    }),
  );
  const balancer = await read("balancer", "network:LoadBalancer", (cloud) =>
    cloud.delete(sound.machine[0]).then(() => cloud.delete(sound.nic[0])),
  );

  expect(rule.now?.inputs).toEqual(rule.inputs);
  expect(rule.now?.state).toMatchObject({ securityRules: [{ name: "api" }, { name: "cloud" }] });
  expect(balancer.now?.inputs).toEqual(balancer.inputs);
});

it("says that a resource is gone", async () => {
  const { now } = await read("extension", "compute:VirtualMachineExtension", (cloud) =>
    cloud.delete(sound.extension[0]),
  );

  expect(now).toBeUndefined();
});

it("finds by an id what a program has to write to import it", async () => {
  const { cloud } = newCloud();
  await build(cloud);

  const found = await new AzureNative(cloud).read(type("compute:VirtualMachineExtension"), {
    ...subject,
    id: sound.extension[0],
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
