import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { serveMetadata } from "../../machines/qemu/network/metadata";
import { allowHttp, withBlobs } from "../support/arm/blobs";
import { storage } from "../support/arm/valid-resources";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "zoned-curl-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

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

it(
  "takes a snapshot in blocks from a script that has its token from the metadata service",
  withCurl(async ({ endpoint, identity }) => {
    const machine = { identities: [identity] } as never;
    const metadata = await serveMetadata({ address: "127.0.0.1", port: 0 }, () => machine);
    const file = join(folder, "snapshot.db");
    const content = randomBytes(2_500_000);
    writeFileSync(file, content);
    const script = `set -euo pipefail
token=$(curl -sSf -H Metadata:true "http://127.0.0.1:$IMDS/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://storage.azure.com/&client_id=$CLIENT" |
  sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')
azure() { curl -sSf -H "Authorization: Bearer $token" -H "x-ms-version: 2024-11-04" "$@"; }
cd "$FOLDER"
split -b 1000000 -d -a 5 snapshot.db part-
list="<BlockList>"
for part in part-*; do
  id=$(printf %s "$part" | base64)
  azure -X PUT --data-binary "@$part" -H "Content-Type: application/octet-stream" "$URL?comp=block&blockid=$(printf %s "$id" | sed 's/+/%2B/g; s/=/%3D/g')"
  list="$list<Latest>$id</Latest>"
done
azure -X PUT -d "$list</BlockList>" -H "x-ms-meta-cluster: abc" "$URL?comp=blocklist"
azure "$CONTAINER?restype=container&comp=list&prefix=zoned/" | grep -o '<Name>[^<]*</Name>'
azure -D - -o copy.db "$URL" | tr -d '\\r' | grep -i -e '^x-ms-meta-' -e '^content-length'
sha256sum <copy.db`;
    const { port } = metadata.address() as AddressInfo;
    const { stdout } = await run("bash", ["-c", script], {
      env: {
        ...process.env,
        IMDS: String(port),
        CLIENT: identity.clientId,
        FOLDER: folder,
        CONTAINER: `${endpoint}/etcd`,
        URL: `${endpoint}/etcd/zoned/20261124T220000Z-42.db`,
      },
    });
    metadata.closeAllConnections();
    metadata.close();

    expect(stdout.trim().split("\n")).toEqual([
      "<Name>zoned/20261124T220000Z-42.db</Name>",
      "x-ms-meta-cluster: abc",
      "content-length: 2500000",
      `${createHash("sha256").update(content).digest("hex")}  -`,
    ]);
  }),
);

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(10);
}

type Headers = Readonly<Record<string, string | undefined>>;

it.each<[flaw: string, headers: Headers, answer: string]>([
  ["no version", { "x-ms-version": undefined }, "403 AuthenticationFailed"],
  ["an early version", { "x-ms-version": "2015-02-21" }, "403 AuthenticationFailed"],
  ["a version that there is not", { "x-ms-version": "2024-11-05" }, "400 InvalidHeaderValue"],
  ["no token", { authorization: undefined }, "401 NoAuthenticationInformation"],
  [
    "a key of the account",
    { authorization: "SharedKey zonedbackups:abc" },
    "403 KeyBasedAuthenticationNotPermitted",
  ],
  ["what is no token", { authorization: "Bearer abc" }, "401 InvalidAuthenticationInfo"],
])("refuses a request with %s", (_, headers, answer) =>
  withCurl(async (built) => {
    const refused = await curl(built, [], "/etcd/one", headers);

    expect(refused.answer).toBe(answer);
    expect(refused.body).toMatch(`<Error><Code>${answer.slice(4)}</Code><Message>`);
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
    "a list of snapshots of blobs",
    [],
    "/etcd?restype=container&comp=list&include=snapshots",
    "501 NotImplemented",
  ],
  [
    "a block that is larger than a block may be",
    [...put, "-H", `Content-Length: ${4000 * 1024 ** 2 + 1}`],
    block,
    "413 RequestBodyTooLarge",
  ],
  ["an account that is not there", ["--path-as-is"], "x/etcd/one", "404 ResourceNotFound"],
  ["a lease", [...put, "-d", ""], "/etcd/one?comp=lease", "501 NotImplemented"],
  ["a HEAD", ["-I"], "/etcd/one", "501 NotImplemented"],
  ["a parameter that is not known", [], "/etcd/one?snapshot=1", "400 UnsupportedQueryParameter"],
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
    "a block list of what is committed alone",
    [...put, "-d", "<BlockList><Committed>QQ==</Committed></BlockList>"],
    "/etcd/one?comp=blocklist",
    "501 NotImplemented",
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
  "takes a token that is for this account alone",
  withCurl(async (built) => {
    const authorization = `Bearer ${built.token("https://zonedbackups.blob.core.windows.net")}`;

    const { answer } = await curl(built, [], "/etcd/one", { authorization });

    expect(answer).toBe("404 BlobNotFound");
  }),
);

it(
  "names in a refused token's answer where to get another",
  withCurl(async (built) => {
    const authorization = `Bearer ${built.token("https://vault.azure.net")}`;

    const { head, body } = await curl(built, [], "/etcd/one", {
      ...{ authorization, "x-ms-client-request-id": "the-client's" },
    });

    expect(head).toMatch(/^x-ms-client-request-id: the-client's\r?$/im);
    expect(head).toMatch(/^www-authenticate: Bearer .*resource_id=https:\/\/storage\.azure\.com/im);
    expect(body).toContain("<AuthenticationErrorDetail>Audience validation failed.");
  }),
);

it(
  "refuses a token of another tenant",
  withCurl(async (built) => {
    const [head, claims = "", signature] = built.token().split(".");
    const own = JSON.parse(Buffer.from(claims, "base64url").toString()) as object;
    const other = Buffer.from(JSON.stringify({ ...own, tid: "other" })).toString("base64url");
    const authorization = `Bearer ${[head, other, signature].join(".")}`;

    const { body } = await curl(built, [], "/etcd/one", { authorization });

    expect(body).toContain("Issuer validation failed.");
  }),
);

it.each([
  ["expired", -25, "Lifetime validation failed. The token is expired."],
  ["of tomorrow", 24, "Lifetime validation failed. The token is not yet valid."],
])("refuses a token that is %s", (_, hours, detail) =>
  withCurl(async (built) => {
    const issued = new Date(Date.now() + hours * 3_600_000);
    const authorization = `Bearer ${built.token(undefined, issued)}`;

    const { answer, body } = await curl(built, [], "/etcd/one", { authorization });

    expect(answer).toBe("401 InvalidAuthenticationInfo");
    expect(body).toContain(detail);
  })(),
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
    await until(() => blockFiles().length === 2);

    socket.destroy();
    await until(() => blockFiles().length === 1);

    expect((await curl(built, [], "/etcd/one")).body).toBe("x");
  }),
);

it(
  "reaches an account by its name on Azure, too",
  withCurl(async (built) => {
    const { port } = built;
    const named = { ...built, endpoint: `http://127.0.0.1:${port}` };

    const answer = await curl(
      named,
      ["-H", "Host: zonedbackups.blob.core.windows.net"],
      "/etcd?restype=container&comp=list",
    );

    expect(answer.body).toMatch(
      '<EnumerationResults ServiceEndpoint="https://zonedbackups.blob.core.windows.net/" ContainerName="etcd">',
    );
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
