import { setTimeout as sleep } from "node:timers/promises";

import { type Body, parseId, subscriptionPath } from "../../../arm/resources/resource";
import { ResourceManager } from "../../../arm/resource-manager";
import { serveRest } from "../../../arm/rest/rest";
import { toArm } from "../../../arm/rest/shape";
import { schemaOf } from "../../../arm/types/resource-type";
import { typeOf } from "../../../arm/types/types";
import { createResources, newArm, tokenOf } from "../../support/arm/fixture";
import {
  compute,
  group,
  type Kind,
  network,
  roleDefinition,
  storage,
  valid,
} from "../../support/arm/valid-resources";

interface Answer {
  readonly status: number;
  readonly body: any;
}

type Ask = (
  method: string,
  path: string,
  body?: object | string,
  token?: string,
) => Promise<Answer>;
/** The answer to a request, by path or by an address that an answer before it gave. */
type Send = (...request: Parameters<Ask>) => Promise<Response>;

async function withServer<T>(
  use: (ask: Ask, built: ReturnType<typeof newArm> & { readonly send: Send }) => Promise<T>,
): Promise<T> {
  const built = newArm();
  await createResources(built.arm);
  const server = await serveRest(built.arm, 0);
  const send: Send = (method, at, body, token = "anything") =>
    fetch(at.startsWith("http") ? at : `http://127.0.0.1:${server.port}${versioned(at)}`, {
      method,
      headers: token === "" ? {} : { authorization: `Bearer ${token}` },
      body: typeof body === "object" ? JSON.stringify(body) : body,
    });
  const ask: Ask = async (...request) => {
    const response = await send(...request);
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  };
  try {
    return await use(ask, { ...built, send });
  } finally {
    await server.close();
  }
}

