import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import type { Ended } from "../../pulumi/pulumi";
import {
  type Created,
  type Exported,
  idOfCreated,
  type Inputs,
  inputsOf,
  type PendingOperation,
  type Recorded,
  subscriptionIn,
  unknown,
  withCreated,
} from "../azure";
import { ownSubscription } from "../own-pulumi";
import { recover } from "../recover";
import * as concurrency from "../../shared/concurrency";
import { Progress } from "../../shared/progress";
import { testFolder } from "../../../tests/support/test-folder";

const subscription = "5ca1ab1e-0000-4000-8000-000000000001";
const groupId = `/subscriptions/${subscription}/resourceGroups/zoned-prod`;

const urn = (type: string, name: string): string => `urn:pulumi:prod::zoned::${type}::${name}`;

const resource = (type: string, name: string, inputs: Inputs, more: object = {}): Recorded => ({
  urn: urn(type, name),
  type,
  custom: true,
  inputs,
  ...more,
});

const groupName = { resourceGroupName: "zoned-prod" };
const group = resource("azure-native:resources:ResourceGroup", "cluster", groupName, {
  id: groupId,
  outputs: { name: "zoned-prod" },
});
const vmId = `${groupId}/providers/Microsoft.Compute/virtualMachines/m`;
const sentVm = { ...groupName, vmName: "m", size: "B2s", osProfile: { customData: "x" } };
const vm = resource("azure-native:compute:VirtualMachine", "m-vm", sentVm, {
  dependencies: [group.urn],
});
const ipId = `${groupId}/providers/Microsoft.Network/publicIPAddresses/ip`;
const ip = resource(
  "azure-native:network:PublicIPAddress",
  "ip",
  { ...groupName, publicIpAddressName: "ip" },
  { dependencies: [group.urn] },
);
const secret = resource("kubernetes:core/v1:Secret", "token", { metadata: { name: "token" } });

/** An engine with one stack, and an Azure that shows these outputs by id. */
class Pulumi {
  readonly calls: string[] = [];
  /** The words of each call. */
  readonly words: (readonly string[])[] = [];
  plan: { code: number; steps?: object[]; diagnostics?: object[] } = { code: 0, steps: [] };
  last = { kind: "update", result: "succeeded" };
  /** What Azure works on, and how it says so, for so many looks. */
  working = { state: "", looks: 0 };
  interruptedRefreshes = 0;
  /** Whether Azure refuses to say what it has. */
  isThrottled = false;
  state: Exported;

  constructor(
    resources: readonly Recorded[],
    pending: readonly PendingOperation[],
    readonly azure: Record<string, Inputs>,
  ) {
    this.state = { version: 3, deployment: { resources, pending_operations: pending } };
  }

  get resources(): readonly Recorded[] {
    return this.state.deployment.resources ?? [];
  }

  run = async (args: readonly string[]): Promise<Ended> => {
    const command = args.slice(0, args[0] === "stack" ? 2 : 1).join(" ");
    this.calls.push(command);
    this.words.push(args);
    const ended = (stdout: unknown, code = 0): Ended => ({
      code,
      stdout: JSON.stringify(stdout),
      stderr: "",
    });
    switch (command) {
      case "stack export":
        return ended(this.state);
      case "stack import":
        await wait(20);
        this.state = JSON.parse(readFileSync(args.at(-1)!, "utf8")) as Exported;
        return ended("");
      case "stack history":
        return ended([{ kind: "refresh" }, this.last]);
      case "preview":
        return ended(this.plan, this.plan.code);
      case "refresh":
        if (this.interruptedRefreshes-- > 0) return ended("cut off", 1);
        this.refresh(args.filter((_, index) => args[index - 1] === "--target"));
        return ended("");
      default:
        throw new Error(`pulumi ${command} is not known here`);
    }
  };

