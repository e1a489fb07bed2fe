import { wallClock } from "../../arm/durations";
import { type Fault, Faults } from "../../arm/faults";
import { account, subscriptionPath } from "../../arm/resources/resource";
import { BlobStore } from "../../blobs/store";
import { type Properties, unknown, Unready } from "../../plugins/protocol/values";
import { blobProvider } from "../../provider/blob";
import { AzureNative, withRetries } from "../../provider/operations";
import { allowHttp, withBlobs } from "../support/arm/blobs";
import { createResources, ManualClock, newArm, refusedBy } from "../support/arm/fixture";
import {
  compute,
  group,
  inputsOf,
  type Kind,
  network,
  reader,
  roleDefinition,
  storage,
  subject,
  type,
  valid,
} from "../support/arm/valid-resources";

describe("operations", () => {
  const tokens = {
    balancer: "network:LoadBalancer",
    vnet: "network:VirtualNetwork",
    nic: "network:NetworkInterface",
    machine: "compute:VirtualMachine",
    extension: "compute:VirtualMachineExtension",
  };
  const [vnet] = valid.vnet;

  /** A Resource Manager with all up to this kind, and the stand-in's requests about another. */
  async function before(last: Kind | undefined, fault?: Fault) {
    const clock = new ManualClock();
    const built = newArm({ clock, faults: new Faults(fault ? [fault] : []) });
    if (last !== undefined) await createResources(built.arm, last);
    const warnings: string[] = [];
    const azure = new AzureNative(built.arm, (_, message) => warnings.push(message));
    return {
      ...{ ...built, clock, azure, warnings },
      create: (kind: keyof typeof tokens, more: object = {}) =>
        azure.create(type(tokens[kind]), {
          ...{ ...subject, inputs: inputsOf(kind), preview: false },
          ...more,
        }),
      update: (kind: keyof typeof tokens, news: Properties, olds = news) =>
        azure.update(type(tokens[kind]), {
          ...{ ...subject, id: valid[kind][0], news, olds, state: {}, preview: false },
        }),
    };
  }

  const forbidden = (nth: number, kind: Kind = "vnet"): Fault => ({
    ...{ method: "GET", id: `${valid[kind][0]}$`, nth, status: 403, code: "Forbidden" },
  });

  it.each<[what: string, last: Kind, says: RegExp, fault: Fault | undefined]>([
    ["that exists", "vnet", /^cannot create already existing resource '.*\/vnet'$/, undefined],
    [
      "that Azure refuses",
      "storageAccount",
      /^Status=409 Code="Boom" Message=/,
      { method: "PUT", id: "vnet$", code: "Boom" },
    ],
    [
      "that it cannot look for",
      "group",
      /^cannot check existence of resource '.*\/vnet': status code 403/,
      forbidden(1),
    ],
  ])("keeps nothing of a creation %s", async (_, last, says, fault) => {
    const { arm, create } = await before(last, fault);

    const created = create("vnet");

    await expect(created).rejects.toThrow(says);
    await expect(created).rejects.not.toBeInstanceOf(Unready);
    expect(arm.peek(vnet) !== undefined).toBe(last === "vnet");
  });

  it("does what the login may do alone", async () => {
    const { arm, create, update } = await before("vnet");
    arm.login.isOwner = false;
    const refusal = (action: string) =>
      `Status=403 Code="AuthorizationFailed" Message="The client '${account.clientId}' with object id ` +
      `'${account.objectId}' does not have authorization to perform action '${action}'`;

    await expect(create("nic")).rejects.toThrow(
      refusal("Microsoft.Network/networkInterfaces/write"),
    );
    await expect(update("vnet", inputsOf("vnet"))).rejects.toThrow(
      refusal("Microsoft.Network/virtualNetworks/write"),
    );
    await expect(new AzureNative(arm).delete({ ...subject, id: vnet })).rejects.toThrow(
      refusal("Microsoft.Network/virtualNetworks/delete"),
    );
    await arm.delete(valid.assignment[0]);
    await expect(create("nic")).rejects.toThrow(/^cannot check existence of resource .* 403/);
  });

  it("joins no network that the login may not join", async () => {
    const { arm, create } = await before("subnet");
    const own = roleDefinition("00000000-0000-4000-8000-000000000001");
    const assignment = `${group}/providers/Microsoft.Authorization/roleAssignments/${reader}`;
    await arm.put(own, {
      roleName: "own",
      permissions: [{ actions: ["*/read", "Microsoft.Network/networkInterfaces/write"] }],
      assignableScopes: [subscriptionPath],
    });
    await arm.put(assignment, { principalId: account.objectId, roleDefinitionId: own });
    arm.login.isOwner = false;

    await expect(create("nic")).rejects.toThrow(
      /LinkedAuthorizationFailed.* 'Microsoft\.Network\/virtualNetworks\/subnets\/join\/action'/,
    );
  });

  it("previews the inputs, with unknown ids of sub-resources, and makes nothing", async () => {
    const { arm, create } = await before(undefined);
    const { id, state } = await create("balancer", { preview: true });

    expect(id).toBe("");
    expect(state).toMatchObject({
      location: "westeurope",
      backendAddressPools: [{ name: "cp", id: unknown }],
    });
    expect(state).not.toHaveProperty("name");
    expect(arm.isEmpty).toBe(true);
  });

  it("creates under ARM's id, returns what a GET shows, and keeps in an update subnets that are resources of their own", async () => {
    const { arm, create, update } = await before("routeTable");
    const { id, state } = await create("vnet");
    await arm.put(valid.subnet[0], { addressPrefix: "172.16.1.0/24" });
    await update("vnet", { ...inputsOf("vnet"), tags: { a: "b" } });

    expect(id).toBe(vnet);
    expect(state).toMatchObject({
      ...{ name: "vnet", type: "Microsoft.Network/virtualNetworks" },
      ...{ azureApiVersion: "2024-05-01", provisioningState: "Succeeded" },
    });
    expect(arm.peek(vnet)).toMatchObject({ tags: { a: "b" }, subnets: [{ name: "nodes-1" }] });
  });

  it("takes an identity away by PATCH, as null, with the rest of what it sends; without one it sends a PUT", async () => {
    const { arm, update } = await before("machine");
    const [own = "", other = ""] = ["own", "other"].map(
      (name) => `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`,
    );
    for (const id of [own, other]) await arm.put(id, { location: "westeurope" });
    const having = (...userAssignedIdentities: string[]): Properties => ({
      ...inputsOf("machine"),
      tags: { identities: String(userAssignedIdentities.length) },
      identity: { type: "UserAssigned", userAssignedIdentities },
    });

    await update("machine", having(own, other));
    const { identity, tags } = await update("machine", having(own), having(own, other));

    expect(identity).toMatchObject({ type: "UserAssigned", userAssignedIdentities: { [own]: {} } });
    expect(identity).not.toHaveProperty(["userAssignedIdentities", other]);
    expect(tags).toEqual({ identities: "1" });
    const sent = arm.log
      .read()
      .filter(({ id, method }) => id === valid.machine[0] && method !== "GET");
    expect(sent.map(({ method }) => method)).toEqual(["PUT", "PUT", "PATCH"]);
  });

  it.each<[what: string, fault: Fault | undefined, state: object, reason: RegExp]>([
    ["and is read", undefined, { provisioningState: "Failed" }, /boom/],
    [
      "and cannot be read",
      forbidden(2, "extension"),
      {},
      /^resource created but read failed .*boom/s,
    ],
  ])(
    "keeps the inputs of a creation that failed %s, for the next update",
    async (_, fault, state, reason) => {
      const { machines, create } = await before("machine", fault);
      machines.scriptResult = () => ({ exitCode: 1, stdout: "", stderr: "boom" });

      const created = create("extension");

      await expect(created).rejects.toBeInstanceOf(Unready);
      await expect(created).rejects.toMatchObject({
        ...{ id: valid.extension[0], inputs: inputsOf("extension"), state },
        reasons: [expect.stringMatching(reason)],
      });
    },
  );

  it("warns of what it cannot read after it was written", async () => {
    const { create, warnings } = await before("group", forbidden(2));

    expect((await create("vnet")).state).toMatchObject({ provisioningState: "Succeeded" });
    expect(warnings).toEqual([expect.stringMatching(/^failed to read the resource after/)]);
  });

  it("changes nothing whose rules and subnets it cannot send along", async () => {
    const { arm, update } = await before("subnet", forbidden(1));

    await expect(update("vnet", { ...inputsOf("vnet"), tags: { a: "b" } })).rejects.toThrow(
      "failed maintaining unset sub-resource properties",
    );
    expect(arm.peek(vnet)).not.toHaveProperty("tags");
  });

  it("deletes a resource that does not exist without an error", async () => {
    const { azure } = await before(undefined);

    await azure.delete({ ...subject, id: compute("virtualMachines/none") });
  });

  describe("an operation that takes as long as on Azure", () => {
    const turn = () => new Promise((next) => setImmediate(next));
    async function slow() {
      const built = await before("group");
      const asleep = jest.spyOn(built.clock, "sleep");
      built.arm.durations.set({ factor: 1 });
      /** Begins it, and interrupts it once it is under way. */
      const interrupted = async (begin: (signal: AbortSignal) => Promise<unknown>) => {
        const interrupt = new AbortController();
        asleep.mockClear();
        const done = begin(interrupt.signal);
        done.catch(() => undefined);
        while (asleep.mock.calls.length === 0) await turn();
        interrupt.abort();
        return done;
      };
      return { ...built, interrupted };
    }

    it("leaves of a creation that is interrupted its inputs, and no output, since it can read nothing more", async () => {
      const { create, interrupted } = await slow();

      await expect(interrupted((signal) => create("vnet", { signal }))).rejects.toMatchObject({
        ...{ id: vnet, inputs: inputsOf("vnet"), state: {} },
        reasons: ["resource created but read failed context canceled: context canceled"],
      });
    });

    it("leaves nothing of a creation that is interrupted before Azure has accepted it", async () => {
      const { arm, create } = await slow();
      const created = create("vnet", { signal: AbortSignal.abort() });

      await expect(created).rejects.toThrow(/^context canceled$/);
      await expect(created).rejects.not.toBeInstanceOf(Unready);
      expect(arm.peek(vnet)).toBeUndefined();
    });

    it("ends when its time is up", async () => {
      const { create } = await slow();

      await expect(create("vnet", { timeoutSeconds: 0.2 })).rejects.toMatchObject({
        ...{ id: vnet, state: {}, reasons: ["operation timed out"] },
      });
    });

    it("goes on at Azure when a deletion is interrupted", async () => {
      const { clock, arm, azure, interrupted } = await slow();
      await clock.until(arm.put(...valid.vnet));

      const deleted = interrupted((signal) => azure.delete({ ...subject, id: vnet, signal }));

      await expect(deleted).rejects.toThrow("context canceled");
      expect(arm.peek(vnet)).toMatchObject({ provisioningState: "Deleting" });
      clock.advance(60);
      while (arm.peek(vnet) !== undefined) await turn();
    });
  });

  describe("a request that is retried", () => {
    async function asked(fault: object, prepare: (arm: Built["arm"]) => void = () => undefined) {
      const { arm, clock } = await before("group", {
        method: "PUT",
        id: "vnet$",
        ...fault,
      } as Fault);
      prepare(arm);
      const begun = clock.now().getTime();
      const answer = await clock.until(refusedBy(withRetries(arm, () => arm.put(...valid.vnet))));
      const requests = arm.log.read().filter(({ id }) => id === vnet).length;
      return { answer, requests, seconds: (clock.now().getTime() - begun) / 1000 };
    }
    type Built = Awaited<ReturnType<typeof before>>;
    const busy = { code: "TooManyRequests", status: 429 };

    // What azcore, by which azure-native asks, retries (policy.RetryOptions.StatusCodes).
    it.each([
      ...[408, 429, 500, 502, 503, 504].map((status) => [{ status, code: "Refused" }, 2] as const),
      ...[400, 403, 409, 501].map((status) => [{ status, code: "Refused" }, 1] as const),
      [{ status: 409, code: "AnotherOperationInProgress" }, 2],
      [
        {
          status: 409,
          code: "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
        },
        2,
      ],
      // What Compute says instead.
      [{ status: 409, code: "Conflict" }, 1],
      [{ ...busy, times: 3 }, 4],
      [{ ...busy, times: 4 }, 4],
      // Before Azure had the request, and after it had done it.
      [{ lost: "request" }, 1],
      [{ lost: "answer" }, 2],
    ] as const)("after %j was made %i times", async (fault, requests) => {
      expect(await asked(fault)).toMatchObject({ requests });
    });

    it("waits 20, 60 and 120 seconds, scaled like the durations", async () => {
      const { answer, seconds } = await asked({ ...busy, times: 9 }, (arm) =>
        arm.durations.set({ factor: 0.5 }),
      );

      expect([answer.split(":")[0], seconds]).toEqual(["TooManyRequests", 100]);
    });

    it.each([
      [7, 7, 2],
      [120, 120, 2],
      [121, 0, 1],
    ])(
      "waits, asked for %i seconds, %i, and was made %i times",
      async (retryAfter, seconds, requests) => {
        const answer = await asked({ ...busy, retryAfter }, ({ durations }) => {
          durations.set({ factor: 1 });
          durations.milliseconds = () => 0;
        });

        expect(answer).toMatchObject({ seconds, requests });
      },
    );

    it("is not repeated after an abort", async () => {
      const { arm, clock } = await before("group", { method: "PUT", id: "vnet$", ...busy });

      await clock.until(
        refusedBy(withRetries(arm, () => arm.put(...valid.vnet), AbortSignal.abort())),
      );

      expect(arm.log.read().filter(({ id }) => id === vnet)).toHaveLength(1);
    });
  });
});

