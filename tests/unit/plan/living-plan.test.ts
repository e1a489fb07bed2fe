import * as pulumi from "@pulumi/pulumi";

import { only } from "../../../components/kubeadm/rotations";
import { generationOf } from "../../../components/machine/generation";
import { fixedDigest, fixedSettings } from "../../../components/plan/fixed-settings";
import * as manifests from "../../../components/add-ons/manifests/manifests";
import * as cloudProviderImages from "../../../components/add-ons/manifests/cloud-provider-images";
import * as galleryImage from "../../../components/azure/image-offers";
import * as registries from "../../../components/azure/registries";
import type { MachineState } from "../../../components/azure/state";
import { PreviousOutputs } from "../../../components/plan/machine-changes";
import * as leftMachines from "../../../components/plan/left-machines";
import { makePlan } from "../../../components/plan/plan";
import * as tokenLogins from "../../../components/plan/federation";
import * as subscription from "../../../components/azure/subscription";
import * as roles from "../../../components/roles";
import { machinesOf } from "../../../components/settings/topology";
import { skusIn } from "../../../tools/local-azure/arm/subscription/offers";
import { order } from "../../support/machines";
import { Recorder } from "../../support/record";
import { alwaysLeft, subscriptionId, validSettings } from "../../support/sample";
import { serve } from "../../support/listen";

const names = machinesOf(validSettings).map(({ name }) => name);
const [first = "", second = "", third = ""] = names;
const step = { kubernetes: validSettings.kubernetesVersion, "bootstrap-requested-at": "then" };

interface Scene {
  readonly settings?: Partial<typeof validSettings>;
  /** @default Azure has no resource group */
  readonly location?: string;
  /** @default that of this stack */
  readonly groupTags?: Readonly<Record<string, string>>;
  /** Machines that Azure has. */
  readonly machines?: readonly string[];
  /** Those of them that are off. */
  readonly off?: readonly string[];
  /** Interfaces that Azure has. */
  readonly interfaces?: readonly (readonly [name: string, address: string])[];
  /** How the step of the first machine has ended. @default well */
  readonly firstStep?: string;
  /** Tags of the first machine and of its step. */
  readonly tags?: Readonly<Record<string, string>>;
  readonly stepTags?: Readonly<Record<string, string>>;
  /** What others have given each machine, and is gone since. */
  readonly identity?: string;
  /** Whether the stack's outputs remember all machines. */
  readonly isRemembered?: boolean;
  /** What they remember besides. */
  readonly remembered?: Partial<PreviousOutputs>;
  readonly kubeconfig?: string;
  /** Namespaces of resource providers that are not registered. */
  readonly unregistered?: readonly string[];
  /** Whether a subnet of others has no address left, and the API its balancer. */
  readonly isFull?: boolean;
  /** An address that a rule of others denies machines. */
  readonly denied?: string;
  /** How often the stack's outputs cannot be read. */
  readonly unreadable?: number;
}

let asked: string[];
afterEach(() => jest.restoreAllMocks());

const tagged = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [`zoned-${key}`, value]));

const inNetwork = `/subscriptions/${subscriptionId}/resourceGroups/network/providers/Microsoft.Network`;
const spoke = `${inNetwork}/virtualNetworks/spoke`;
const nodes = `${spoke}/subnets/nodes`;

const outbound = (
  name: string,
  access: string,
  destinationAddressPrefix: string,
  priority: number,
) => ({
  name,
  properties: {
    ...{ direction: "Outbound", access, priority, protocol: "*", destinationAddressPrefix },
    ...{ sourceAddressPrefix: "*", sourcePortRange: "*", destinationPortRange: "*" },
  },
});