  /** As azure-native: what Azure shows becomes the inputs, where nothing was read before. */
  private refresh(targets: readonly string[]): void {
    const isWorking = this.working.looks-- > 0;
    const resources = this.resources.flatMap((one): Recorded[] => {
      if (this.isThrottled) return [one];
      if (!targets.includes(one.urn) || one.pendingReplacement) return [one];
      const shown = this.azure[one.id!];
      if (shown === undefined) return [];
      const outputs = isWorking ? { ...shown, provisioningState: this.working.state } : shown;
      return [{ ...one, outputs, inputs: { ...one.inputs, ...outputs } }];
    });
    this.state = { ...this.state, deployment: { ...this.state.deployment, resources } };
  }
}

let copies: string;
beforeEach(() => (copies = testFolder()));

const recovered = (pulumi: Pulumi, more: object = {}) =>
  recover({ stack: "prod", pulumi: pulumi.run, copies, ...more });

const named = { subscription: async () => subscription };

const creating = (one: Recorded): PendingOperation => ({ type: "creating", resource: one });

const shownVm = { ...sentVm, osProfile: { computerName: "m" }, provisioningState: "Succeeded" };

it("asks for no plan while nothing is pending and the last update ended well", async () => {
  const pulumi = new Pulumi([group], [], {});

  expect(await recovered(pulumi, { onlyAfterFailure: true })).toMatchObject({ adopted: [] });
  expect(pulumi.calls).toEqual(["stack export", "stack history"]);
});

it("records what was begun and is there with what was sent, and forgets what is not there", async () => {
  const pulumi = new Pulumi([group], [creating(vm), creating(ip), creating(secret)], {
    [vmId]: shownVm,
  });

  expect(await recovered(pulumi)).toMatchObject({
    adopted: ["m-vm"],
    forgotten: ["ip"],
    left: ["token"],
    failed: [],
  });
  expect(pulumi.resources).toEqual([group, { ...vm, id: vmId, outputs: shownVm, inputs: sentVm }]);
  expect(pulumi.state.deployment.pending_operations).toEqual([]);
});

it("keeps a copy of the state as it was that nobody else can read, and no other file", async () => {
  const pulumi = new Pulumi([group], [creating(vm)], {});
  const before = pulumi.state;

  copies = join(copies, "new");
  const { copy } = await recovered(pulumi);

  expect(readdirSync(copies).map((name) => join(copies, name))).toEqual([copy]);
  expect(statSync(copies).mode & 0o777).toBe(0o700);
  expect(JSON.parse(readFileSync(copy!, "utf8"))).toEqual(before);
  expect(statSync(copy!).mode & 0o777).toBe(0o600);
});

it("changes nothing where no copy of the state can be kept, and says how to go on", async () => {
  const pulumi = new Pulumi([group], [creating(vm)], { [vmId]: shownVm });
  copies = join(copies, "file", "copies");
  writeFileSync(dirname(copies), "");

  await expect(recovered(pulumi)).rejects.toThrow(
    /copies: a part of its path is a file\. Nothing was changed\. .*--copies FOLDER/,
  );
  expect(pulumi.calls).not.toContain("stack import");
});

it("goes on where it was cut off", async () => {
  const pulumi = new Pulumi([group], [creating(vm)], { [vmId]: shownVm });
  pulumi.interruptedRefreshes = 1;
  const said: string[] = [];
  const progress = new Progress({ write: (text: string) => said.push(text) });

  await expect(recovered(pulumi, { progress })).rejects.toThrow(
    /pulumi refresh ended with 1:\n"cut off"/,
  );
  // The engine would take what is not there for what is.
  expect(said.at(-1)).toMatch(
    /^the state has m-vm for now, .*run this again, before any pulumi up/,
  );
  expect(pulumi.state.deployment.pending_operations).toHaveLength(1);
  expect(await recovered(pulumi)).toMatchObject({ adopted: ["m-vm"] });
  expect(pulumi.resources).toEqual([group, { ...vm, id: vmId, outputs: shownVm, inputs: sentVm }]);
});

