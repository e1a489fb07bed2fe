import type { IncomingMessage } from "node:http";
import * as pulumi from "@pulumi/pulumi";

import { ArmClient } from "../../../components/azure/resource-manager";
import { serve } from "../../support/listen";

const token = "the-token-that-nobody-sees";

interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  /** The connection is cut after half an answer. */
  readonly cut?: true;
}

/**
 * A server that gives these answers in turn, the last for ever, and a client that notes its pauses.
 */
async function served(...answers: Answer[]) {
  const asked: IncomingMessage[] = [];
  const pauses: number[] = [];
  const endpoint = await serve((request, response) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)]!;
    const { status = 200, headers, body, cut } = answer;
    asked.push(request);
    if (cut) {
      response.writeHead(200, { "content-length": 1000 }).write("{");
      setTimeout(() => response.destroy(), 10);
      return;
    }
    response.writeHead(status, headers);
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  const arm = new ArmClient(endpoint, token, async (ms) => void pauses.push(ms));
  return {
    endpoint,
    asked,
    pauses,
    get: () =>
      arm.get<typeof thing>("/thing", { "api-version": "1" }, { properties: { state: "" } }),
    filtered: () => arm.list("/things", { $filter: "a eq 'b'" }, {}),
    act: () => arm.act("/thing/start", { "api-version": "1" }),
    listOnce: (path = "/things") => arm.listOnce(path, { "api-version": "1" }, {}),
    getOnce: () => arm.getOnce("/thing", { "api-version": "1" }, {}),
    getIfReadable: () => arm.getIfReadable("/thing", { "api-version": "1" }, {}),
    listIfReadable: () => arm.listIfReadable("/things", { "api-version": "1" }, {}),
    list: () => arm.list<{ name: string }>("/things", { "api-version": "1" }, { name: "" }),
  };
}

const thing = { properties: { state: "Succeeded" } };
const success: Answer = { body: thing };
const error = (status: number, code: string, message = "…"): Answer => ({
  status,
  body: { error: { code, message } },
});
const messageOf = (asking: Promise<unknown>): Promise<string> =>
  asking.then(
    () => "no error",
    (thrown: unknown) =>
      pulumi.RunError.isInstance(thrown) ? thrown.message : `no RunError: ${String(thrown)}`,
  );

it.each([
  ["408", error(408, "RequestTimeout")],
  ["409 while another operation is in progress", error(409, "AnotherOperationInProgress")],
  ["429", error(429, "TooManyRequests")],
  ["500", error(500, "InternalServerError")],
  ["503 in HTML", { status: 503, body: "<html>" }],
  ["half an answer", { cut: true } as const],
])("asks again after %s", async (_, passing) => {
  const { get, asked, pauses } = await served(passing, passing, success);

  expect(await get()).toEqual(thing);
  expect(asked).toHaveLength(3);
  expect(pauses).toEqual([4000, 8000]);
});

it.each([
  ["seconds", "7", 7000],
  ["nothing at all", "0", 0],
  ["more than a minute", "3600", 60_000],
  ["a date that has passed", "Wed, 21 Oct 2015 07:28:00 GMT", 0],
  ["a date far ahead", "Wed, 21 Oct 2122 07:28:00 GMT", 60_000],
  ["what cannot be parsed", "soon", 4000],
])("waits as Retry-After says: %s", async (_, retryAfter, pause) => {
  const busy = { ...error(429, "TooManyRequests"), headers: { "retry-after": retryAfter } };
  const { get, pauses } = await served(busy, success);

  await get();

  expect(pauses).toEqual([pause]);
});

it("lets an answer take two minutes, since the list of sizes may take more than half of one", async () => {
  const timeout = jest.spyOn(AbortSignal, "timeout");
  const { get } = await served(success);

  await get();

  expect(timeout.mock.calls).toEqual([[120_000]]);
  timeout.mockRestore();
});

it("writes a space as every service of Azure reads it", async () => {
  const { asked, filtered } = await served({ body: { value: [] } });

  await filtered();

  expect(asked[0]!.url).toContain("=a%20eq%20");
});

it("gives up a connection that is refused, and says so", async () => {
  const arm = new ArmClient("http://127.0.0.1:1", token, async () => undefined);

  const message = await messageOf(arm.get("/thing", {}, {}));

  expect(message).toMatch(/^Azure .*GET http:\/\/127\.0\.0\.1:1\/thing.*fetch failed/);
  expect(message).toContain("resourceManagerEndpoint");
});

it.each(["ResourceGroupNotFound", "ResourceNotFound", "NotFound"])(
  "takes 404 %s for: not there",
  async (code) => {
    const { get, list } = await served(error(404, code));

    expect(await get()).toBeUndefined();
    expect(await list()).toEqual([]);
  },
);

it.each([
  ["404 SubscriptionNotFound", error(404, "SubscriptionNotFound")],
  ["401 InvalidAuthenticationTokenTenant", error(401, "InvalidAuthenticationTokenTenant")],
])("takes %s for: not there, of what others keep alone", async (code, refusal) => {
  const { get, getIfReadable, listIfReadable } = await served(refusal);

  expect(await getIfReadable()).toBeUndefined();
  expect(await listIfReadable()).toEqual([]);
  await expect(get()).rejects.toThrow(code);
});

