import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import { delimiter, dirname, join } from "node:path";

import { gather, install, isInstalled, placesOf } from "../installs";
import type { Tool } from "../tools";
import { Progress } from "../../shared/progress";
import { listen } from "../../../tests/support/listen";
import { testFolder } from "../../../tests/support/test-folder";

let folder: string;
let cache: string;
let said: string;
const path = process.env["PATH"];

beforeEach(() => {
  folder = testFolder();
  cache = join(folder, "cache");
  said = "";
});
afterEach(() => {
  process.env["PATH"] = path;
});

const options = (signal = new AbortController().signal) => ({
  cache,
  signal,
  progress: new Progress({ write: (text) => (said += text) }),
});

const tool = (changes: Partial<Tool> = {}): Tool => ({
  name: "etcd",
  version: "1.0.0",
  binaries: ["etcd"],
  builds: [{ module: "etcd", ldflags: "-s -w", binary: "etcd" }],
  typical: "1 min",
  downloads: [],
  ...changes,
});

/** Puts a `go` first on PATH whose `build` does this, with $out as what to make. */
function fakeGo(build: string): void {
  const file = join(folder, "go");
  const script = [
    "#!/bin/sh",
    'if [ "$1" = env ]; then echo go1.26.0; exit; fi',
    `if [ "$1" = list ]; then echo ${folder}/sources/$5; exit; fi`,
    `echo built >> ${folder}/builds`,
    'while [ "$1" != -o ]; do shift; done',
    "out=$2",
    build,
  ];
  writeFileSync(file, script.join("\n"));
  chmodSync(file, 0o755);
  process.env["PATH"] = [folder, path].join(delimiter);
}

const builds = () => readFileSync(join(folder, "builds"), "utf8").trim().split("\n").length;

it("builds what cannot be downloaded, once, and says so", async () => {
  fakeGo('echo fake > "$out"');

  await install([tool()], options());
  await install([tool()], options());

  expect(readFileSync(placesOf(tool(), cache)["etcd"]!, "utf8")).toBe("fake\n");
  expect(builds()).toBe(1);
  expect(said).toContain("building etcd 1.0.0 (typically 1 min on two cores)");
  expect(readdirSync(cache)).toEqual(["etcd-1.0.0"]);
});

it("puts beside a program what it reads of its module", async () => {
  fakeGo('echo fake > "$out"');
  mkdirSync(join(folder, "sources/example.org/it/cmd"), { recursive: true });
  writeFileSync(join(folder, "sources/example.org/it/cmd/schema.json"), "{}");
  const beside = { module: "example.org/it", files: ["cmd/schema.json"] };
  const reading = tool({ builds: [{ module: "etcd", ldflags: "", binary: "etcd", beside }] });

  await install([reading], options());

  const place = placesOf(reading, cache)["etcd"]!;
  expect(readdirSync(dirname(place)).sort()).toEqual(["etcd", "schema.json"]);
});

it("lets a second install wait for the first, not build beside it", async () => {
  fakeGo('sleep 1; echo fake > "$out"');

  await Promise.all([install([tool()], options()), install([tool()], options())]);

  expect(builds()).toBe(1);
  expect(said).toContain(`waiting for process ${process.pid}, which installs etcd 1.0.0`);
});

it("builds behind all else, with whatever Go starts", async () => {
  fakeGo('nice > "$out"');
  const own = Number(execFileSync("nice", { encoding: "utf8" }));

  await install([tool()], options());

  expect(Number(readFileSync(placesOf(tool(), cache)["etcd"]!, "utf8"))).toBe(
    Math.min(own + 10, 19),
  );
});

it("builds another version beside the one that is there", async () => {
  fakeGo('echo fake > "$out"');

  await install([tool()], options());
  await install([tool({ version: "1.1.0" })], options());

  expect(readdirSync(cache).sort()).toEqual(["etcd-1.0.0", "etcd-1.1.0"]);
});

it("leaves nothing of a build that fails, and shows the end of what Go said", async () => {
  fakeGo('echo half > "$out"; echo "main.go:1: no good" >&2; exit 1');

  await expect(install([tool()], options())).rejects.toThrow(
    /Go could not build etcd \(go build ended with 1\):\n {2}main.go:1: no good/,
  );
  expect(readdirSync(cache)).toEqual([]);
});