it("reads again what Azure did not say when it was put into the state", async () => {
  const pulumi = new Pulumi([group], [creating(vm), creating(ip)], { [vmId]: shownVm });
  pulumi.isThrottled = true;

  await expect(recovered(pulumi)).rejects.toThrow(
    "Azure does not say whether it has m-vm, ip, which the state has for now: run this again",
  );
  pulumi.isThrottled = false;
  // The engine forgets them.
  pulumi.state = {
    ...pulumi.state,
    deployment: { ...pulumi.state.deployment, pending_operations: [] },
  };

  expect(await recovered(pulumi)).toMatchObject({ adopted: ["m-vm"], forgotten: ["ip"] });
  expect(pulumi.resources).toEqual([group, { ...vm, id: vmId, outputs: shownVm, inputs: sentVm }]);
});

it("forgets a role assignment that is not there also where the plugin takes that for an error", async () => {
  const scope = `/subscriptions/${subscription}`;
  const [there, gone] = ["aaaa-1", "bbbb-2"].map((roleAssignmentName) =>
    resource("azure-native:authorization:RoleAssignment", roleAssignmentName, {
      ...{ scope, roleAssignmentName },
    }),
  ) as [Recorded, Recorded];
  const shown = { name: "aaaa-1" };
  const pulumi = new Pulumi([group], [there, gone].map(creating), {
    [`${scope}/providers/Microsoft.Authorization/roleAssignments/aaaa-1`]: shown,
  });
  const run = async (args: readonly string[]): Promise<Ended> => {
    if (args[0] !== "refresh" || !args.includes(gone.urn)) return pulumi.run(args);
    const others = args.filter((word) => word !== gone.urn);
    await pulumi.run(others);
    const message = "The role assignment 'bbbb-2' is not found.";
    return {
      ...{ code: 255, stdout: "" },
      stderr: `error: Status=404 Code="RoleAssignmentNotFound" Message="${message}"`,
    };
  };

  expect(await recovered(pulumi, { pulumi: run })).toMatchObject({
    adopted: ["aaaa-1"],
    forgotten: ["bbbb-2"],
  });
  expect(pulumi.resources.map(({ urn }) => urn)).toEqual([group.urn, there.urn]);
  expect(pulumi.state.deployment.pending_operations).toEqual([]);
});

it("imports its own state where another recovery works in the same folder", async () => {
  const states = ["one", "another"].map((of) => [{ ...group, inputs: { of } }]);
  const stacks = states.map((resources) => new Pulumi(resources, [creating(vm)], {}));

  await Promise.all(stacks.map((one) => recovered(one)));

  expect(stacks.map(({ resources }) => resources)).toEqual(states);
});

it.each(["Failed", "Canceled"])(
  "has the next update update what Azure could not finish, and shows as %s",
  async (provisioningState) => {
    const pulumi = new Pulumi([group], [creating(vm)], {
      [vmId]: { ...shownVm, provisioningState },
    });

    expect(await recovered(pulumi)).toMatchObject({ adopted: ["m-vm"], failed: ["m-vm"] });
    expect(pulumi.resources.at(-1)?.initErrors).toHaveLength(1);
  },
);

describe("what Azure still works on", () => {
  let now: number;
  beforeEach(() => {
    now = Date.now();
    jest.spyOn(Date, "now").mockImplementation(() => now);
    jest.spyOn(concurrency, "pause").mockImplementation(async (ms) => void (now += ms));
  });
  afterEach(() => jest.restoreAllMocks());

  it.each(["Creating", "Updating", "Deleting", "Accepted", "Running"])(
    "is waited for, where it shows as %s",
    async (state) => {
      const pulumi = new Pulumi([group], [creating(vm)], { [vmId]: shownVm });
      pulumi.working = { state, looks: 3 };

      expect(await recovered(pulumi)).toMatchObject({ adopted: ["m-vm"], failed: [] });
      expect(pulumi.calls.filter((call) => call === "refresh")).toHaveLength(4);
    },
  );

  it("is not waited for longer than any step takes, and is the next update's to update then", async () => {
    const pulumi = new Pulumi([group], [creating(vm)], { [vmId]: shownVm });
    pulumi.working = { state: "Updating", looks: 10_000 };
    const begun = now;

    expect(await recovered(pulumi)).toMatchObject({ adopted: ["m-vm"], failed: ["m-vm"] });
    expect((now - begun) / 60_000).toBeGreaterThan(90);
  });
});