/** What a network of others says. */
function networkAnswer(path: string, { isFull = false, denied }: Scene): object | undefined {
  const guard = `${inNetwork}/networkSecurityGroups/guard`.toLowerCase();
  const properties = { addressPrefix: "10.1.1.0/24", networkSecurityGroup: { id: guard } };
  const answers: Readonly<Record<string, object>> = {
    [spoke]: {
      location: "westeurope",
      properties: {
        addressSpace: { addressPrefixes: ["10.1.0.0/16"] },
        dhcpOptions: { dnsServers: ["10.0.0.4"] },
        subnets: [{ id: nodes, name: "nodes", properties }],
      },
    },
    [`${spoke}/usages`]: {
      value: [{ id: nodes, currentValue: isFull ? 251 : 0, limit: 251 }],
    },
    [`${spoke}/CheckIPAddressAvailability`]: { available: true },
    [guard]: {
      properties: {
        securityRules: [
          outbound("services", "Allow", "AzureCloud", 200),
          outbound("closed", "Deny", "Internet", 300),
          outbound("k8s-azure-lb_of_a_service", "Allow", "10.1.1.0/24", 500),
          ...(denied === undefined ? [] : [outbound("barrier", "Deny", denied, 150)]),
        ],
      },
    },
  };
  return answers[path];
}