it("reads all pages of a list", async () => {
  const first = { value: [{ name: "a" }], nextLink: "" };
  const second = { value: [{ name: "b" }] };
  const { list, endpoint, asked } = await served({ body: first }, { body: second });
  first.nextLink = `${endpoint}/things?page=2`;

  expect(await list()).toEqual([{ name: "a" }, { name: "b" }]);
  expect(asked.map(({ url }) => url)).toEqual(["/things?api-version=1", "/things?page=2"]);
});

it.each(["", null])("ends a list where nextLink is %j", async (nextLink) => {
  const { list, asked } = await served({ body: { value: [{ name: "a" }], nextLink } });

  expect(await list()).toEqual([{ name: "a" }]);
  expect(asked).toHaveLength(1);
});

it.each([
  ["{}", {}, "an object at properties"],
  ["an empty text", "", "nothing"],
  ["a text", '""', "an object"],
  ["null", "null", "an object"],
  ["a number for a text", { properties: { state: 3 } }, "a string at properties.state"],
  ["HTML", "<html>\n<body>log in", "JSON"],
])("says what is wrong with 200 and %s", async (_, body, says) => {
  const { get, asked } = await served({ body });

  const message = await messageOf(get());

  expect(message).toMatch(/^Azure .* did not answer GET http.*200 with/);
  expect(message).toContain(says);
  expect(message).toContain("resourceManagerEndpoint");
  expect(asked).toHaveLength(1);
});

it.each([
  ["{}", {}, "a list called value"],
  ["null", "null", "a list called value"],
  ["no list", { value: "many" }, "a list called value"],
  ["null in the list", { value: [null] }, "an object"],
  ["a nameless one in the list", { value: [{ name: "a" }, {}] }, "a string at name"],
])("says what is wrong with a list: 200 and %s", async (_, body, says) => {
  const { list } = await served({ body });

  expect(await messageOf(list())).toMatch(new RegExp(`^Azure .*200 with.*\\n.*${says}`));
});

it.each([
  [
    error(401, "ExpiredAuthenticationToken"),
    ["az login", "az account set", "resourceManagerEndpoint"],
    1,
  ],
  [error(403, "AuthorizationFailed"), ["az role assignment list", "Contributor"], 1],
  [error(404, "SubscriptionNotFound"), ["az account list", "az account set"], 1],
  [
    error(409, "MissingSubscriptionRegistration"),
    ["Compute", "Network", "ManagedIdentity"].map(
      (name) => `provider register -n Microsoft.${name}`,
    ),
    1,
  ],
  [error(409, "AnotherOperationInProgress"), ["409 AnotherOperationInProgress"], 4],
  [{ status: 503, body: "" }, ["503 nothing"], 4],
  [{ status: 500, body: "null" }, ["500 null"], 4],
  [error(400, "X", `you sent Bearer ${token}`), ["400 X: you sent Bearer [token]"], 1],
] as const)("says what to do after %j, and never the token", async (refusal, says, times) => {
  const { get, asked } = await served(refusal);

  const message = await messageOf(get());

  for (const text of says) expect(message).toContain(text);
  expect(message).not.toContain(token);
  expect(asked).toHaveLength(times);
  expect(asked[0]!.headers.authorization).toBe(`Bearer ${token}`);
});

describe("an action", () => {
  const accepted: Answer = {
    status: 202,
    headers: { "azure-asyncoperation": "", "retry-after": "7" },
  };
  const follow = async (...answers: Answer[]) => {
    const scene = await served(accepted, ...answers);
    accepted.headers!["azure-asyncoperation"] = `${scene.endpoint}/operations/1`;
    return scene;
  };
  const status = (status: string, error?: object): Answer => ({ body: { status, error } });

  it("is sent once, and followed to its end as Azure asks", async () => {
    const scene = await follow(status("InProgress"), status("Succeeded"));

    await scene.act();

    expect(scene.asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "POST /thing/start?api-version=1",
      "GET /operations/1",
      "GET /operations/1",
    ]);
    expect(scene.pauses[0]).toBe(7000);
  });

  it("fails with Azure's reason where it was accepted and then failed", async () => {
    const failed = status("Failed", { code: "AllocationFailed", message: "no room" });

    const said = await messageOf((await follow(failed)).act());

    expect(said).toMatch(/did not do POST .*\/thing\/start.*: Failed AllocationFailed: no room/);
    expect(said).not.toContain(token);
  });

  it("fails where there is no such thing", async () => {
    const scene = await served(error(404, "ResourceNotFound"));

    expect(await messageOf(scene.act())).toMatch(/did not do POST/);
  });
});

it("asks once for what stays as it is, in whatever case a scope is, and again for anything else", async () => {
  const { asked, listOnce, getOnce, getIfReadable, get } = await served({
    body: { value: [thing], ...thing },
  });

  const lists = await Promise.all([listOnce(), listOnce("/Things")]);
  expect([...lists, await listOnce()]).toEqual([[thing], [thing], [thing]]);
  await Promise.all([getOnce(), getOnce(), getIfReadable(), listOnce("/others")]);
  await get();

  expect(asked.map(({ url }) => url).sort()).toEqual(
    ["/others", "/thing", "/thing", "/things"].map((path) => `${path}?api-version=1`),
  );
});