it.each([
  ["an update", "update", ["preview"]],
  ["a destroy", "destroy", ["preview"]],
  ["a refresh, which makes nothing,", "refresh", []],
])("looks for what is not recorded after %s that has failed", async (_, kind, asked) => {
  const pulumi = new Pulumi([group], [], {});
  pulumi.last = { kind, result: "failed" };

  await recovered(pulumi, { onlyAfterFailure: true });

  expect(pulumi.calls).toEqual(["stack export", "stack history", ...asked]);
});

it("asks the program and Azure with the stack's settings, and has the engine leave what is pending", async () => {
  const pulumi = new Pulumi([group], [creating(vm)], { [vmId]: shownVm });

  await recovered(pulumi, { configFile: "/of/the/stack.yaml" });

  const wordsOf = (command: string) => pulumi.words.find(([first]) => first === command)!.join(" ");
  for (const command of ["preview", "refresh"])
    expect(wordsOf(command)).toContain("--stack prod --config-file /of/the/stack.yaml");
  // It would ask a person what became of each, or clear them all.
  expect(wordsOf("refresh")).toContain("--skip-pending-creates");
});

it("finds what the program would create, the state has not and Azure has", async () => {
  const provider = {
    ...resource("pulumi:providers:azure-native", "own", {}),
    id: "the one before",
  };
  const pulumi = new Pulumi([group, provider], [], { [vmId]: shownVm });
  const planned = { ...vm, inputs: { ...sentVm, secrets: "[secret]", zone: unknown } };
  const nested = resource(
    "azure-native:compute:VirtualMachineExtension",
    "step",
    { ...groupName, vmName: "m", vmExtensionName: "bootstrap" },
    { dependencies: [vm.urn] },
  );
  const ofProvider = resource(
    "azure-native:network:RouteTable",
    "rt",
    { ...groupName, routeTableName: "rt" },
    {
      provider: `${provider.urn}::${unknown}`,
    },
  );
  const steps = [ip, nested, secret, ofProvider].map((newState) => ({ op: "create", newState }));
  const replacing = { op: "create-replacement", newState: planned };
  pulumi.plan = { code: 0, steps: [replacing, ...steps, { op: "same", newState: group }] };
  pulumi.last = { kind: "update", result: "failed" };

  expect(await recovered(pulumi, { onlyAfterFailure: true })).toMatchObject({
    adopted: ["m-vm"],
    // A provider that is still to be made has made nothing. The step is looked for once its machine is found.
    looked: ["m-vm", "ip", "step"],
    // Never known, so there is nothing to forget.
    forgotten: [],
  });
  expect(pulumi.resources).toEqual([
    group,
    provider,
    { ...vm, id: vmId, outputs: shownVm, inputs: sentVm },
  ]);
});

