import { execFile } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { allowHttp, withBlobs } from "./support/arm/blobs";
import { storage } from "./support/arm/valid-resources";

const run = promisify(execFile);

type Built = Parameters<Parameters<typeof withBlobs>[0]>[0];

/** Status and x-ms-error-code of an answer, and its body; `headers` are added, or taken away. */
async function curl(
  { endpoint, token }: Built,
  words: readonly string[],
  path: string,
  headers: Readonly<Record<string, string | undefined>> = {},
) {
  const sent = Object.entries({
    ...{ authorization: `Bearer ${token()}`, "x-ms-version": "2024-11-04" },
    ...headers,
  }).flatMap(([name, value]) => (value === undefined ? [] : ["-H", `${name}: ${value}`]));
  const { stdout } = await run("curl", ["-s", "-i", ...sent, ...words, `${endpoint}${path}`]);
  const [head = "", body = ""] = stdout.split(/\r\n\r\n(.*)/s);
  const [, status] = /^HTTP\/1.1 (\d+)/.exec(head) ?? [];
  const [, code] = /^x-ms-error-code: (.*)$/im.exec(head) ?? [];
  return { answer: [status, code].join(" ").trim(), head, body };
}

const withCurl = (use: (built: Built) => Promise<void>) => () =>
  withBlobs(async (built) => {
    await built.grant();
    await allowHttp(built.arm);
    await use(built);
  });

type Headers = Readonly<Record<string, string | undefined>>;
const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const hours = (count: number) => new Date(Date.now() + count * 3_600_000);
const invalid = "401 InvalidAuthenticationInfo";

/** The token as one of another tenant. */
function ofOthers(token: string): string {
  const [head, claims = "", signature] = token.split(".");
  const own = JSON.parse(Buffer.from(claims, "base64url").toString()) as object;
  const other = Buffer.from(JSON.stringify({ ...own, tid: "other" })).toString("base64url");
  return [head, other, signature].join(".");
}

it.each<[flaw: string, headersOf: (built: Built) => Headers, answer: string, detail?: string]>([
  ["no version", () => ({ "x-ms-version": undefined }), "403 AuthenticationFailed"],
  ["an early version", () => ({ "x-ms-version": "2015-02-21" }), "403 AuthenticationFailed"],
  [
    "a version that there is not",
    () => ({ "x-ms-version": "2024-11-05" }),
    "400 InvalidHeaderValue",
  ],
  ["no token", () => ({ authorization: undefined }), "401 NoAuthenticationInformation"],
  [
    "a key of the account",
    () => ({ authorization: "SharedKey zonedbackups:abc" }),
    "403 KeyBasedAuthenticationNotPermitted",
  ],
  ["what is no token", () => bearer("abc"), invalid],
  [
    "a token of another service",
    ({ token }) => bearer(token("https://vault.azure.net")),
    invalid,
    "Audience validation failed.",
  ],
  [
    "a token of another tenant",
    ({ token }) => bearer(ofOthers(token())),
    invalid,
    "Issuer validation failed.",
  ],
  ["an expired token", ({ token }) => bearer(token(undefined, hours(-25))), invalid, "is expired."],
  [
    "a token of tomorrow",
    ({ token }) => bearer(token(undefined, hours(24))),
    invalid,
    "not yet valid.",
  ],
])("refuses a request with %s", (_, headersOf, answer, detail = "") =>
  withCurl(async (built) => {
    const refused = await curl(built, [], "/etcd/one", headersOf(built));

    expect(refused.answer).toBe(answer);
    expect(refused.body).toMatch(`<Error><Code>${answer.slice(4)}</Code><Message>`);
    expect(refused.body).toContain(detail);
  })(),
);

const put = ["-X", "PUT"];
const block = "/etcd/one?comp=block&blockid=QQ%3D%3D";
const list = [...put, "-d", "<BlockList><Latest>QQ==</Latest></BlockList>"];