/** The plan of a stack, and what is said of it, by what Azure and the outputs have. */
async function plan({ machines = [], tags = {}, stepTags = {}, ...scene }: Scene) {
  const own = { ...validSettings, cni: "flannel" as const, diskDriver: false };
  const wanted = { ...own, skipHealthCheckUntil: "29990101T000000Z", ...scene.settings };
  const vm = (name: string) => ({
    name,
    type: "Microsoft.Compute/virtualMachines",
    properties: {
      hardwareProfile: { vmSize: "Standard_D2s_v5" },
      storageProfile: { imageReference: { version: "1.0.0" } },
    },
    ...(scene.identity !== undefined && {
      identity: { type: "UserAssigned", userAssignedIdentities: { [scene.identity]: {} } },
    }),
    tags: tagged({
      generation: generationOf(
        machinesOf(validSettings).find((one) => one.name === name)!,
        validSettings,
      ),
      initialization: "1-then",
      "created-at": "then",
      ...(name === first && tags),
    }),
  });
  const answer = (path: string): object | undefined => {
    const [, machine = ""] = /virtualMachines\/([^/]+)\/extensions/.exec(path) ?? [];
    if (machine !== "") {
      const isFirst = machine === first;
      const provisioningState = (isFirst ? scene.firstStep : undefined) ?? "Succeeded";
      const tags = tagged({ ...step, ...(isFirst ? stepTags : {}) });
      return { properties: { provisioningState }, tags };
    }
    const [, viewed = ""] = /virtualMachines\/([^/]+)\/instanceView/.exec(path) ?? [];
    if (viewed !== "") {
      const power = scene.off?.includes(viewed) ? "deallocated" : "running";
      return { statuses: [{ code: `PowerState/${power}` }] };
    }
    if (path.endsWith("/vmSizes")) return { value: [{ name: "Standard_D8s_v5" }] };
    if (path.endsWith("/virtualMachines")) return { value: machines.map(vm) };
    if (path === "/subscriptions") return { value: [{ subscriptionId, tenantId: "tenant" }] };
    if (/^\/subscriptions\/[^/]+$/.test(path)) return { state: "Enabled" };
    if (path.endsWith("/networkInterfaces")) {
      const value = (scene.interfaces ?? []).map(([name, privateIPAddress]) => ({
        name,
        properties: { ipConfigurations: [{ properties: { privateIPAddress } }] },
      }));
      return { value };
    }
    if (path.endsWith("/loadBalancers") && scene.isFull)
      return { value: [{ name: "zoned-test-api" }] };
    if (/\/Microsoft\.(Network|ManagedIdentity)\/\w+$/.test(path)) return { value: [] };
    if (path === scene.identity) return undefined;
    if (path.endsWith("/storageAccounts"))
      return scene.unregistered?.includes("Microsoft.Storage")
        ? { error: { code: "MissingSubscriptionRegistration", message: "" } }
        : { value: [] };
    const inSpoke = networkAnswer(path, scene);
    if (inSpoke !== undefined) return inSpoke;
    if (path.endsWith("/skus")) return { value: skusIn("westeurope") };
    if (/\/(usages|publicIPAddresses)$/.test(path)) return { value: [] };
    if (path.includes("/versions/")) return { name: "it" };
    if (path.endsWith("/CheckDnsNameAvailability")) return { available: true };
    if (/\/providers\/[\w.]+$/.test(path)) {
      const namespace = path.split("/").at(-1)!;
      const isMissing = scene.unregistered?.includes(namespace);
      return { namespace, registrationState: isMissing ? "NotRegistered" : "Registered" };
    }
    const { location, groupTags = { "zoned-stack": "organization/zoned/test" } } = scene;
    return location === undefined
      ? undefined
      : { location, tags: groupTags, properties: { provisioningState: "Succeeded" } };
  };
  asked = [];
  const resourceManagerEndpoint = await serve(({ url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    asked.push(pathname);
    const body = answer(pathname) ?? { error: { code: "ResourceGroupNotFound", message: "" } };
    const refusal = JSON.stringify(body).includes("Registration") ? 409 : 404;
    response.writeHead("error" in body ? refusal : 200).end(JSON.stringify(body));
  });
  const memory: PreviousOutputs = {
    initialization: "1-then",
    controlPlanes: 3,
    settings: fixedSettings(own),
    ...alwaysLeft,
    machines: Object.fromEntries(
      names.map((name) => [name, { ...order, createdAt: "then", bootstrapRequestedAt: "then" }]),
    ),
    ...scene.remembered,
  };
  let unreadable = scene.unreadable ?? 0;
  await Recorder.start({
    calls: {
      "azure-native:authorization:getClientToken": () => ({ token: "token" }),
      "pulumi:pulumi:readStackOutputs": () => {
        if (unreadable-- > 0) throw new Error("unexpected end of JSON input");
        const machines = machinesOf(validSettings).map(({ name, address, zone }) => ({
          ...{ name, address },
          zone: `westeurope-${zone}`,
        }));
        const outputs = { cluster: memory, machines, kubeconfig: scene.kubeconfig };
        return { outputs: scene.isRemembered ? outputs : {} };
      },
    },
  });
  const says: string[] = [];
  jest.spyOn(pulumi.log, "info").mockImplementation(async (text) => void says.push(text));
  const made = await makePlan({
    ...wanted,
    resourceManagerEndpoint,
  });
  return { ...made, says };
}

const living = { location: "westeurope", machines: names };

it("orders nothing of machines that are as they shall be", async () => {
  const { retained, machineRecords, says } = await plan({ ...living, isRemembered: false });

  expect([...retained]).toEqual(names);
  for (const one of machineRecords.values())
    expect(one).toMatchObject({ createdAt: "then", bootstrapRequestedAt: "then" });
  expect(says).toEqual([]);
});

it("says what it would do to a machine, and orders its step anew where it is replaced", async () => {
  const { retained, machineRecords, says } = await plan({
    ...living,
    tags: { generation: "before" },
  });

  expect(says).toEqual([`this change would replace ${first}`]);
  expect([...retained]).toEqual(names.slice(1));
  expect(machineRecords.get(first)!.bootstrapRequestedAt).not.toBe("then");
  expect(machineRecords.get(second)!.bootstrapRequestedAt).toBe("then");
});

it("has a machine deallocated and started for a size that its hardware has not", async () => {
  const size = (controlPlaneSize: string) => plan({ ...living, settings: { controlPlaneSize } });

  const { deallocated, started, says } = await size("Standard_D4s_v5");
  expect([...deallocated]).toEqual(names.slice(0, 3));
  expect([...started]).toEqual(names.slice(0, 3));
  expect(says[0]).toBe(
    `this change would resize ${first}: Standard_D2s_v5 -> Standard_D4s_v5, deallocated for it, and started again`,
  );
  expect((await size("Standard_D8s_v5")).started.size).toBe(0);
});

it("warns of an identity that no change of a machine may name, and refuses to resize or replace what has it", async () => {
  const identity = `/subscriptions/${subscriptionId}/resourceGroups/theirs/providers/Microsoft.ManagedIdentity/userAssignedIdentities/gone`;
  const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
  const says = `${names.join(", ")} have the identity ${identity}, `;

  await plan({ ...living, identity });

  expect(warn.mock.calls).toEqual([[expect.stringContaining(says)]]);
  const resized = plan({ ...living, identity, settings: { controlPlaneSize: "Standard_D4s_v5" } });
  await expect(resized).rejects.toThrow(says);
  const replaced = plan({ ...living, identity, tags: { generation: "before" } });
  await expect(replaced).rejects.toThrow(says);
  expect(warn).toHaveBeenCalledTimes(1);
});

it("says which machines are off, and leaves them so where nothing needs them", async () => {
  const worker = names.at(-1)!;

  const { stepRefusals, started, says } = await plan({ ...living, off: [worker] });

  expect(says).toEqual([`${worker} is deallocated, and stays so`]);
  expect([...stepRefusals.keys()]).toEqual([worker]);
  expect(started.size).toBe(0);
});

it("orders a machine anew that somebody deleted, whatever the outputs remember", async () => {
  const { machineRecords } = await plan({
    ...living,
    machines: names.slice(1),
    isRemembered: true,
  });

  expect(machineRecords.get(first)!.createdAt).not.toBe("then");
  expect(machineRecords.get(second)!.createdAt).toBe("then");
});

const worker = names.find((name) => name.includes("workers"))!;

const leaver = { removedFromEtcd: true };
const noMember = "it is no member of etcd";

it.each<[string, Partial<MachineState>, readonly string[], string, Scene]>([
  [
    "control planes that have left etcd, first of all, where nobody can ask the cluster",
    leaver,
    [second, third],
    noMember,
    { settings: { skipHealthCheckUntil: "" } },
  ],
  [
    "them also in the midst of an upgrade",
    leaver,
    [second, third],
    noMember,
    { isRemembered: true, stepTags: { kubernetes: "1.36.0" } },
  ],
  [
    "a worker that runs and has no Node",
    { lacksNode: true },
    [worker],
    "it runs, and the cluster has no Node of it",
    {},
  ],
  [
    "a control plane that runs and has no Node",
    ...([{ lacksNode: true }, [second], "it runs, and the cluster has no Node of it"] as const),
    {},
  ],
  [
    "it also in the midst of an upgrade",
    ...([{ lacksNode: true }, [second], "it runs, and the cluster has no Node of it"] as const),
    { isRemembered: true, stepTags: { kubernetes: "1.36.0" } },
  ],
])("orders %s anew, though Azure has them as they shall be", async (_, mark, gone, why, scene) => {
  const stays = (name: string) => !gone.includes(name);
  jest.spyOn(leftMachines, "markLeft").mockImplementation(async ({ azure }) => {
    const marked = [...azure.machines].map(([name, one]): [string, MachineState] => [
      name,
      stays(name) ? one : { ...one, ...mark },
    ]);
    return { ...azure, machines: new Map(marked) };
  });

  const { machineRecords, retained, says, turns } = await plan({ ...living, ...scene });

  for (const name of gone)
    expect(says).toContainEqual(expect.stringContaining(`would replace ${name}: ${why}`));
  expect([...retained]).toEqual(names.filter(stays));
  for (const order of ["createdAt", "bootstrapRequestedAt"] as const) {
    const anew = names.filter((name) => machineRecords.get(name)![order] !== "then");
    expect(anew).toEqual(gone);
  }
  const controlPlanes = names.slice(0, 3);
  expect(turns.map(({ name }) => name)).toEqual([
    ...controlPlanes.filter((name) => !stays(name)),
    ...controlPlanes.filter(stays),
  ]);
});

it("has the step run of a machine that an update has drained and did not come to", async () => {
  jest.spyOn(leftMachines, "markLeft").mockImplementation(async ({ azure }) => ({
    ...azure,
    machines: new Map(
      [...azure.machines].map(([name, one]) => [name, { ...one, isDrained: name === second }]),
    ),
  }));

  const { machineRecords, retained } = await plan(living);

  const again = names.filter((name) => machineRecords.get(name)!.bootstrapRequestedAt !== "then");
  expect(again).toEqual([second]);
  expect([...retained]).toEqual(names);
});

it.each([
  [
    "has the step run again of a machine that a killed update has configured otherwise",
    "other",
    [first],
  ],
  ["orders no other run of a step that did what the last update left", order.configuration, []],
])("%s", async (_, configuration, again) => {
  const scene = { ...living, isRemembered: true, stepTags: { configuration } };
  const { machineRecords } = await plan(scene);

  const ordered = names.filter((name) => machineRecords.get(name)!.bootstrapRequestedAt !== "then");
  expect(ordered).toEqual(again);
});

const wanted = machinesOf(validSettings).at(-1)!;

it.each<[string, Scene]>([
  ["its own interface", { ...living, interfaces: [[`${wanted.name}-nic`, wanted.address]] }],
  ["what is no machine's", { ...living, interfaces: [["zoned-test-other", wanted.address]] }],
  [
    "an interface that moves, of a cluster that is not there yet",
    { location: "westeurope", interfaces: [[`${wanted.name}-nic`, "172.16.1.99"]] },
  ],
])("gives a machine its address beside %s", async (_, scene) => {
  expect((await plan(scene)).workers.at(-1)!.address).toBe(wanted.address);
});

const left = ["zoned-test-gpu-1-nic", wanted.address] as const;
const taken = new RegExp(
  `${wanted.name} would get ${wanted.address.replaceAll(".", "\\.")}, which zoned-test-gpu-1 has`,
);

it.each<[string, Scene, RegExp]>([
  [
    "an address that an interface has which a first update has left",
    { location: "westeurope", interfaces: [left] },
    taken,
  ],
  [
    "an address that an interface has which no outputs know",
    { isRemembered: true, interfaces: [left], machines: names.slice(0, -1) },
    taken,
  ],
  ["an older version", { stepTags: { kubernetes: "1.99.0" } }, /cannot go back/],
  [
    "other settings of those for its life than its first step has begun it with, which no outputs remember yet",
    { stepTags: { fixed: "others" } },
    /zoned-test-cp-1 began this cluster with other settings .*podCidr/,
  ],
  [
    "another region than that of its resource group, which no outputs remember yet",
    { location: "northeurope" },
    /location is westeurope, and this stack's cluster was made with northeurope/,
  ],
  [
    "a machine of a cluster that is not checked",
    { settings: { skipHealthCheckUntil: "" }, tags: { generation: "before" } },
    /would replace .*no output kubeconfig/s,
  ],
  [
    "machines that are off, and does not ask a cluster without an API",
    { off: names, settings: { skipHealthCheckUntil: "" }, stepTags: { configuration: "before" } },
    /cannot be deployed:\n {2}- zoned-test-cp-1 is deallocated \(no API answers without it\), [^\n]*; do az vm start --resource-group zoned-test --name \$name; done, then run pulumi up again$/,
  ],
  [
    "zones in an order that would move machines",
    { isRemembered: true, settings: { zones: ["2", "1", "3"] } },
    /test-cp-1 would move from 172\.16\.1\.4 to 172\.16\.2\.4/,
  ],
  [
    "an encryption of the operator's own, while Secrets are encrypted with a key of the program's",
    {
      isRemembered: true,
      remembered: { encryptionKeys: only(1) },
      settings: {
        kubeadm: {
          ...validSettings.kubeadm,
          apiServerExtraArgs: { "encryption-provider-config": "/etc/own/encryption.yaml" },
        },
      },
    },
    /no API server could read them/,
  ],
])("refuses %s", async (_, scene, says) => {
  await expect(plan({ ...living, ...scene })).rejects.toThrow(says);
});

it.each([
  ["other settings of those for a cluster's life than now", "others", []],
  ["the same", fixedDigest({ ...validSettings, cni: "flannel" }), [first]],
])(
  "makes a machine anew whose step has begun an empty cluster and not ended well, with %s: %s",
  async (_, fixed, stays) => {
    const begun = { location: "westeurope", machines: [first], firstStep: "Failed" };

    const { retained, machineRecords } = await plan({ ...begun, stepTags: { fixed } });

    expect([...retained]).toEqual(stays);
    expect(machineRecords.get(first)!.createdAt === "then").toBe(stays.length > 0);
  },
);

it("orders nothing for a step that shows other settings than outputs, which know", async () => {
  const { retained } = await plan({
    ...{ ...living, isRemembered: true, stepTags: { fixed: "others" } },
  });

  expect([...retained]).toEqual(names);
});

describe("a restoration amid an upgrade", () => {
  const { kubernetesVersion } = validSettings;
  const later = `${kubernetesVersion}0`;
  const container = `/subscriptions/${subscriptionId}/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd`;
  const etcdBackups = { container, every: "1h", endpoint: "http://127.0.0.1:9" };
  const restoring = { etcdBackups, restoreFrom: "latest" };
  const cluster = { server: "https://127.0.0.1:9" };
  const kubeconfig = JSON.stringify({ clusters: [{ cluster }], users: [{ user: {} }] });
  const byChoice = { ...restoring, reinitialize: "1-then" };
  const asking = { ...restoring, skipHealthCheckUntil: "" };

  it.each<[string, Scene]>([
    [
      "goes on with it, though control planes are lost that no outputs know to have made it",
      { machines: names.slice(3), settings: { ...restoring, kubernetesVersion: later } },
    ],
    [
      "goes back by choice while no worker has made it, though a control plane has",
      { settings: byChoice, stepTags: { kubernetes: later } },
    ],
    [
      "goes back where the step has failed of the one that is left, whose etcd nobody asks",
      {
        ...{ machines: [first, ...names.slice(3)], settings: asking, kubeconfig },
        ...{ firstStep: "Failed", stepTags: { kubernetes: "1.99.0" } },
      },
    ],
  ])("%s", async (_, scene) => {
    jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

    const { initialization } = await plan({ ...living, isRemembered: true, ...scene });

    expect(initialization.isRestoring).toBe(true);
  });
});

it("takes no cluster for lost that is in another subscription than the login's, and asks nothing of that one", async () => {
  const at = (had: string) =>
    plan({ ...living, isRemembered: true, remembered: { subscriptionId: had } });
  const other = "0e5b7f0a-0000-4000-8000-000000000001";

  const refused = at(other);
  await expect(refused).rejects.toThrow(
    `this stack's cluster is in subscription ${other}, and the login's is ${subscriptionId}. Nothing was changed. `,
  );
  await expect(refused).rejects.toThrow(`pulumi config set azure-native:subscriptionId ${other}`);
  expect(asked).toEqual(["/subscriptions"]);
  // Azure writes it in either case.
  await expect(at(subscriptionId.toUpperCase())).resolves.toBeDefined();
});

it("asks what a subscription lacks before the first update, and then for what is new", async () => {
  const unregistered = ["Microsoft.Compute", "Microsoft.Storage"];
  await expect(plan({ unregistered })).rejects.toThrow(
    /az provider register --namespace Microsoft.Compute/,
  );

  await plan({ ...living, unregistered });

  const settings = { machineIdentity: false, servicePrincipal: undefined };
  const planning = plan({ ...living, unregistered, settings });
  await expect(planning).rejects.toThrow(/^((?!Compute)[^])*--namespace Microsoft.Storage --wait$/);
});

it("refuses a group of another stack beside what a first update lacks, and thinks nothing of its machines", async () => {
  const groupTags = { "zoned-stack": "organization/zoned/other" };
  const theirs = { ...living, groupTags, unregistered: ["Microsoft.Network"] };

  await expect(plan(theirs)).rejects.toThrow(
    /deployed:\n.*Microsoft\.Network is NotRegistered[^\n]*\n.*zoned-test is there already, with the tag [^\n]*$/,
  );

  await expect(plan({ ...living, groupTags: {}, isRemembered: true })).resolves.toBeDefined();
});

it("asks again what a first update asks that was interrupted before its first machine", async () => {
  const begun = { location: "westeurope", unregistered: ["Microsoft.Compute"] };

  await expect(plan(begun)).rejects.toThrow(/--namespace Microsoft.Compute --wait$/);
});

it.each([
  ["the subscription before there is a group", undefined, ""],
  ["the group that is there", "westeurope", "/resourceGroups/zoned-test"],
])("asks for the locks and the policies of %s", async (_, location, scope) => {
  await plan({ location });

  for (const what of ["Authorization/locks", "PolicyInsights/checkPolicyRestrictions"])
    expect(asked).toContain(`/subscriptions/${subscriptionId}${scope}/providers/Microsoft.${what}`);
});

it("looks for roles of other stacks before the first update alone, and for images of the cloud provider before a new minor too", async () => {
  jest.spyOn(roles, "takenRoles").mockResolvedValue(["the roles are taken"]);
  jest.spyOn(cloudProviderImages, "cloudProviderProblems").mockResolvedValue(["no image"]);
  const find = jest.spyOn(manifests, "findManifests");

  await expect(plan({})).rejects.toThrow(/the roles are taken[^]*no image/);
  await plan(living);

  expect(find.mock.calls.map(([, { isBegun }]) => isBegun)).toEqual([false, true]);
  const halfWay = { ...living, isRemembered: true, stepTags: { kubernetes: "1.36.3" } };
  await expect(plan(halfWay)).rejects.toThrow(/^((?!the roles)[^])*no image/);
});

it("asks of a living cluster alone whether the login may give its roles more", async () => {
  jest.spyOn(roles, "roleProblems").mockResolvedValue(["the roles stay as they are"]);

  await expect(plan({})).resolves.toBeDefined();
  await expect(plan(living)).rejects.toThrow(/the roles stay as they are/);
});

it("looks for the token issuer's account of others, also when a living cluster has its first", async () => {
  const isTaken = jest.spyOn(subscription, "accountProblems");
  isTaken.mockResolvedValue(["the account is taken"]);

  for (const scene of [{}, living]) {
    await expect(plan(scene)).rejects.toThrow(/the account is taken/);
  }
});

it("leaves the identity on control planes as long as something speaks for it, and kubelets theirs", async () => {
  const identity = { clientId: "of kubelets", principalId: "theirs" };
  const settings = { machineIdentity: false, servicePrincipal: undefined };
  const answer = { registries: [], identity, problems: [], warnings: [] };
  jest.spyOn(registries, "getRegistries").mockResolvedValue(answer);
  jest.spyOn(tokenLogins, "getLoginProblem").mockResolvedValue("nobody has asked");
  const remembered = { isFederated: true } as const;

  const made = await plan({ ...living, settings, isRemembered: true, remembered });

  expect(made.federation.isOnMachines).toBe(true);
  expect(made.existingKubeletIdentity).toBe(identity);
});

it("leaves machines alone as long as there is a gallery image, whatever that begins with, and says what new ones lack", async () => {
  const image = `${inNetwork.replace("Network", "Compute")}/galleries/g/images/i/versions/1.0.0`;
  const settings = { image, imageVersion: "24.04.202607140" };
  const lacking = ["no containerd"];
  jest.spyOn(galleryImage, "getGalleryImage").mockResolvedValue({ isDeployable: true, lacking });
  const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

  expect([...(await plan({ ...living, settings })).retained]).toEqual(names);
  expect(warn).not.toHaveBeenCalled();
  const without = { ...settings, image: "" };
  expect([...(await plan({ ...living, settings: without })).retained]).toEqual([]);
  await plan({ ...living, settings, machines: names.slice(1) });

  expect(warn).toHaveBeenCalledWith(expect.stringContaining("image has no containerd"));
});

it("refuses a container for snapshots that is not there", async () => {
  const id = `/subscriptions/${subscriptionId}/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/backups/blobServices/default/containers/etcd`;
  const settings = { etcdBackups: { container: id, every: "1h" } };

  await expect(plan({ settings })).rejects.toThrow(/expected a container that Azure has/);
});

it("reads the outputs again that are being written at the moment", async () => {
  const { machineRecords } = await plan({
    ...living,
    machines: names.slice(1),
    isRemembered: true,
    unreadable: 2,
  });

  expect(machineRecords.get(second)!.createdAt).toBe("then");
});

describe("a living cluster in a network of others", () => {
  const settings = { apiAccess: "private", nodeSubnets: [nodes] } as const;
  const fixed = fixedSettings({ ...validSettings, cni: "flannel", ...settings });
  const remembered = { settings: fixed, apiAddress: "10.1.1.77" };
  const scene = { ...living, settings, isRemembered: true, remembered };

  it("has a private API at the address that the outputs remember, and who keeps DNS and rules told", async () => {
    const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

    expect((await plan(scene)).apiAddress).toBe("10.1.1.77");

    const said = warn.mock.calls.join("\n");
    expect(said).toContain("spoke has DNS servers of its own");
    expect(said).toContain("rules before it have to let machines out");
    // Of its own Services, whose rules are called so too.
    expect(said).not.toContain("k8s-azure-lb");
  });

  it("bears a rule that denies its machines a neighbour, and none that denies them their own API", async () => {
    jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

    await plan({ ...scene, denied: "10.1.1.99/32" });

    await expect(plan({ ...scene, denied: "10.1.1.77/32" })).rejects.toThrow(
      /the rule barrier .* by which machines ask the API/,
    );
  });

  it("is told where its API will answer when it is restored, and not that the lost one does not", async () => {
    const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
    const nowhere = "127.0.0.1:9";
    const container = `/subscriptions/${subscriptionId}/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd`;
    const etcdBackups = { container, every: "1h", endpoint: `http://${nowhere}` };
    const cluster = { server: `https://${nowhere}` };

    await plan({
      ...{ ...scene, settings: { ...settings, etcdBackups, restoreFrom: "latest" } },
      machines: names.slice(3),
      kubeconfig: JSON.stringify({ clusters: [{ cluster }], users: [{ user: {} }] }),
    });

    expect(warn.mock.calls.join("\n")).toContain("the API will answer at 10.1.1.77 port 6443");
  });

  it("is only warned of a range of the network that its pods have too", async () => {
    const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
    const podCidr = "10.1.0.0/16";

    await plan({
      ...{ ...scene, settings: { ...settings, podCidr } },
      remembered: { ...remembered, settings: { ...fixed, podCidr } },
    });

    expect(warn.mock.calls.join("\n")).toContain("the cluster reaches nothing there");
  });

  it("needs no address for what has one, also where a machine is made anew", async () => {
    jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
    const interfaces = machinesOf(validSettings).map(
      ({ name, address }) => [`${name}-nic`, address] as const,
    );

    await plan({ ...scene, machines: names.slice(1), interfaces, isFull: true });
  });
});

it("does not take a cluster in a shared group for lost whose stack has another name now", async () => {
  const settings = { resourceGroup: "platform" };
  const fixed = fixedSettings({ ...validSettings, cni: "flannel", ...settings });
  const renamed = plan({
    ...living,
    settings,
    isRemembered: true,
    remembered: { settings: fixed },
    tags: { stack: "organization/zoned/before" },
  });

  await expect(renamed).rejects.toThrow(/pulumi stack rename/);
  await expect(renamed).rejects.not.toThrow(/reinitialize/);
});

it.each<[string, Partial<PreviousOutputs>, number]>([
  ["warns where it takes the disk driver away", { diskDriver: true }, 1],
  ["says nothing of a disk driver that was never there", {}, 0],
])("%s", async (_, remembered, times) => {
  const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);

  await plan({ ...living, isRemembered: true, remembered });

  expect(warn).toHaveBeenCalledTimes(times);
  for (const [text] of warn.mock.calls) expect(text).toMatch(/takes Azure's disk driver .* away/);
});