describe("a state that is older than Azure, as after a power loss,", () => {
  const knownVm = { ...vm, id: vmId, outputs: shownVm };
  const stepOf = (name: string, after: Recorded) =>
    resource(
      "azure-native:compute:VirtualMachineExtension",
      name,
      { ...groupName, vmName: "m", vmExtensionName: name },
      { dependencies: [knownVm.urn, after.urn], propertyDependencies: { vmName: [after.urn] } },
    );
  const first = stepOf("first", knownVm);
  const addOn = resource("kubernetes:core/v1:Namespace", "add-on", {}, { parent: first.urn });
  const second = stepOf("second", addOn);
  const shown = { provisioningState: "Succeeded" };

  it.each([
    ["was pending", [creating(first)]],
    ["is not known of", []],
  ])("takes up what came after what %s, and what is no resource of Azure's", async (_, pending) => {
    const pulumi = new Pulumi([group, knownVm], pending, {
      [`${vmId}/extensions/first`]: shown,
      [`${vmId}/extensions/second`]: shown,
    });
    const steps = [first, addOn, second].map((newState) => ({ op: "create", newState }));
    pulumi.plan = { code: 0, steps };

    expect(await recovered(pulumi)).toMatchObject({ adopted: ["first", "second"], forgotten: [] });
    // The engine takes no reference to what the state does not have.
    expect(pulumi.resources.at(-1)).toMatchObject({
      urn: second.urn,
      dependencies: [knownVm.urn],
      propertyDependencies: { vmName: [] },
    });
  });

  it("takes up what is in what it has taken up, whose name no preview knew before", async () => {
    const network = resource("azure-native:network:VirtualNetwork", "vnet", {
      ...groupName,
      virtualNetworkName: "vnet",
    });
    const networkId = `${groupId}/providers/Microsoft.Network/virtualNetworks/vnet`;
    const subnetIn = (virtualNetworkName: string) =>
      resource("azure-native:network:Subnet", "subnet", {
        ...{ ...groupName, virtualNetworkName, subnetName: "subnet" },
      });
    const pulumi = new Pulumi([group], [], {
      [networkId]: shown,
      [`${networkId}/subnets/subnet`]: shown,
    });
    Object.defineProperty(pulumi, "plan", {
      get: () => {
        const isThere = pulumi.resources.some(({ urn }) => urn === network.urn);
        const planned = [network, subnetIn(isThere ? "vnet" : unknown)];
        return { code: 0, steps: planned.map((newState) => ({ op: "create", newState })) };
      },
    });
    const before = pulumi.state;

    const { adopted, copy } = await recovered(pulumi);

    expect(adopted).toEqual(["vnet", "subnet"]);
    expect(JSON.parse(readFileSync(copy!, "utf8"))).toEqual(before);
  });
});

it("forgets what was deleted to be replaced, and knows it again where its replacement was made", async () => {
  const old = { ...vm, id: vmId, outputs: {}, pendingReplacement: true };
  const oldIp = { ...ip, id: ipId, outputs: {}, pendingReplacement: true };
  const pulumi = new Pulumi([group, old, oldIp], [creating(vm)], { [vmId]: shownVm });

  expect(await recovered(pulumi)).toMatchObject({ adopted: ["m-vm"], forgotten: ["ip"] });
  expect(pulumi.resources).toEqual([group, { ...vm, id: vmId, outputs: shownVm, inputs: sentVm }]);
});

it.each(["updating", "deleting"] as const)(
  "reads again what it was %s, and what went with it",
  async (type) => {
    const known = { ...vm, id: vmId, outputs: shownVm };
    const stepId = `${vmId}/extensions/bootstrap`;
    const step = resource(
      "azure-native:compute:VirtualMachineExtension",
      "step",
      {},
      {
        id: stepId,
        outputs: { name: "bootstrap" },
        deletedWith: vm.urn,
      },
    );
    const pulumi = new Pulumi([group, known, step], [{ type, resource: known }], {});

    expect(await recovered(pulumi)).toMatchObject({ adopted: [], forgotten: ["m-vm", "step"] });
    expect(pulumi.state.deployment).toEqual({ resources: [group], pending_operations: [] });
  },
);

