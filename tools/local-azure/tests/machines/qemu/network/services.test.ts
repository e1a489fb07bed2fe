import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

import { testFolder } from "../../../../../../tests/support/test-folder";
import { authorityIn } from "../../../../authority";
import { answer } from "../../../../machines/qemu/network/network-process";
import {
  firewallLogin,
  firewallProxy,
  type Passage,
} from "../../../../machines/qemu/network/firewall-process";

const curl = (words: string[]) => promisify(execFile)("curl", words);

const folder = testFolder();
const passages: Passage[] = [];
const mirror = createServer(({ url, headers }, response) =>
  response.end(`mirror ${url} ${headers["proxy-authorization"] ?? "knows no login"}`),
);
let proxy: ReturnType<typeof firewallProxy>;
const portOf = (server: typeof mirror): number => (server.address() as AddressInfo).port;

beforeAll(async () => {
  await new Promise<void>((ready) => mirror.listen(0, "127.0.0.1", ready));
  proxy = firewallProxy({
    login: firewallLogin,
    authority: await authorityIn(folder, "firewall-ca.crt", { commonName: "company CA" }),
    mirror: { host: "127.0.0.1", port: portOf(mirror) },
    passed: (passage) => passages.push(passage),
  });
  await new Promise<void>((ready) => proxy.listen(0, "127.0.0.1", ready));
});
afterAll(() => {
  for (const server of [mirror, proxy]) {
    server.close();
    server.closeAllConnections();
  }
});
beforeEach(() => passages.splice(0));

/** By curl, as on a machine; the answer and its status. */
async function ask(url: string, options: string[] = [], given = firewallLogin): Promise<string> {
  const login = `${given.user}:${encodeURIComponent(given.password)}`;
  const through = ["--proxy", `http://${login}@127.0.0.1:${portOf(proxy)}`];
  const trusting = ["--cacert", join(folder, "firewall-ca.crt")];
  const said = ["--silent", "--show-error", "--write-out", " %{http_code}"];
  const { stdout } = await curl([...[...said, ...through, ...trusting, ...options, url]]);
  return stdout;
}

it("opens what is asked of upstream's hosts, and has the mirror answer", async () => {
  expect(await ask("https://registry.k8s.io/v2/pause/manifests/3.10")).toBe(
    "mirror /v2/pause/manifests/3.10 knows no login 200",
  );
  expect(await ask("https://pkgs.k8s.io/core:/stable:/v1.37/deb/Release.key")).toBe(
    "mirror /apt/Release.key knows no login 200",
  );
  expect(passages).toEqual([
    { method: "GET", url: "https://registry.k8s.io/v2/pause/manifests/3.10", status: 200 },
    {
      ...{ method: "GET", status: 200 },
      url: "https://pkgs.k8s.io/core:/stable:/v1.37/deb/Release.key",
    },
  ]);
});

it("lets nobody out to anywhere else", async () => {
  expect(await ask("https://example.com/")).toContain("403");
  expect(await ask("http://example.com/")).toContain("403");
});

it("is not believed by who does not know the company's CA", async () => {
  const nobody = join(folder, "nobody.crt");
  writeFileSync(nobody, "");
  await expect(ask("https://registry.k8s.io/v2/", ["--cacert", nobody])).rejects.toThrow(/CA|cert/);
});

it.each(["https://registry.k8s.io/v2/", "http://registry.k8s.io/v2/"])(
  "wants a login for %s",
  async (url) => {
    const wrong = { ...firewallLogin, password: "wrong" };
    const said = await ask(url, [], wrong).catch(({ message }: Error) => message);

    expect(said).toContain("407");
    expect(passages.map(({ status }) => status)).toEqual([407]);
  },
);

const known = (name: string) => (name === "api.example" ? "203.0.113.7" : undefined);

/** A query as resolvers send it: one question, recursion asked for. */
function query(name: string, type: number): Buffer {
  const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  return Buffer.from([0xbe, 0xef, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1]);
}

const code = (reply: Buffer | undefined) => reply && reply[3]! & 0x0f;
const answers = (reply: Buffer | undefined) => reply?.readUInt16BE(6);

test("a known name has its address, whatever its letters' case", () => {
  const reply = answer(query("API.example", 1), known);
  expect(reply?.readUInt16BE(0)).toBe(0xbeef);
  expect([code(reply), answers(reply)]).toEqual([0, 1]);
  expect([...reply!.subarray(-4)]).toEqual([203, 0, 113, 7]);
});

test("a known name has no address of the other kind, and exists all the same", () => {
  const reply = answer(query("api.example", 28), known);
  expect([code(reply), answers(reply)]).toEqual([0, 0]);
});

test("any other name does not exist", () => {
  expect(code(answer(query("elsewhere.example", 1), known))).toBe(3);
});

test("what is no query gets no answer", () => {
  const response = query("api.example", 1);
  response[2]! |= 0x80;
  expect(answer(response, known)).toBeUndefined();
  expect(answer(query("api.example", 1).subarray(0, 20), known)).toBeUndefined();
  expect(answer(Buffer.from("hello"), known)).toBeUndefined();
});
