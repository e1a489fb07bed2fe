import { Client, Refused, Unreachable } from "../../../../plugins/kubernetes/api/client";
import { FakeApi } from "../../../support/plugins/fake-api";

let api: FakeApi;
let client: Client;

const start = async (certifiedHost?: string) => {
  api = await FakeApi.start(certifiedHost);
  client = new Client(api.access, api.redirect);
};

afterEach(async () => {
  client.close();
  await api.stop();
});

it("connects to where a name leads here, and checks the certificate against the name", async () => {
  await start();

  expect(await client.get("/version")).toEqual({});
});

it("does not trust a certificate of another name", async () => {
  await start("elsewhere.example.com");

  await expect(client.get("/version")).rejects.toThrow(
    /^the Kubernetes API at https:\/\/zoned\..*:6443 cannot be reached: Hostname\/IP does not /,
  );
});

it("names the address and the cause when nothing answers", async () => {
  await start();
  await api.stop();

  const failure = client.get("/version");

  await expect(failure).rejects.toBeInstanceOf(Unreachable);
  await expect(failure).rejects.toThrow(
    /^the Kubernetes API at https:\/\/zoned\..*:6443 cannot be reached: connect ECONNREFUSED/,
  );
});

it("reports what the server says when it refuses", async () => {
  await start();
  api.answer = () => [403, { reason: "Forbidden", message: "nodes is forbidden" }];

  const failure = client.get("/api/v1/nodes");

  await expect(failure).rejects.toBeInstanceOf(Refused);
  await expect(failure).rejects.toThrow("nodes is forbidden");
});

it.each([429, 503, 504])("asks again when the server is too busy (%s)", async (code) => {
  await start();
  let asked = 0;
  api.answer = () => (asked++ === 0 ? [code, { message: "not now" }] : undefined);

  expect(await client.get("/version")).toEqual({});
  expect(asked).toBe(2);
});

it.each([
  [409, 1],
  [500, 1],
  [503, 4],
])("lets an answer of %s be, when it has asked %s times", async (code, times) => {
  await start();
  let asked = 0;
  api.answer = () => (asked++, [code, { message: "no" }]);

  await expect(client.get("/version")).rejects.toMatchObject({ code });
  expect(asked).toBe(times);
});

it("ends a request that is interrupted", async () => {
  await start();
  const interruption = new AbortController();

  const failure = client.get("/version", interruption.signal);
  interruption.abort(new Error("the run was interrupted"));

  await expect(failure).rejects.toThrow("the run was interrupted");
});