it("changes nothing when another process has changed the state meanwhile", async () => {
  const pulumi = new Pulumi([group], [creating(vm)], {});
  const run = async (args: readonly string[]): Promise<Ended> => {
    const ended = await pulumi.run(args);
    if (args[0] === "preview") {
      const deployment = { resources: [group, { ...vm, id: vmId }], pending_operations: [] };
      pulumi.state = { ...pulumi.state, deployment };
    }
    return ended;
  };

  await expect(recover({ stack: "prod", pulumi: run, copies })).rejects.toThrow(
    /changed by another process meanwhile.*run this again/,
  );
  expect(pulumi.calls).not.toContain("stack import");
});

it("changes nothing in a dry run", async () => {
  const pulumi = new Pulumi([group], [creating(vm)], { [vmId]: shownVm });

  await recovered(pulumi, { dryRun: true });

  expect(pulumi.calls).toEqual(["stack export", "preview"]);
  expect(readdirSync(copies)).toEqual([]);
});

it("does what it can when the program refuses a plan, and says why the rest is left", async () => {
  const pulumi = new Pulumi([group], [creating(vm)], { [vmId]: shownVm });
  const diagnostics = [
    { severity: "warning", message: "beware" },
    { severity: "error", message: "size X9 is not offered" },
  ];
  pulumi.plan = { code: 1, diagnostics };

  expect(await recovered(pulumi)).toMatchObject({
    adopted: ["m-vm"],
    refusal: "size X9 is not offered",
  });
});

it("says how to name the subscription where nothing does", async () => {
  const first = resource("azure-native:resources:ResourceGroup", "cluster", groupName);
  const pulumi = new Pulumi([secret], [creating(first)], {});

  await expect(recovered(pulumi)).rejects.toThrow(/az login, or set ARM_SUBSCRIPTION_ID/);
  expect(await recovered(pulumi, named)).toMatchObject({ forgotten: ["cluster"] });
});

describe("a resource group", () => {
  const tags = { "zoned-stack": "organization/zoned/prod" };
  const inputs = { ...groupName, location: "westeurope", tags };
  const wanted = resource("azure-native:resources:ResourceGroup", "cluster", inputs);
  const roleId = `/subscriptions/${subscription}/providers/Microsoft.Authorization/roleDefinitions/r`;
  const role = resource("azure-native:authorization:RoleDefinition", "role", {
    scope: `/subscriptions/${subscription}`,
    roleDefinitionId: "r",
  });
  /** A stack whose program would make a role and the group, and an Azure that has both. */
  const withGroup = (shownTags: object | undefined, pending: readonly PendingOperation[] = []) => {
    const pulumi = new Pulumi([secret], pending, {
      [groupId]: { ...groupName, tags: shownTags },
      [roleId]: { roleDefinitionId: "r" },
    });
    const steps = [role, wanted].map((newState) => ({ op: "create", newState }));
    pulumi.plan = { code: 0, steps };
    return pulumi;
  };

  it("of this stack is adopted", async () => {
    const pulumi = withGroup({ ...tags, owner: "firm" });

    expect(await recovered(pulumi, named)).toMatchObject({ adopted: ["role", "cluster"] });
  });

  it.each([
    ["somebody else", undefined, /without the tag zoned-stack, expected/],
    ["another stack", { "zoned-stack": "organization/zoned/dev" }, /zoned-stack=\S+dev, expected/],
  ])("of %s is not adopted, nor anything else with it", async (_, shownTags, says) => {
    for (const pending of [[], [creating(wanted)]]) {
      const pulumi = withGroup(shownTags, pending);

      await expect(recovered(pulumi, named)).rejects.toThrow(says);
      expect(pulumi.state.deployment).toEqual({ resources: [secret], pending_operations: [] });
    }
  });
});