it.each<[flaw: string, words: string[], path: string, answer: string]>([
  ["a container without a role", [], "/other/one", "403 AuthorizationPermissionMismatch"],
  ["a blob that is not there", [], "/etcd/one", "404 BlobNotFound"],
  ["one that is asked for in time", [], "/etcd/one?timeout=30", "404 BlobNotFound"],
  [
    "a signature by the account's key",
    [],
    "/etcd/one?sig=abc",
    "403 KeyBasedAuthenticationNotPermitted",
  ],
  [
    "a list of no blobs at a time",
    [],
    "/etcd?restype=container&comp=list&maxresults=0",
    "400 InvalidQueryParameterValue",
  ],
  [
    "a block that is larger than a block may be",
    [...put, "-H", `Content-Length: ${4000 * 1024 ** 2 + 1}`],
    block,
    "413 RequestBodyTooLarge",
  ],
  ["an account that is not there", ["--path-as-is"], "x/etcd/one", "404 ResourceNotFound"],
  [
    "a block without a name",
    [...put, "-d", "x"],
    "/etcd/one?comp=block",
    "400 InvalidQueryParameterValue",
  ],
  [
    "a block whose name is no base64",
    [...put, "-d", "x"],
    "/etcd/one?comp=block&blockid=A",
    "400 InvalidQueryParameterValue",
  ],
  [
    "a block whose name is of more than 64 bytes",
    [...put, "-d", "x"],
    `/etcd/one?comp=block&blockid=${encodeURIComponent(Buffer.alloc(65).toString("base64"))}`,
    "400 InvalidQueryParameterValue",
  ],
  [
    "a block of unknown length",
    [...put, "-d", "x", "-H", "Transfer-Encoding: chunked"],
    block,
    "411 MissingContentLengthHeader",
  ],
  [
    "a block list that is no XML",
    [...put, "-d", "<BlockList><Latest>QQ==</BlockList>"],
    "/etcd/one?comp=blocklist",
    "400 InvalidXmlDocument",
  ],
  [
    "metadata with a hyphen in its name",
    [...list, "-H", "x-ms-meta-a-b: c"],
    "/etcd/one?comp=blocklist",
    "400 InvalidMetadata",
  ],
])("refuses %s", (_, words, path, answer) =>
  withCurl(async (built) => {
    expect((await curl(built, words, path)).answer).toBe(answer);
  })(),
);

it(
  "takes a token that is for this account alone, and names in the answer to another where to get one",
  withCurl(async (built) => {
    const ask = (audience: string) =>
      curl(built, [], "/etcd/one", {
        ...bearer(built.token(audience)),
        "x-ms-client-request-id": "the-client's",
      });

    expect((await ask("https://zonedbackups.blob.core.windows.net")).answer).toBe(
      "404 BlobNotFound",
    );
    const { head } = await ask("https://vault.azure.net");
    expect(head).toMatch(/^x-ms-client-request-id: the-client's\r?$/im);
    expect(head).toMatch(/^www-authenticate: Bearer .*resource_id=https:\/\/storage\.azure\.com/im);
  }),
);

it(
  "keeps nothing of an upload that breaks off",
  withCurl(async (built) => {
    const { port, token, upload, blockFiles } = built;
    await upload("one", "x");
    const socket = connect(port, "127.0.0.1");
    socket.write(
      "PUT /zonedbackups/etcd/one?comp=block&blockid=QQ%3D%3D HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: 2024-11-04\r\n" +
        `Authorization: Bearer ${token()}\r\nContent-Length: 100\r\n\r\nhalf`,
    );
    while (blockFiles().length < 2) await sleep(10);

    socket.destroy();
    while (blockFiles().length > 1) await sleep(10);

    expect((await curl(built, [], "/etcd/one")).body).toBe("x");
  }),
);

it.each([
  ["plain HTTP, unless the account allows it", {}, "400 AccountRequiresHttps"],
  [
    "everybody, where the account is closed to public networks",
    { enableHttpsTrafficOnly: false, publicNetworkAccess: "Disabled" },
    "403 AuthorizationFailure",
  ],
  [
    "everybody, where the account's rules admit nobody",
    { enableHttpsTrafficOnly: false, networkRuleSet: { defaultAction: "Deny" } },
    "403 AuthorizationFailure",
  ],
])("refuses %s", (_, change, answer) =>
  withBlobs(async (built) => {
    await built.grant();
    await built.arm.patch(storage(""), change);

    expect((await curl(built, [], "/etcd/one")).answer).toBe(answer);
  }),
);

it(
  "honours a role only when all of Azure knows it",
  withCurl(async (built) => {
    built.arm.durations.set({ factor: 1 });

    expect((await curl(built, [], "/etcd/one")).answer).toBe("403 AuthorizationPermissionMismatch");
  }),
);

it(
  "fails as it is told to",
  withCurl(async (built) => {
    const { faults } = built.arm;
    faults.add({
      method: "PUT",
      id: "containers/etcd/blobs/one",
      status: 507,
      code: "InsufficientStorage",
      retryAfter: 7,
    });
    faults.add({ method: "PUT", id: "blobs/two$", lost: "answer" });
    faults.add({ method: "GET", id: "containers/etcd$", lost: "request" });

    const refused = await curl(built, [...put, "-d", "x"], block);
    expect(refused.answer).toBe("507 InsufficientStorage");
    expect(refused.head).toMatch(/^retry-after: 7\r?$/im);
    await expect(
      curl(built, [...put, "-d", "x"], block.replace("one", "two")),
    ).rejects.toMatchObject({ code: 52 });
    expect((await curl(built, list, "/etcd/two?comp=blocklist")).answer).toBe("201");
    expect((await curl(built, [], "/etcd/two")).body).toBe("x");
    await built.upload("one", "x");
    await expect(curl(built, [], "/etcd?restype=container&comp=list")).rejects.toMatchObject({
      code: 52,
    });
  }),
);
