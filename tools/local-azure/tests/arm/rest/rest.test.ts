import { setTimeout as sleep } from "node:timers/promises";

import { subscriptionPath } from "../../../arm/resources/ids";
import { ResourceManager } from "../../../arm/resource-manager";
import { serveRest } from "../../../arm/rest/rest";
import { createResources, newArm } from "../../support/arm/fixture";
import {
  compute,
  group,
  network,
  roleDefinition,
  storage,
  valid,
} from "../../support/arm/valid-resources";

/** A response body: a list, a resource or an error. */
interface Answer {
  readonly value: {
    readonly name: unknown;
    readonly currentValue: number;
    readonly limit: number;
  }[];
  readonly properties: { readonly storageProfile: { dataDisks: object[] } };
  readonly error: { readonly code: string };
}

type Ask = <B = Answer>(
  method: string,
  path: string,
  body?: object,
  token?: string,
) => Promise<{ readonly status: number; readonly body: B }>;

/** The answer to a request, by path or by an address that an answer before it gave. */
type Send = (
  method: string,
  at: string,
  body?: object | string,
  token?: string,
) => Promise<Response>;

async function withServer<T>(
  use: (ask: Ask, built: ReturnType<typeof newArm> & { readonly send: Send }) => Promise<T>,
): Promise<T> {
  const built = newArm();
  await createResources(built.arm);
  const unhealthy: string[] = [];
  const server = await serveRest(built.arm, 0, {
    health: () => ({ unhealthy }),
    simulated: {
      injectFailure: async (machine, part) => {
        if (part !== "etcd") throw new Error(`component is ${part}, expected etcd`);
        unhealthy.push(`${machine}: ${part}`);
      },
      clearFailures: async (machine) => void unhealthy.push(`${machine}: none`),
      snapshot: async () => undefined,
    },
  });
  const send: Send = (method, at, body, token = "anything") =>
    fetch(at.startsWith("http") ? at : `http://127.0.0.1:${server.port}${versioned(at)}`, {
      method,
      headers: token === "" ? {} : { authorization: `Bearer ${token}` },
      body: typeof body === "object" ? JSON.stringify(body) : body,
    });
  const ask: Ask = async <B>(...request: Parameters<Send>) => {
    const response = await send(...request);
    const text = await response.text();
    return { status: response.status, body: (text === "" ? undefined : JSON.parse(text)) as B };
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
      [/skus/, "2021-07-01"] as const,
      [/\/Microsoft\.Authorization\//, "2022-04-01"] as const,
      [/\/Microsoft\.Storage\//, "2024-01-01"] as const,
    ].find(([pattern]) => pattern.test(path)) ?? [];
  return `${path}${path.includes("?") ? "&" : "?"}api-version=${version}`;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

const query = (parameters: Record<string, string>) => new URLSearchParams(parameters);

it("returns a bootstrap step's state and tags, and for a missing one which parent is missing", () =>
  withServer(async (ask) => {
    const { location, ...properties } = valid.extension[1];
    const tags = { "zoned-bootstrap-requested-at": "2026-11-23" };
    await ask("PUT", valid.extension[0], { location, tags, properties });
    const missing = async (path: string) => {
      const { status, body } = await ask("GET", path);
      return [status, body.error.code];
    };

    const { body } = await ask("GET", `${valid.extension[0]}?${query({})}`);

    expect(body).toMatchObject({ tags, properties: { provisioningState: "Succeeded" } });
    expect(JSON.stringify(body)).not.toMatch(/protectedSettings|script"/);
    await ask("DELETE", valid.extension[0]);
    expect(await missing(valid.extension[0])).toEqual([404, "ResourceNotFound"]);
    await ask("DELETE", valid.machine[0]);
    expect(await missing(valid.extension[0])).toEqual([404, "ParentResourceNotFound"]);
    await ask("DELETE", group);
    expect(await missing(valid.extension[0])).toEqual([404, "ResourceGroupNotFound"]);
  }));

it("returns 404 for a group that does not exist, and for its resources", () =>
  withServer(async (ask) => {
    const nowhere = group.replace("zoned", "none");

    expect(await ask("GET", group)).toMatchObject({
      status: 200,
      body: { properties: { provisioningState: "Succeeded" } },
    });
    for (const path of [nowhere, `${nowhere}/resources`]) {
      expect(await ask("GET", path)).toMatchObject({
        status: 404,
        body: { error: { code: "ResourceGroupNotFound" } },
      });
    }
  }));

it("returns 401 without a token", () =>
  withServer(async (ask) => {
    expect(await ask("GET", group, undefined, "")).toMatchObject({
      status: 401,
      body: { error: { code: "AuthenticationFailed" } },
    });
  }));

const providers = `${subscriptionPath}/providers`;
const operations = `${providers}/Microsoft.Network/locations/westeurope/operations`;
const filter = (text: string) => `?$filter=${encodeURIComponent(text)}`;
const unused = "00000000-0000-4000-8000-000000000009";

it.each<[method: string, path: string, answer: string]>([
  ["GET", `${group}/resources${filter("color eq 'a'")}`, "400 InvalidFilterInQueryString"],
  ["GET", `${group}/resources?$top=0`, "400 InvalidTopInQueryString"],
  [
    "GET",
    `${providers}/Microsoft.Compute/skus${filter("name eq 'a'")}`,
    "400 InvalidFilterInQueryString",
  ],
  // A collection, and a type that it does not have.
  ["GET", `${group}/providers/Microsoft.Network`, "404 InvalidResourceType"],
  ["GET", network("azureFirewalls/x"), "404 InvalidResourceType"],
  ["GET", `${operations}/${unused}`, "404 NotFound"],
  ["POST", valid.vnet[0], "405 MethodNotAllowed"],
  ["PATCH", valid.subnet[0], "405 MethodNotAllowed"],
  ["POST", `${valid.machine[0]}/instanceView`, "405 MethodNotAllowed"],
  ["GET", `${valid.machine[0]}/restart`, "405 MethodNotAllowed"],
  // A part that is no resource.
  ["PUT", network("loadBalancers/api/probes/more"), "405 MethodNotAllowed"],
  ["GET", `${group}?api-version=`, "400 MissingApiVersionParameter"],
  ["GET", `${valid.vnet[0]}?api-version=latest`, "400 InvalidApiVersionParameter"],
  // Versions that others have.
  ["GET", `${group}?api-version=2024-05-01`, "400 InvalidApiVersionParameter"],
  ["GET", `${valid.vnet[0]}?api-version=2024-11-01`, "404 InvalidResourceType"],
  ["PUT", `${valid.machine[0]}?api-version=2024-05-01`, "400 NoRegisteredProviderFound"],
  // What is gone.
  ["GET", network("virtualNetworks/gone"), "404 ResourceNotFound"],
  ["GET", network("virtualNetworks/vnet/subnets/gone"), "404 NotFound"],
  ["GET", network("networkSecurityGroups/nsg/securityRules/gone"), "404 NotFound"],
  ["GET", network("loadBalancers/api/backendAddressPools/gone"), "404 NotFound"],
  ["GET", storage("/blobServices/default/containers/gone"), "404 ContainerNotFound"],
  [
    "GET",
    `${group}/providers/Microsoft.Authorization/roleAssignments/${unused}`,
    "404 RoleAssignmentNotFound",
  ],
  ["GET", roleDefinition(unused), "404 RoleDefinitionDoesNotExist"],
])("answers %s %s with %s", (method, path, answer) =>
  withServer(async (ask) => {
    const { status, body } = await ask(method, path);

    expect(`${status} ${body.error.code}`).toBe(answer);
  }),
);

it("refuses a body that is no JSON, and a PATCH of more than tags", () =>
  withServer(async (ask, { send }) => {
    const half = await send("PUT", valid.routeTable[0], '{"location":');
    const more = { properties: { disableBgpRoutePropagation: true } };

    expect(half.status).toBe(400);
    expect(await half.json()).toMatchObject({ error: { code: "InvalidRequestContent" } });
    expect(await ask("PATCH", valid.routeTable[0], more)).toMatchObject({
      status: 400,
      body: { error: { code: "InvalidRequestFormat" } },
    });
    expect((await ask("DELETE", network("loadBalancers/api/backendAddressPools/no"))).status).toBe(
      204,
    );
  }));

it.each([
  ["location eq 'westeurope' and name eq 'cp-1'", ["cp-1"]],
  ["location eq 'northeurope'", []],
  ["name eq 'cp-1/bootstrap'", ["cp-1/bootstrap"]],
  ["resourceGroup eq 'ZONED' and name eq 'api'", ["api", "api"]],
  ["resourceGroup eq 'api'", []],
])("lists what fits the filter %s, with a part of its properties", ($filter, names) =>
  withServer(async (ask) => {
    const { body } = await ask<{ value: { name: string; sku?: object }[] }>(
      "GET",
      `${subscriptionPath}/resources?${query({ $filter })}`,
    );

    expect(body.value.map(({ name }) => name)).toEqual(names);
    for (const one of body.value) {
      expect(one).not.toHaveProperty("provisioningState");
      expect(one.sku).toEqual(
        one.name === "api" ? { name: "Standard", tier: "Regional" } : undefined,
      );
    }
  }),
);

it("shows in lists by whom a disk is used", () =>
  withServer(async (ask) => {
    const $filter = "resourceType eq 'Microsoft.Compute/disks'";

    const { body } = await ask("GET", `${group}/resources?${query({ $filter })}`);

    expect(body.value).toContainEqual(
      expect.objectContaining({ name: "cp-1-os", managedBy: valid.machine[0] }),
    );
  }));

const feature = (name: string) =>
  `${subscriptionPath}/providers/Microsoft.Features/providers/Microsoft.Compute/features/${name}`;
const ofFeatures = "?api-version=2021-07-01";

it("has a feature from its registration on, and counts none as a resource", () =>
  withServer(async (ask, { arm, args }) => {
    const shown = () => ask("GET", `${feature("encryptionathost")}${ofFeatures}`);
    expect((await shown()).body).toMatchObject({
      name: "Microsoft.Compute/EncryptionAtHost",
      properties: { state: "NotRegistered" },
    });

    await ask("POST", `${feature("EncryptionAtHost")}/register${ofFeatures}`, {});

    expect((await shown()).body).toMatchObject({ properties: { state: "Registered" } });
    expect(new ResourceManager(args).peek(feature("EncryptionAtHost"))).toBeDefined();
    const { body } = await ask("GET", `${subscriptionPath}/resources`);
    expect(JSON.stringify(body)).not.toContain("EncryptionAtHost");
    await ask("DELETE", group);
    expect(arm.isEmpty).toBe(true);
  }));

it.each([
  ["GET", `${feature("Other")}${ofFeatures}`, 404, "FeatureNotFound"],
  ["DELETE", `${feature("EncryptionAtHost")}${ofFeatures}`, 405, "MethodNotAllowed"],
  ["POST", `${feature("EncryptionAtHost")}/unregister${ofFeatures}`, 405, "MethodNotAllowed"],
  ["GET", `${feature("EncryptionAtHost")}?api-version=2024-11-01`, 404, "InvalidResourceType"],
])("refuses %s of %s: %s", (method, path, status, code) =>
  withServer(async (ask) => {
    expect(await ask(method, path)).toMatchObject({ status, body: { error: { code } } });
  }),
);

it("says which labels are free in a region, and what its user may do", () =>
  withServer(async (ask) => {
    const check = (region: string, label: string) => {
      const at = `${subscriptionPath}/providers/Microsoft.Network/locations/${region}/CheckDnsNameAvailability`;
      return ask<{ available: boolean }>("GET", `${at}?${query({ domainNameLabel: label })}`);
    };
    const free = async (region: string, label: string) =>
      (await check(region, label)).body.available;
    const rights = `${subscriptionPath}/providers/Microsoft.Authorization/permissions`;

    expect(await free("westeurope", "zoned-abc")).toBe(false);
    expect(await free("westeurope", "zoned-abcd")).toBe(true);
    expect(await free("northeurope", "zoned-abc")).toBe(true);
    expect(await free("northeurope", "api")).toBe(false);
    expect(await check("westeurope", "k8")).toMatchObject({
      status: 400,
      body: { error: { code: "InvalidDomainNameLabel" } },
    });
    expect((await ask("GET", `${rights}?api-version=2022-04-01`)).body.value).toEqual([
      { actions: ["*"], notActions: [], dataActions: [], notDataActions: [] },
    ]);
  }));

it("refuses subscriptions other than its own, and takes a doubled slash for one", () =>
  withServer(async (ask) => {
    const other = group.replace("5ca1ab1e", "00000000");

    for (const method of ["GET", "PUT", "DELETE"]) {
      expect(await ask(method, other)).toMatchObject({
        status: 404,
        body: { error: { code: "SubscriptionNotFound" } },
      });
    }
    expect(await ask("GET", "/subscriptions/none/resourceGroups")).toMatchObject({
      status: 400,
      body: { error: { code: "InvalidSubscriptionId" } },
    });
    expect(await ask("GET", `/${group}/resources`)).toMatchObject({ status: 200 });
    expect(await ask("GET", `${group}/resources/`)).toMatchObject({ status: 200 });
  }));

it("answers a PUT at once, and a poll when the operation is done", () =>
  withServer(async (_, { arm, send }) => {
    const seconds = { "Microsoft.Network/publicIPAddresses": { create: 20, delete: 20 } };
    arm.durations.set({ factor: 0.1, seconds });
    const address = network("publicIPAddresses/slow");
    const { location, sku, publicIPAllocationMethod } = valid.apiIp[1];

    const put = await send("PUT", address, {
      ...{ location, sku, properties: { publicIPAllocationMethod } },
    });

    expect(put.status).toBe(201);
    expect(await put.json()).toMatchObject({ properties: { provisioningState: "Updating" } });
    expect(put.headers.get("retry-after")).toBe("1");
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

it.each([
  [0, null, "50"],
  [0.001, "1", "50"],
  [0.02, "1", "200"],
  [0.1, "1", null],
  [1, "10", null],
])(
  "asks a client at the share %p of Azure's time to wait %p seconds, or %p milliseconds",
  (factor, retryAfter, milliseconds) =>
    withServer(async (_, { arm, send }) => {
      const seconds = { "Microsoft.Network/routeTables": { create: 0, delete: 0 } };
      arm.durations.set({ factor, seconds });
      const id = network("routeTables/new");

      const put = await send("PUT", id, { location: "westeurope" });
      const removal = await send("DELETE", id);

      for (const answer of [put, removal]) {
        expect(answer.headers.get("retry-after")).toBe(retryAfter);
        expect(answer.headers.get("retry-after-ms")).toBe(milliseconds);
      }
    }),
);

it("describes the operation of a machine's disk by its name and times, and a new disk as being created", () =>
  withServer(async (_, { arm, send }) => {
    arm.durations.set({ factor: 0.1, seconds: { "Microsoft.Compute/disks": { create: 20 } } });
    const { location, ...properties } = valid.disk[1];

    const put = await send("PUT", compute("disks/slow"), { location, properties });
    const poll = async () => (await send("GET", put.headers.get("azure-asyncoperation")!)).json();

    expect(await put.json()).toMatchObject({ properties: { provisioningState: "Creating" } });
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    const begun = await poll();
    expect(begun).toEqual({ name: expect.any(String), startTime: time, status: "InProgress" });
    await until(async () => ((await poll()) as { status: string }).status !== "InProgress");
    expect(await poll()).toEqual({ ...(begun as object), endTime: time, status: "Succeeded" });
  }));

it("answers the request for the result of an operation that has failed with its error", () =>
  withServer(async (_, { arm, send }) => {
    const id = valid.storageAccount[0].replace("zonedbackups", "zonedothers");
    arm.faults.add({ method: "PUT", id: "zonedothers$", accepted: true, code: "Boom" });
    const { location, kind, sku } = valid.storageAccount[1];

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

it("shapes parts as Azure does, with properties of their own, and drops what lies beside them", () =>
  withServer(async (ask) => {
    const { body } = await ask<{ properties: Record<string, object[]> }>("GET", valid.balancer[0]);
    const subnets = [{ name: "flat", addressPrefix: "172.16.9.0/24" }];

    expect(body.properties["probes"]).toMatchObject([
      { name: "readyz", id: expect.any(String), properties: { port: 6443 } },
    ]);
    expect(
      await ask("PUT", network("virtualNetworks/flat"), {
        location: "westeurope",
        properties: { addressSpace: { addressPrefixes: ["172.16.0.0/16"] }, subnets },
      }),
    ).toMatchObject({ status: 400, body: { error: { code: "InvalidRequestFormat" } } });
  }));

it("names the clouds to clients without a token, in the shape of the API version", () =>
  withServer(async (ask) => {
    const list = await ask("GET", "/metadata/endpoints?api-version=2019-05-01", undefined, "");
    const one = await ask("GET", "/metadata/endpoints?api-version=2022-09-01", undefined, "");

    expect(list.body).toMatchObject([{ name: "AzureCloud" }]);
    expect(one.body).toMatchObject({
      resourceManager: expect.stringMatching(/^http:\/\/127/),
      // Below which clients look for accounts.
      suffixes: { storage: "core.windows.net" },
    });
  }));

it("has a control API under /local", () =>
  withServer(async (ask, { send }) => {
    expect(await ask("GET", "/local/health")).toMatchObject({
      body: { pid: process.pid, empty: false },
    });

    await ask("POST", "/local/faults", { method: "PUT", id: "routeTables/rt$", code: "Boom" });
    expect(await ask("PUT", valid.routeTable[0], { location: "westeurope" })).toMatchObject({
      status: 409,
      body: { error: { code: "Boom" } },
    });
    const busy = { method: "PUT", id: "routeTables/rt$", status: 429, code: "Busy", retryAfter: 3 };
    await ask("POST", "/local/faults", busy);
    const refused = await send("PUT", valid.routeTable[0], { location: "westeurope" });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "3"]);
    await ask("POST", "/local/faults", { ...busy, times: 2 });
    await ask("DELETE", "/local/faults");
    await ask("PUT", "/local/breakpoint", { ...busy, stage: "arrived" });
    await ask("DELETE", "/local/breakpoint");
    expect((await ask("PUT", valid.routeTable[0], { location: "westeurope" })).status).toBe(200);
    await ask("POST", "/local/faults", { method: "PUT", id: "routeTables/rt$", code: "Boom" });
    await ask("PUT", valid.routeTable[0], { location: "westeurope" });
    expect((await ask("PUT", "/local/durations", { factor: 0 })).status).toBe(204);
    expect(await ask("PUT", "/local/durations", { factor: "fast" })).toMatchObject({ status: 400 });
    const { body } = await ask<object[]>("GET", "/local/requests");
    expect(body.at(-1)).toMatchObject({ method: "PUT", id: valid.routeTable[0], code: "Boom" });
  }));

it("makes a component of a machine unhealthy, and all healthy", () =>
  withServer(async (ask) => {
    const at = "/local/machines/cp-1/failures";

    expect(await ask("POST", at, { component: "etcd" })).toMatchObject({ status: 204 });
    expect(await ask("POST", at, { component: "dns" })).toMatchObject({
      status: 400,
      body: { error: { message: "component is dns, expected etcd" } },
    });
    expect(await ask("DELETE", at)).toMatchObject({ status: 204 });
    expect(await ask("PUT", at)).toMatchObject({ status: 405 });
    expect(await ask("GET", "/local/health")).toMatchObject({
      body: { unhealthy: ["cp-1: etcd", "cp-1: none"] },
    });
  }));

it("returns the usage of quotas of public addresses, and refuses one that exceeds them", () =>
  withServer(async (ask) => {
    const usages = `${subscriptionPath}/providers/Microsoft.Network/locations/westeurope/usages`;
    const usage = async () =>
      (await ask("GET", usages)).body.value.map(({ name, currentValue, limit }) => [
        (name as { value: string }).value,
        currentValue,
        limit,
      ]);
    const { body: address } = await ask("GET", valid.natIp[0]);
    const [, before = 0] = (await usage())[0]!;

    for (const [name, code] of [
      ["PublicIPAddresses", "PublicIPCountLimitReached"],
      ["IPv4StandardSkuPublicIpAddresses", "IPv4StandardSkuPublicIpCountLimitReached"],
    ] as const) {
      await ask("PUT", "/local/quotas", { [name]: before });
      expect(await usage()).toContainEqual([name, before, before]);
      expect(await ask("PUT", `${valid.natIp[0]}-2`, address)).toMatchObject({
        status: 400,
        body: { error: { code } },
      });
      expect((await ask("PUT", valid.natIp[0], address)).status).toBe(200);
    }
  }));

it("returns the usage of each quota, and refuses a machine that exceeds one", () =>
  withServer(async (ask, { arm }) => {
    const usages = `${subscriptionPath}/providers/Microsoft.Compute/locations/westeurope/usages`;
    const usage = async (name: string) =>
      (await ask("GET", usages)).body.value.find(
        (one) => (one.name as { value: string }).value === name,
      );
    const { body: machine } = await ask("GET", valid.machine[0]);
    const resized = (vmSize: string) => ({
      ...machine,
      properties: { ...machine.properties, hardwareProfile: { vmSize } },
    });

    await ask("PUT", "/local/quotas", { cores: 6, standardDSv5Family: 2 });

    expect(await usage("cores")).toMatchObject({ currentValue: 2, limit: 6, unit: "Count" });
    expect(await usage("standardDSv5Family")).toMatchObject({ currentValue: 2, limit: 2 });
    expect(await usage("standardBSFamily")).toMatchObject({ currentValue: 0, limit: 5000 });
    expect((await ask("PUT", valid.machine[0], resized("Standard_D2s_v5"))).status).toBe(200);
    expect(await ask("PUT", valid.machine[0], resized("Standard_D4s_v5"))).toMatchObject({
      status: 409,
      body: {
        error: {
          code: "OperationNotAllowed",
          message: expect.stringMatching(/Current Limit: 2, .* New Limit Required: 4/),
        },
      },
    });
    expect(await ask("PUT", valid.machine[0], resized("Standard_D8s_v5"))).toMatchObject({
      body: { error: { message: expect.stringContaining("Total Regional vCPUs") } },
    });
    expect(await ask("PUT", "/local/quotas", { processors: 1 })).toMatchObject({ status: 400 });
    await arm.delete(valid.machine[0]);
    expect(await usage("cores")).toMatchObject({ currentValue: 0 });
  }));

it("lists the versions of an image as a bare array, and returns 404 for others", () =>
  withServer(async (ask) => {
    const versions = (sku: string) =>
      `${subscriptionPath}/providers/Microsoft.Compute/locations/westeurope/publishers/Canonical` +
      `/artifacttypes/vmimage/offers/ubuntu-24_04-lts/skus/${sku}/versions`;

    const { body } = await ask<{ name: string }[]>("GET", versions("server"));

    expect(body.map(({ name }) => name)).toContain("24.04.202608110");
    expect(await ask("GET", `${versions("server")}/24.04.202608110`)).toMatchObject({
      status: 200,
      body: { name: "24.04.202608110", location: "westeurope" },
    });
    for (const path of [`${versions("server")}/24.04.200001010`, versions("desktop")]) {
      expect(await ask("GET", path)).toMatchObject({
        status: 404,
        body: { error: { code: "NotFound" } },
      });
    }
  }));