it("adopts nothing of others in a resource group that they use too", async () => {
  const tags = { "zoned-stack": "organization/zoned/prod" };
  const inputs = { ...groupName, publicIpAddressName: "ip", tags };
  const wanted = resource("azure-native:network:PublicIPAddress", "ip", inputs);
  const withAddress = (shownTags: object | undefined) => {
    const pulumi = new Pulumi([secret], [], { [ipId]: { ...inputs, tags: shownTags } });
    pulumi.plan = { code: 0, steps: [{ op: "create", newState: wanted }] };
    return pulumi;
  };

  expect(await recovered(withAddress(tags), named)).toMatchObject({ adopted: ["ip"] });

  const pulumi = withAddress(undefined);
  await expect(recovered(pulumi, named)).rejects.toThrow(/ip is there without the tag zoned-stack/);
  expect(pulumi.state.deployment).toEqual({ resources: [secret], pending_operations: [] });
});

describe("a state", () => {
  const urn = (name: string): string => `urn:pulumi:prod::zoned::azure-native:x:Y::${name}`;

  const one = (name: string, more: Partial<Recorded> = {}): Recorded => ({
    urn: urn(name),
    type: "azure-native:x:Y",
    custom: true,
    id: `/${name}`,
    ...more,
  });

  const created = (name: string, more: Partial<Created> = {}): Created => ({
    ...one(name, more),
    id: `/${name}`,
    inputs: {},
    ...more,
  });

  const after = (resources: Recorded[], news: Created[]) =>
    withCreated({ resources }, news).resources!;

  it("puts what was created behind all that it refers to, and before all that refers to it", () => {
    const provider: Recorded = { urn: urn("provider"), type: "pulumi:providers:x", id: "a" };
    const step = one("step", { deletedWith: urn("vm"), dependencies: [urn("vm")] });
    const vm = created("vm", {
      parent: urn("machine"),
      provider: `${provider.urn}::a`,
      propertyDependencies: { nics: [urn("nic")], zones: null },
    });

    const order = after([step, one("machine"), one("nic"), provider], [vm]);

    expect(order.map(({ urn }) => urn.split("::").at(-1))).toEqual([
      "machine",
      "provider",
      "nic",
      "vm",
      "step",
    ]);
  });

  it("leaves everything else as and where it was", () => {
    const before = [
      one("a"),
      one("b", { parent: urn("a") }),
      one("b", { delete: true, id: "/old" }),
    ];

    expect(after(before, [created("c")])).toEqual([...before, created("c")]);
  });

  it("gives it the place of an entry that was deleted before its replacement", () => {
    const old = one("vm", { id: "/old", pendingReplacement: true, inputs: { image: "old" } });
    const vm = created("vm", { inputs: { image: "new" } });

    expect(after([old], [vm])).toEqual([vm]);
  });

  it("gives it the place of an entry that has its id, in whatever case Azure writes it", () => {
    expect(after([one("vm", { id: "/VM" })], [created("vm")])).toEqual([created("vm")]);
  });

  it("leaves it to the engine to delete what something of another id replaces", () => {
    const old = one("role", { id: "/old" });

    expect(after([old], [created("role")])).toEqual([{ ...old, delete: true }, created("role")]);
  });

  const secret = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270" };

  it.each([
    {
      what: "keeps what Azure never shows",
      sent: { osProfile: { computerName: "a", customData: "x" }, protectedSettings: secret },
      shown: { osProfile: { computerName: "a" } },
      recorded: { osProfile: { computerName: "a", customData: "x" }, protectedSettings: secret },
    },
    {
      what: "takes no default of Azure for a wish",
      sent: { sku: { name: "Standard" } },
      shown: { sku: { name: "Standard", tier: "Regional" }, idleTimeoutInMinutes: 4 },
      recorded: { sku: { name: "Standard" } },
    },
    {
      what: "believes Azure where it shows something else than was sent",
      sent: { size: "B2s", zones: ["1"], pools: [{ id: "/a" }, { id: "/b" }] },
      shown: { size: "B4s", zones: ["1", "2"], pools: [{ id: "/a", etag: "x" }, { id: "/c" }] },
      recorded: { size: "B4s", zones: ["1", "2"], pools: [{ id: "/a" }, { id: "/c" }] },
    },
    {
      what: "keeps a list that Azure shows as a map",
      sent: { identities: ["/a"] },
      shown: { identities: { "/a": {} } },
      recorded: { identities: ["/a"] },
    },
    {
      what: "never takes a secret out of its cipher",
      sent: { tags: secret },
      shown: { tags: "in clear" },
      recorded: { tags: secret },
    },
  ])("$what", ({ sent, shown, recorded }) => {
    expect(inputsOf(sent, shown)).toEqual(recorded);
  });
});