/** With a version that every provider of these tests has, unless the path names one. */
function versioned(path: string): string {
  if (path.startsWith("/local/") || path.includes("api-version=")) return path;
  const [, version = "2024-03-01"] =
    [
      [/\/disks\//, "2024-03-02"] as const,
      [/skus|\/Microsoft\.Features\//, "2021-07-01"] as const,
      [/\/Microsoft\.Authorization\//, "2022-04-01"] as const,
      [/\/Microsoft\.Storage\//, "2024-01-01"] as const,
    ].find(([pattern]) => pattern.test(path)) ?? [];
  return `${path}${path.includes("?") ? "&" : "?"}api-version=${version}`;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

const providers = `${subscriptionPath}/providers`;
const inRegion = (provider: string, rest: string, region = "westeurope") =>
  `${providers}/Microsoft.${provider}/locations/${region}/${rest}`;
const filter = (text: string) => `?$filter=${encodeURIComponent(text)}`;
const unused = "00000000-0000-4000-8000-000000000009";
const nowhere = group.replace("zoned", "none");
const others = group.replace("5ca1ab1e", "00000000");
const feature = (name: string) =>
  `${providers}/Microsoft.Features/providers/Microsoft.Compute/features/${name}`;
const label = (name: string, region?: string) =>
  inRegion("Network", `CheckDnsNameAvailability?domainNameLabel=${name}`, region);
const images = (sku: string) =>
  inRegion(
    "Compute",
    `publishers/Canonical/artifacttypes/vmimage/offers/ubuntu-24_04-lts/skus/${sku}/versions`,
  );
const availability = (address: string) =>
  `${valid.vnet[0]}/CheckIPAddressAvailability?ipAddress=${address}`;
const location = "westeurope";
const flat = {
  location,
  properties: {
    addressSpace: { addressPrefixes: ["172.16.0.0/16"] },
    subnets: [{ name: "flat", addressPrefix: "172.16.9.0/24" }],
  },
};

it.each<[answer: string, ...request: Parameters<Ask>]>([
  ["401 AuthenticationFailed", "GET", group, undefined, ""],
  ["404 ResourceGroupNotFound", "GET", nowhere],
  ["404 ResourceGroupNotFound", "GET", `${nowhere}/resources`],
  ...["GET", "PUT", "DELETE"].map(
    (method) => ["404 SubscriptionNotFound", method, others] as [string, string, string],
  ),
  ["400 InvalidSubscriptionId", "GET", "/subscriptions/none/resourceGroups"],
  ["400 InvalidFilterInQueryString", "GET", `${group}/resources${filter("color eq 'a'")}`],
  ["400 InvalidTopInQueryString", "GET", `${group}/resources?$top=0`],
  [
    "400 InvalidFilterInQueryString",
    "GET",
    `${providers}/Microsoft.Compute/skus${filter("name eq 'a'")}`,
  ],
  // A collection, and a type that it does not have.
  ["404 InvalidResourceType", "GET", `${group}/providers/Microsoft.Network`],
  ["404 InvalidResourceType", "GET", network("azureFirewalls/x")],
  ["404 NotFound", "GET", inRegion("Network", `operations/${unused}`)],
  ["405 MethodNotAllowed", "POST", valid.vnet[0]],
  ["405 MethodNotAllowed", "PATCH", valid.subnet[0]],
  ["405 MethodNotAllowed", "POST", `${valid.machine[0]}/instanceView`],
  ["405 MethodNotAllowed", "GET", `${valid.machine[0]}/restart`],
  // A part that is no resource.
  ["405 MethodNotAllowed", "PUT", network("loadBalancers/api/probes/more")],
  ["400 MissingApiVersionParameter", "GET", `${group}?api-version=`],
  ["400 InvalidApiVersionParameter", "GET", `${valid.vnet[0]}?api-version=latest`],
  // Versions that others have.
  ["400 InvalidApiVersionParameter", "GET", `${group}?api-version=2024-05-01`],
  ["404 InvalidResourceType", "GET", `${valid.vnet[0]}?api-version=2024-11-01`],
  ["400 NoRegisteredProviderFound", "PUT", `${valid.machine[0]}?api-version=2024-05-01`],
  // What is gone.
  ["404 ResourceNotFound", "GET", network("virtualNetworks/gone")],
  ["404 ResourceNotFound", "GET", network("virtualNetworks/gone/usages")],
  ["404 NotFound", "GET", network("virtualNetworks/vnet/subnets/gone")],
  ["404 NotFound", "GET", network("networkSecurityGroups/nsg/securityRules/gone")],
  ["404 NotFound", "GET", network("loadBalancers/api/backendAddressPools/gone")],
  ["404 ContainerNotFound", "GET", storage("/blobServices/default/containers/gone")],
  [
    "404 RoleAssignmentNotFound",
    "GET",
    `${group}/providers/Microsoft.Authorization/roleAssignments/${unused}`,
  ],
  ["404 RoleDefinitionDoesNotExist", "GET", roleDefinition(unused)],
  ["404 NotFound", "GET", `${images("server")}/24.04.200001010`],
  ["404 NotFound", "GET", images("desktop")],
  ["404 FeatureNotFound", "GET", feature("Other")],
  ["405 MethodNotAllowed", "DELETE", feature("EncryptionAtHost")],
  ["405 MethodNotAllowed", "POST", `${feature("EncryptionAtHost")}/unregister`],
  ["404 InvalidResourceType", "GET", `${feature("EncryptionAtHost")}?api-version=2024-11-01`],
  ["400 InvalidDomainNameLabel", "GET", label("k8")],
  ["400 PrivateIPAddressNotInAnySubnet", "GET", availability("10.0.0.4")],
  ["400 BadRequest", "GET", `${group}%zz`],
  // Half a body, none, more than tags, and parts without properties of their own.
  ["400 InvalidRequestContent", "PUT", valid.routeTable[0], '{"location":'],
  ["400 InvalidRequestContent", "PATCH", valid.machine[0], "null"],
  [
    "400 InvalidRequestFormat",
    "PATCH",
    valid.routeTable[0],
    { properties: { disableBgpRoutePropagation: true } },
  ],
  ["400 InvalidRequestFormat", "PUT", network("virtualNetworks/flat"), flat],
  // What is no object, and what is no reference but a name.
  ["400 InvalidRequestFormat", "PUT", valid.routeTable[0], { location, properties: "rt" }],
  [
    "400 InvalidRequestFormat",
    "PUT",
    valid.subnet[0],
    { properties: { addressPrefix: "172.16.1.0/24", networkSecurityGroup: "nsg" } },
  ],
  [
    "400 BadRequest",
    "PUT",
    valid.machine[0],
    { location, properties: { hardwareProfile: { vmSize: 3 } } },
  ],
  // Of an enumeration.
  ...[valid.balancer, valid.apiIp].map(([id]): [string, string, string, object] => [
    "400 InvalidRequestFormat",
    "PUT",
    id,
    { location, sku: { name: "Bogus" } },
  ]),
  [
    "400 InvalidRequestFormat",
    "PUT",
    valid.rule[0],
    { properties: { ...valid.rule[1], protocol: "Sctp" } },
  ],
  [
    "400 InvalidParameter",
    "PUT",
    `${valid.definition[0]}?api-version=2024-03-03`,
    { location, properties: { ...valid.definition[1], osState: "generalised" } },
  ],
  [
    "400 InvalidParameter",
    "PUT",
    valid.disk[0],
    {
      ...{ location, zones: ["1"], sku: { name: "Bogus_LRS" } },
      properties: { creationData: { createOption: "Empty" }, diskSizeGB: 8 },
    },
  ],
])("answers %s to %s %s", (answer, ...request) =>
  withServer(async (ask) => {
    const { status, body } = await ask(...request);

    expect(`${status} ${body.error.code}`).toBe(answer);
  }),
);

it.each([
  ["Ünï-(1)_a.b", 201],
  ["Ünï.", 400],
])(
  "takes letters of every alphabet in the name of a resource group, and no full stop at its end: %s, %i",
  (name, status) =>
    withServer(async (ask) => {
      const path = `${subscriptionPath}/resourceGroups/${encodeURIComponent(name)}`;

      expect((await ask("PUT", path, { location })).status).toBe(status);
      expect((await ask("GET", path)).body.name).toBe(status === 201 ? name : undefined);
    }),
);

it.each(["systemassigned", "SystemAssigned,UserAssigned"])("takes an identity of type %s", (type) =>
  withServer(async (ask) => {
    expect(await ask("PATCH", valid.machine[0], { identity: { type } })).toMatchObject({
      status: 200,
    });
  }),
);

it.each<[what: string, tags: object, code: string]>([
  ["51 tags", Object.fromEntries(Array.from({ length: 51 }, (_, at) => [at, ""])), "TooManyTags"],
  ["a name with a slash", { "a/b": "1" }, "InvalidTagNameCharacters"],
  ["a name of 513 characters", { ["a".repeat(513)]: "1" }, "InvalidTagName"],
  ["a value of 257 characters", { a: "1".repeat(257) }, "InvalidTagValueLength"],
  ["a name in upper and in lower case", { a: "1", A: "1" }, "InvalidRequestContent"],
  ["a number as a value", { a: 1 }, "Inv.*(Format|Content)"],
])("refuses of tags %s", (_, tags, code) =>
  withServer(async (ask) => {
    for (const [method, path] of [
      ["PUT", group],
      ["PUT", valid.routeTable[0]],
      ["PATCH", valid.routeTable[0]],
    ] as const) {
      expect((await ask(method, path, { location, tags })).body.error.code).toMatch(
        new RegExp(`^${code}$`),
      );
    }
  }),
);

it.each<[path: string, shown: object]>([
  [group, { properties: { provisioningState: "Succeeded" } }],
  [
    valid.balancer[0],
    {
      properties: {
        probes: [{ name: "readyz", id: expect.any(String), properties: { port: 6443 } }],
      },
    },
  ],
  [label("zoned-abc"), { available: false }],
  [label("zoned-abcd"), { available: true }],
  [label("zoned-abc", "northeurope"), { available: true }],
  [label("api", "northeurope"), { available: false }],
  [
    `${providers}/Microsoft.Authorization/permissions`,
    { value: [{ actions: ["*"], notActions: [], dataActions: [], notDataActions: [] }] },
  ],
  [`${images("server")}/24.04.202608110`, { name: "24.04.202608110", location }],
  [
    `${valid.vnet[0]}/usages`,
    { value: [{ id: valid.subnet[0], currentValue: 1, limit: 251, unit: "Count" }] },
  ],
  [availability("172.16.1.5"), { available: true, availableIPAddresses: [] }],
  // Of an interface, and Azure's own.
  ...["172.16.1.4", "172.16.1.1"].map((address): [string, object] => [
    availability(address),
    { available: false, availableIPAddresses: [5, 6, 7, 8, 9].map((last) => `172.16.1.${last}`) },
  ]),
  [
    `${valid.machine[0]}/vmSizes`,
    { value: ["D2s", "D4s", "D8s"].map((size) => ({ name: `Standard_${size}_v5` })) },
  ],
  [feature("encryptionathost"), { properties: { state: "NotRegistered" } }],
  [`/${group}/`, { name: "zoned" }],
])("shows at %s %j", (path, shown) =>
  withServer(async (ask) => {
    expect(await ask("GET", path)).toMatchObject({ status: 200, body: shown });
  }),
);

it("lists of every resource a part of its properties, and the versions of an image as a bare array", () =>
  withServer(async (ask) => {
    const { value } = (await ask("GET", `${subscriptionPath}/resources`)).body;
    const versions = (await ask("GET", images("server"))).body as { name: string }[];

    const standard = { name: "Standard", tier: "Regional" };
    expect(value).toContainEqual(expect.objectContaining({ name: "cp-1/bootstrap" }));
    expect(value).toContainEqual(expect.objectContaining({ id: valid.balancer[0], sku: standard }));
    expect(value).toContainEqual(
      expect.objectContaining({ name: "cp-1-os", managedBy: valid.machine[0] }),
    );
    expect(JSON.stringify(value)).not.toMatch(/provisioningState|"properties"/);
    expect(versions.map(({ name }) => name)).toContain("24.04.202608110");
  }));

it.each([
  ["location eq 'westeurope' and name eq 'cp-1'", ["cp-1"]],
  ["location eq 'northeurope'", []],
  ["name eq 'cp-1/bootstrap' or name eq 'nothing'", ["cp-1/bootstrap"]],
  ["resourceType eq 'Microsoft.Compute/virtualMachines'", ["cp-1"]],
  ["resourceGroup eq 'ZONED' and name eq 'api'", ["api", "api"]],
])("lists what fits the filter %s, with what is asked for", ($filter, names) =>
  withServer(async (ask) => {
    const path = `${subscriptionPath}/resources${filter($filter)}&$expand=provisioningState`;
    const { value } = (await ask("GET", path)).body;

    expect(value).toMatchObject(names.map((name) => ({ name, provisioningState: "Succeeded" })));
  }),
);

it.each([
  ["tagName eq 'OWNER'", ["cp-1-nic you", "cp-1 me"]],
  ["tagName eq 'owner' and tagValue eq 'me'", ["cp-1 undefined"]],
  ["tagName eq 'owner' and tagValue eq 'Me'", []],
])(
  "lists what has a tag as the filter %s asks, without tags if it names a value",
  ($filter, found) =>
    withServer(async (ask, { arm }) => {
      await arm.patch(valid.machine[0], { tags: { owner: "me" } });
      await arm.patch(valid.nic[0], { tags: { owner: "you" } });

      const { value } = (await ask("GET", `${subscriptionPath}/resources${filter($filter)}`)).body;

      expect(value.map(({ name, tags }: any) => `${name} ${tags?.owner}`)).toEqual(found);
    }),
);

it("returns a bootstrap step's state and tags without secrets, and for a missing one which parent is missing", () =>
  withServer(async (ask) => {
    const { location, ...properties } = valid.extension[1];
    const tags = { "zoned-bootstrap-requested-at": "2026-11-23" };
    await ask("PUT", valid.extension[0], { location, tags, properties });
    const missing = async (gone: string) => {
      await ask("DELETE", gone);
      const { status, body } = await ask("GET", valid.extension[0]);
      return [status, body.error.code];
    };

    const { body } = await ask("GET", valid.extension[0]);

    expect(body).toMatchObject({ tags, properties: { provisioningState: "Succeeded" } });
    expect(JSON.stringify(body)).not.toMatch(/protectedSettings|script"/);
    expect(await missing(valid.extension[0])).toEqual([404, "ResourceNotFound"]);
    expect(await missing(valid.machine[0])).toEqual([404, "ParentResourceNotFound"]);
    expect(await missing(group)).toEqual([404, "ResourceGroupNotFound"]);
  }));

it("has a feature from its registration on, and counts none as a resource", () =>
  withServer(async (ask, { arm, args }) => {
    await ask("POST", `${feature("EncryptionAtHost")}/register`, {});

    expect((await ask("GET", feature("encryptionathost"))).body).toMatchObject({
      name: "Microsoft.Compute/EncryptionAtHost",
      properties: { state: "Registered" },
    });
    expect(new ResourceManager(args).peek(feature("EncryptionAtHost"))).toBeDefined();
    const { body } = await ask("GET", `${subscriptionPath}/resources`);
    expect(JSON.stringify(body)).not.toContain("EncryptionAtHost");
    await ask("DELETE", group);
    expect(arm.isEmpty).toBe(true);
  }));

it("takes roles that are assigned at a network or a security group for no subnets and no rules", () =>
  withServer(async (ask, { arm }) => {
    const owners = [valid.vnet[0], valid.securityGroup[0]];
    const assigned = (owner: string) => valid.assignment[0].replace(group, owner);
    for (const owner of owners) await arm.put(assigned(owner), valid.assignment[1]);

    const { body } = await ask("GET", valid.vnet[0]);
    expect((await ask("PUT", valid.vnet[0], body)).status).toBe(200);

    expect(body.properties.subnets).toHaveLength(1);
    expect(arm.peek(valid.securityGroup[0])!["securityRules"]).toHaveLength(1);
    expect((await ask("GET", `${valid.vnet[0]}/usages`)).body.value).toHaveLength(1);
    for (const owner of owners) expect(arm.peek(assigned(owner))).toBeDefined();
  }));

it("answers a PUT at once, and a poll when the operation is done", () =>
  withServer(async (_, { arm, send }) => {
    const seconds = { "Microsoft.Network/publicIPAddresses": { create: 20, delete: 20 } };
    arm.durations.set({ factor: 0.1, seconds });
    const address = network("publicIPAddresses/slow");
    const { sku, publicIPAllocationMethod } = valid.apiIp[1];

    const put = await send("PUT", address, {
      ...{ location, sku, properties: { publicIPAllocationMethod } },
    });

    expect(put.status).toBe(201);
    expect(await put.json()).toMatchObject({ properties: { provisioningState: "Updating" } });
    expect(put.headers.get("location")).toBeNull();
    const operation = put.headers.get("azure-asyncoperation")!;
    expect(operation).toContain("/providers/Microsoft.Network/locations/westeurope/operations/");
    const poll = async () => (await send("GET", operation)).json();
    expect(await poll()).toEqual({ status: "InProgress" });
    await until(async () => ((await poll()) as { status: string }).status !== "InProgress");
    expect(await poll()).toEqual({ status: "Succeeded" });
    expect(arm.peek(address)).toMatchObject({ provisioningState: "Succeeded" });
    const removal = await send("DELETE", address);
    expect([removal.status, await removal.text()]).toEqual([202, ""]);
    const result = () => send("GET", removal.headers.get("location")!);
    expect((await result()).status).toBe(202);
    await until(async () => (await result()).status !== 202);
    expect((await result()).status).toBe(200);
    expect(arm.peek(address)).toBeUndefined();
  }));

it("names the operation of a machine's disk with its times, and calls a new disk Creating", () =>
  withServer(async (_, { arm, send }) => {
    arm.durations.set({ factor: 0.1, seconds: { "Microsoft.Compute/disks": { create: 20 } } });
    const { location, zones, ...properties } = valid.disk[1];

    const put = await send("PUT", compute("disks/slow"), { location, zones, properties });

    expect(await put.json()).toMatchObject({ properties: { provisioningState: "Creating" } });
    const poll = async () => (await send("GET", put.headers.get("azure-asyncoperation")!)).json();
    const [name, time] = [expect.any(String), expect.stringMatching(/^\d{4}-.*Z$/)];
    expect(await poll()).toEqual({ name, startTime: time, status: "InProgress" });
    await until(async () => ((await poll()) as { status: string }).status !== "InProgress");
    expect(await poll()).toEqual({ name, startTime: time, endTime: time, status: "Succeeded" });
  }));

it.each([
  [0, null, "50"],
  [0.02, "1", "200"],
  [0.1, "1", null],
  [1, "10", null],
])(
  "asks a client at the share %p of Azure's time to wait %p seconds, or %p milliseconds",
  (factor, retryAfter, milliseconds) =>
    withServer(async (_, { arm, send }) => {
      const seconds = { "Microsoft.Network/routeTables": { create: 0, delete: 0 } };
      arm.durations.set({ factor, seconds });

      for (const method of ["PUT", "DELETE"]) {
        const { headers } = await send(method, network("routeTables/new"), { location });
        expect(headers.get("retry-after")).toBe(retryAfter);
        expect(headers.get("retry-after-ms")).toBe(milliseconds);
      }
    }),
);

it("answers the request for the result of an operation that has failed with its error", () =>
  withServer(async (_, { arm, send }) => {
    const id = valid.storageAccount[0].replace("zonedbackups", "zonedothers");
    arm.faults.add({ method: "PUT", id: "zonedothers$", accepted: true, code: "Boom" });
    const { kind, sku } = valid.storageAccount[1];

    const put = await send("PUT", id, { location, kind, sku });
    const result = () => send("GET", put.headers.get("location")!);

    expect([put.status, put.headers.get("azure-asyncoperation")]).toEqual([202, null]);
    await until(async () => (await result()).status !== 202);
    const failed = await result();
    expect(failed.status).toBe(409);
    expect(await failed.json()).toMatchObject({ error: { code: "Boom" } });
  }));

it("answers a group's DELETE with a Location alone, and its HEAD without a body", () =>
  withServer(async (ask, { send }) => {
    const removal = await send("DELETE", group);

    expect(removal.status).toBe(202);
    expect(removal.headers.get("azure-asyncoperation")).toBeNull();
    expect(removal.headers.get("location")).toMatch(/\/operationresults\//);
    expect((await ask("HEAD", group)).status).toBe(404);
  }));

it("names the clouds to clients without a token, in the shape of the API version", () =>
  withServer(async (ask) => {
    const endpoints = async (version: string) =>
      (await ask("GET", `/metadata/endpoints?api-version=${version}`, undefined, "")).body;

    expect(await endpoints("2019-05-01")).toMatchObject([{ name: "AzureCloud" }]);
    expect(await endpoints("2022-09-01")).toMatchObject({
      resourceManager: expect.stringMatching(/^http:\/\/127/),
      // Below which clients look for accounts.
      suffixes: { storage: "core.windows.net" },
    });
  }));

it("refuses under /local what makes no sense, and answers with a fault's Retry-After", () =>
  withServer(async (ask, { send }) => {
    for (const [path, body] of [
      ["/local/durations", { factor: "fast" }],
      ["/local/quotas", { processors: 1 }],
    ] as const) {
      expect([path, (await ask("PUT", path, body)).status]).toEqual([path, 400]);
    }
    const busy = { method: "PUT", id: "routeTables/rt$", status: 429, code: "Busy", retryAfter: 3 };
    await ask("POST", "/local/faults", busy);
    const { status, headers } = await send("PUT", valid.routeTable[0], { location });
    expect([status, headers.get("retry-after")]).toEqual([429, "3"]);
  }));

const usagesOf = async (ask: Ask, provider: string): Promise<any[]> =>
  (await ask("GET", inRegion(provider, "usages"))).body.value;

it.each([
  ["PublicIPAddresses", "PublicIPCountLimitReached"],
  ["IPv4StandardSkuPublicIpAddresses", "IPv4StandardSkuPublicIpCountLimitReached"],
])("shows the quota %s, and refuses an address above it", (name, code) =>
  withServer(async (ask) => {
    const { body: address } = await ask("GET", valid.natIp[0]);
    await ask("PUT", "/local/quotas", { [name]: 2 });

    expect(await usagesOf(ask, "Network")).toContainEqual(
      expect.objectContaining({
        ...{ name: expect.objectContaining({ value: name }), currentValue: 2, limit: 2 },
      }),
    );
    expect(await ask("PUT", `${valid.natIp[0]}-2`, address)).toMatchObject({
      ...{ status: 400, body: { error: { code } } },
    });
    expect((await ask("PUT", valid.natIp[0], address)).status).toBe(200);
  }),
);

it("shows quotas of processors, and refuses a machine above one of its family or of all", () =>
  withServer(async (ask) => {
    const usage = async (name: string) =>
      (await usagesOf(ask, "Compute")).find((one) => one.name.value === name);
    const { body: machine } = await ask("GET", valid.machine[0]);
    const resized = (vmSize: string) =>
      ask("PUT", valid.machine[0], {
        ...machine,
        properties: { ...machine.properties, hardwareProfile: { vmSize } },
      });

    await ask("PUT", "/local/quotas", { cores: 6, standardDSv5Family: 2 });

    expect(await usage("cores")).toMatchObject({ currentValue: 2, limit: 6, unit: "Count" });
    expect(await usage("standardDSv5Family")).toMatchObject({ currentValue: 2, limit: 2 });
    expect((await resized("Standard_D2s_v5")).status).toBe(200);
    for (const [size, says] of [
      ["Standard_D4s_v5", /Current Limit: 2, .* New Limit Required: 4/],
      ["Standard_D8s_v5", /Total Regional vCPUs/],
    ] as const) {
      expect(await resized(size)).toMatchObject({
        status: 409,
        body: { error: { code: "OperationNotAllowed", message: expect.stringMatching(says) } },
      });
    }
  }));

/** The body as it is sent, without what a server fills in. */
function sent(kind: Kind): Body {
  const [id, body] = valid[kind];
  const { type: _, ...wanted } = toArm(parseId(id)!, body);
  return wanted;
}

/** Copies of a value, in each of which something else is of another type. */
function* malformed(value: unknown): Generator<unknown> {
  for (const other of [null, 3, "x", {}, [null]]) yield other;
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    for (const other of malformed(inner)) {
      const copy = structuredClone(value) as Body;
      copy[key] = other;
      yield copy;
    }
  }
}

it("answers no malformed body with an error of its own, which clients would repeat", () =>
  withServer(async (ask, { arm }) => {
    // Rights to what a body names are looked at for such a token alone.
    const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/owner`;
    const { body: owner } = await arm.put(identity, { location });
    await arm.put(valid.assignment[0].replace(/0$/, "7"), {
      principalId: owner["principalId"],
      roleDefinitionId: roleDefinition("8e3af657-a8ff-443c-a75c-2fe8c4bcb635"),
    });
    const token = tokenOf(arm, identity);
    const failed: string[] = [];

    for (const kind of Object.keys(valid) as Kind[]) {
      const [id] = valid[kind];
      const requests = [...malformed(sent(kind))].flatMap((body) =>
        [
          ["PUT", id],
          ["PATCH", id],
          ["PUT", id.replace(/.$/, "9")],
        ].map(([method, path]) => [method!, path!, JSON.stringify(body)] as const),
      );
      const answers = requests.map(async (request) => {
        const { status, body } = await ask(...request, token);
        if (status >= 500) failed.push(`${request.join(" ")}: ${body.error.message}`);
      });
      await Promise.all(answers);
    }

    expect(failed).toEqual([]);
  }));

it("takes what it shows of each resource, as the cloud provider and the disk driver send it back", () =>
  withServer(async (ask) => {
    // It shows no secrets.
    const { extension: _, ...others } = valid;
    for (const [id] of Object.values(others)) {
      const path = `${id}?api-version=${schemaOf(typeOf(parseId(id)!.type)!).apiVersion}`;
      const { body } = await ask("GET", path);
      expect(await ask("PUT", path, body)).toMatchObject({ body: { id } });
    }
  }));