it.each([
  ["ends by itself", ""],
  ["does not listen to Ctrl-C", "trap '' INT; "],
])("leaves nothing of an interrupted build that %s, and ends it", async (_, deaf) => {
  const tellsPid = `echo $$ > ${folder}/pid.new; mv ${folder}/pid.new ${folder}/pid`;
  fakeGo(`${deaf}echo half > "$out"; ${tellsPid}; exec sleep 600`);
  const ctrlC = new AbortController();
  const installing = install([tool()], options(ctrlC.signal));
  installing.catch(() => undefined);
  while (!existsSync(join(folder, "pid"))) await new Promise((next) => setTimeout(next, 20));

  ctrlC.abort();

  await expect(installing).rejects.toMatchObject({ exitCode: 130 });
  expect(readdirSync(cache)).toEqual([]);
  const pid = Number(readFileSync(join(folder, "pid"), "utf8"));
  expect(() => process.kill(pid, 0)).toThrow();
});

it("clears away what a killed install has left, and goes on", async () => {
  fakeGo('echo fake > "$out"');
  mkdirSync(join(cache, ".etcd-1.0.0.left"), { recursive: true });
  writeFileSync(join(cache, "etcd-1.0.0.lock"), JSON.stringify({ pid: 999_999_999 }));

  await install([tool()], options());

  expect(readdirSync(cache)).toEqual(["etcd-1.0.0"]);
});

it("names all that is missing, and every way to get it, where nothing can be built", async () => {
  process.env["PATH"] = folder;

  const failed = install([tool(), tool({ name: "kwok", binaries: ["kwok"] })], options());

  await expect(failed).rejects.toThrow(/etcd 1\.0\.0: .*Go is not installed/);
  await expect(failed).rejects.toThrow(/kwok 1\.0\.0: .*Go is not installed/);
  await expect(failed).rejects.toThrow(/dl\.k8s\.io(.|\n)*go\.dev\/dl/);
});

describe("from its official source", () => {
  let server: Server;
  let base: string;
  let hash: string;
  beforeEach(async () => {
    server = createServer((request, response) => {
      response.end(request.url === "/etcd" ? "official" : `${hash}  etcd\n`);
    });
    base = `http://127.0.0.1:${await listen(server)}`;
    hash = createHash("sha256").update("official").digest("hex");
  });
  const official = () =>
    tool({
      downloads: [
        {
          url: `${base}/etcd`,
          sha256: { kind: "list", url: `${base}/SHA256SUMS` },
          binary: "etcd",
        },
      ],
    });

  it("takes what has the published hash, and makes it runnable", async () => {
    await install([official()], options());

    const file = placesOf(tool(), cache)["etcd"]!;
    expect(readFileSync(file, "utf8")).toBe("official");
    expect(statSync(file).mode & 0o111).toBe(0o111);
  });

  it("refuses what has another hash, with both hashes, and does not build instead", async () => {
    fakeGo('echo fake > "$out"');
    const real = hash;
    hash = "0".repeat(64);

    await expect(install([official()], options())).rejects.toThrow(
      `SHA-256 is ${real}, expected ${hash}`,
    );
    expect(isInstalled(tool(), cache)).toBe(false);
    expect(readdirSync(cache)).toEqual([]);
  });

  it.each([
    ["source", () => official()],
    ["image's registry", () => tool({ image: { repository: base, reference: "v1.0.0" } })],
  ])("builds when the %s does not answer", async (_, published) => {
    fakeGo('echo fake > "$out"');
    server.close();

    await install([published()], options());

    expect(readFileSync(placesOf(tool(), cache)["etcd"]!, "utf8")).toBe("fake\n");
    expect(said).toContain("no official download");
  });
});

it("gathers binaries from several places into one folder, the same for the same places", () => {
  const one = join(folder, "one");
  writeFileSync(one, "1");

  const at = gather({ first: one }, cache);

  expect(readFileSync(join(at, "first"), "utf8")).toBe("1");
  expect(gather({ first: one }, cache)).toBe(at);
  expect(gather({ second: one }, cache)).not.toBe(at);
});

it.each([
  ["below a file", () => join(folder, "file", "cache"), "a part of its path is a file"],
  ["where the system takes no folders", () => "/proc/x/y", "no folder can be made there"],
])("says what is wrong with a cache %s, and how to have another", async (_, place, reason) => {
  writeFileSync(join(folder, "file"), "");
  cache = place();
  const words = `the cache of programs, ${cache}, cannot be used: ${reason}; make it writable, or name another folder for it by XDG_CACHE_HOME`;

  await expect(install([tool()], options())).rejects.toThrow(words);
  expect(() => gather({ etcd: "/bin/true" }, cache)).toThrow(words);
});