describe("the table of ids", () => {
  const subscription = "5ca1ab1e-0000-4000-8000-000000000001";

  const created = (type: string, inputs: Record<string, unknown>) =>
    idOfCreated({ urn: "urn", type: `azure-native:${type}`, inputs }, subscription);

  it.each([
    {
      type: "compute:VirtualMachineExtension",
      inputs: { resourceGroupName: "g", vmName: "m", vmExtensionName: "bootstrap" },
      id: `/subscriptions/${subscription}/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m/extensions/bootstrap`,
    },
    {
      type: "authorization:RoleAssignment",
      inputs: { scope: `/subscriptions/${subscription}`, roleAssignmentName: "r" },
      id: `/subscriptions/${subscription}/providers/Microsoft.Authorization/roleAssignments/r`,
    },
    {
      type: "resources:ResourceGroup",
      inputs: { resourceGroupName: "g" },
      id: `/subscriptions/${subscription}/resourceGroups/g`,
    },
  ])("knows where a $type is made", ({ type, inputs, id }) => {
    expect(created(type, inputs)).toBe(id);
  });

  it("knows no id while a part of it is unknown, or of a type that is none of the program's", () => {
    expect(created("resources:ResourceGroup", { resourceGroupName: unknown })).toBeUndefined();
    expect(created("resources:ResourceGroup", {})).toBeUndefined();
    expect(created("web:WebApp", { name: "a" })).toBeUndefined();
  });

  const ofOthers = "0de5c0de-0000-4000-8000-000000000002";
  const scope = `/subscriptions/${ofOthers}`;
  const identity = `${scope}/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i`;
  const machine = { ...sentVm, identity: { userAssignedIdentities: [identity] } };
  const assigned = { id: `${scope}/providers/Microsoft.Authorization/roleAssignments/r` };
  const beside = [
    resource("azure-native:compute:VirtualMachine", "m-vm", machine),
    resource("azure-native:authorization:RoleAssignment", "pulls", { scope }, assigned),
  ];
  const provider = (subscriptionId: string) =>
    resource("pulumi:providers:azure-native", "default", { subscriptionId });
  const role = (id: string) =>
    resource("azure-native:authorization:RoleDefinition", "role", {
      scope: `/subscriptions/${id}`,
    });

  it.each([
    ["what is recorded in a group, whatever a plan says", [role(ofOthers), group]],
    [
      "a role of the program's, whatever the provider was told",
      [provider(ofOthers), role(subscription)],
    ],
    ["the provider", [provider(subscription)]],
  ])("reads the subscription from %s", (_, resources) => {
    expect(subscriptionIn([...beside, ...resources])).toBe(subscription);
  });

  it("reads no subscription from what machines name, nor from where roles are assigned", () => {
    expect(subscriptionIn(beside)).toBeUndefined();
  });

  it("takes the shell's subscription where the plugin does", async () => {
    const bin = testFolder();
    writeFileSync(
      join(bin, "az"),
      `#!/bin/sh\necho "$*" | grep -q "^account show " && echo of-az\n`,
    );
    chmodSync(join(bin, "az"), 0o755);
    const PATH = `${bin}:${process.env["PATH"]}`;
    jest.replaceProperty(process, "env", { PATH, AZURE_SUBSCRIPTION_ID: ofOthers });
    expect(await ownSubscription()).toBe("of-az");

    process.env["ARM_SUBSCRIPTION_ID"] = subscription;
    expect(await ownSubscription()).toBe(subscription);
  });
});