describe("blob", () => {
  const { signal } = new AbortController();
  const type = "azure-native:storage:Blob";
  const about = {
    urn: `urn:pulumi:dev::zoned::${type}::keys`,
    type,
    signal,
    timeoutSeconds: 0,
    preview: false,
  };
  const inputs = (text: string) => ({
    ...{ resourceGroupName: "zoned", accountName: "zonedbackups", containerName: "public" },
    ...{ blobName: "openid/v1/jwks", contentType: "application/json" },
    source: { text },
  });
  const storeIn = (folder: string) => new BlobStore(`${folder}/blobs`, () => wallClock.now());

  it("writes blobs that anybody may read by their names, where the container says so", () =>
    withBlobs(async ({ arm, endpoint, stateFolder }) => {
      const provider = blobProvider(arm, storeIn(stateFolder));
      const container = storage("/blobServices/default/containers/public");
      await allowHttp(arm);
      await arm.put(container, { publicAccess: "None" });
      const { id } = await provider.create({ ...about, inputs: inputs("{}") });
      const read = async (path = "/openid/v1/jwks") => {
        const { status, headers } = await fetch(`${endpoint}/public${path}`);
        return [status, headers.get("content-type")];
      };

      expect((await read())[0]).toBe(403);
      await arm.patch(storage(""), { allowBlobPublicAccess: true });
      await arm.put(container, { publicAccess: "Blob" });
      expect(await read()).toEqual([200, "application/json"]);
      expect((await read("?restype=container&comp=list"))[0]).toBe(403);

      await provider.delete({ ...about, id, state: {}, inputs: {} });
      expect((await read())[0]).toBe(404);
    }));

  it("writes a blob anew when its content changes, and needs the account's key for it", () =>
    withBlobs(async ({ arm, stateFolder }) => {
      const provider = blobProvider(arm, storeIn(stateFolder));
      const difference = { ...about, id: "", state: {}, olds: inputs("a"), news: inputs("b") };
      expect(await provider.diff(difference)).toMatchObject({ deleteBeforeReplace: true });

      await arm.patch(storage(""), { allowSharedKeyAccess: false });
      await expect(provider.create({ ...about, inputs: inputs("{}") })).rejects.toThrow(
        "KeyBasedAuthenticationNotPermitted",
      );
    }));
});

describe("a refresh", () => {
  type Arm = ReturnType<typeof newArm>["arm"];
  /** A Resource Manager with all up to this kind, and what the stand-in reads of one. */
  async function made(last?: Kind) {
    const { arm } = newArm();
    await createResources(arm, last);
    const azure = new AzureNative(arm);
    return {
      ...{ arm, azure },
      readOf: (kind: Kind, token: string, inputs: Properties = {}, state: Properties = {}) =>
        azure.read(type(token), { ...subject, id: valid[kind][0], state, inputs }),
    };
  }
  const read = async (kind: Kind, token: string, change?: (arm: Arm) => Promise<unknown>) => {
    const { arm, readOf } = await made();
    const inputs = { ...inputsOf(kind), azureApiVersion: "x" };
    const before = await readOf(kind, token);
    await change?.(arm);
    return { inputs, now: await readOf(kind, token, inputs, before!.state) };
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
      const { arm, readOf } = await made();
      const outputs = async (inputs: Properties) =>
        (await readOf(kind, token, inputs))?.state[list];

      const all = arm.peek(valid[kind][0])![list];
      expect(await outputs(inputsOf(kind))).toEqual([]);
      expect(await outputs({ ...inputsOf(kind), [list]: [{ name: "inline" }] })).toEqual(all);
      expect(await outputs({})).toEqual(all);
    },
  );

  it("shows in properties that are inputs who is in a pool, and which gateway has an address", async () => {
    const { arm, readOf } = await made("balancer");
    const inputs = { ...inputsOf("balancer"), azureApiVersion: "x" };
    const before = await readOf("balancer", "network:LoadBalancer");
    await createResources(arm);

    const now = await readOf("balancer", "network:LoadBalancer", inputs, before!.state);

    expect(now?.inputs["backendAddressPools"]).toEqual([
      expect.objectContaining({ loadBalancerBackendAddresses: [{ name: expect.any(String) }] }),
    ]);
    const shown = await readOf("natIp", "network:PublicIPAddress");
    expect(shown?.inputs).toMatchObject({ natGateway: { id: valid.nat[0] } });
  });

  it("cannot send the machines that it saw in a pool once one of them has gone, and a balancer without them is taken", async () => {
    const { arm, azure, readOf } = await made();
    const [id] = valid.balancer;
    const inputs = inputsOf("balancer");
    const send = (news: Properties) =>
      azure.update(type("network:LoadBalancer"), {
        ...{ ...subject, id, news, olds: inputs, state: {}, preview: false },
      });
    const seen = await readOf("balancer", "network:LoadBalancer", inputs);

    await expect(send(seen!.inputs)).resolves.toMatchObject({ provisioningState: "Succeeded" });
    await arm.delete(valid.machine[0]);
    await arm.delete(valid.nic[0]);

    await expect(send(seen!.inputs)).rejects.toThrow(
      /ModificationOfNICIpConfigBackendPoolNotSupported/,
    );
    await expect(send(inputs)).resolves.toMatchObject({ provisioningState: "Succeeded" });
  });

  it("lays over the inputs all that Azure shows where no outputs are known, and nothing that it hides", async () => {
    const { readOf } = await made();
    const inputs: Properties = { ...inputsOf("machine"), azureApiVersion: "x" };

    const now = await readOf("machine", "compute:VirtualMachine", inputs);

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
    const { readOf } = await made();

    const found = await readOf("extension", "compute:VirtualMachineExtension");

    expect(found?.inputs).toMatchObject({
      resourceGroupName: "zoned",
      vmName: "cp-1",
      vmExtensionName: "bootstrap",
      publisher: "Microsoft.Azure.Extensions",
    });
  });
});
