import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";

import { freePort, serve } from "../../../tests/support/listen";
import { versions } from "../../../components/versions";
import { checkout } from "../../shared/checkout";
import { notCompared, outdated, type Pin, pins, usualAddresses } from "../outdated";

const packument = (...versions: string[]): string =>
  JSON.stringify({ versions: Object.fromEntries(versions.map((version) => [version, {}])) });

const releases = (...tags: string[]): string =>
  JSON.stringify(tags.map((tag_name) => ({ tag_name, assets: [] })));

/** The registry at /npm, the Go module proxy at /go, GitHub at /github. */
const answers: Readonly<Record<string, string>> = {
  "/npm/jest": packument("30.5.2", "29.7.1", "30.6.0", "31.0.0-alpha.2"),
  "/npm/@types/jest": packument("30.0.0"),
  "/go/k8s.io/kubernetes/@v/list": "v1.36.9\nv1.36.10\nv1.38.0-rc.1\nv1.37.2\n",
  "/go/sigs.k8s.io/cri-tools/@v/list": "",
  "/github/repos/kubereboot/kured/releases?per_page=100": releases("1.23.1", "1.23.0", "v1.22.9"),
  "/github/repos/projectcalico/calico/releases?per_page=100": "<html>log in first</html>",
};

const isAbridged = ({ url = "", headers }: IncomingMessage): boolean =>
  !url.startsWith("/npm/") || headers.accept === "application/vnd.npm.install-v1+json";

let address: string;
beforeAll(async () => {
  address = await serve((request, response) => {
    const answer = isAbridged(request) ? answers[request.url ?? ""] : undefined;
    response.writeHead(answer === undefined ? 404 : 200).end(answer ?? "not found");
  });
});

const pin = (source: Pin["source"], name: string, version: string): Pin => ({
  file: `file-of-${source}`,
  name,
  version,
  source,
});

const ask = (
  all: readonly Pin[],
  changes: object = {},
  signal = new AbortController().signal,
): Promise<string> =>
  outdated(
    all,
    { npm: `${address}/npm/`, go: `${address}/go`, github: `${address}/github`, ...changes },
    signal,
  );

it("lists what is behind, with the newest release of its minor and of all", async () => {
  const text = await ask([
    pin("npm", "jest", "30.5.2"),
    pin("npm", "@types/jest", "30.0.0"),
    pin("go", "k8s.io/kubernetes", "1.36.9"),
    pin("go", "k8s.io/kubernetes", "1.37.2"),
    pin("github", "kubereboot/kured", "1.23.0"),
  ]);

  expect(text.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["PINNED IN", "NAME", "PINNED", "NEWEST OF ITS MINOR", "NEWEST"],
    ["file-of-npm", "jest", "30.5.2", "–", "30.6.0"],
    ["file-of-go", "k8s.io/kubernetes", "1.36.9", "1.36.10", "1.37.2"],
    ["file-of-github", "kubereboot/kured", "1.23.0", "1.23.1", "1.23.1"],
    [""],
    ["2 of 5 are the newest."],
    [""],
  ]);
});

it("asks a registry that wants a login by it, and never prints it", async () => {
  const seen: (string | undefined)[] = [];
  const guarded = await serve(({ headers }, response) => {
    seen.push(headers.authorization);
    response.writeHead(seen.length > 1 ? 403 : 200).end(packument("30.5.2"));
  });
  const npm = guarded.replace("//", "//me:t%40ken@");

  expect(await ask([pin("npm", "jest", "30.5.2")], { npm })).toBe("1 of 1 are the newest.\n");
  expect(seen).toEqual([`Basic ${Buffer.from("me:t@ken").toString("base64")}`]);
  const refused = await ask([pin("npm", "jest", "30.5.2")], { npm }).catch(String);
  expect(refused).toContain("answers 403");
  expect(refused).not.toContain("t%40ken");
});

it("names the variable whose address is none", () => {
  expect(() => usualAddresses({ npm_config_registry: "registry" })).toThrow(/npm_config_registry/);
});

it("prints no table where nothing is behind", async () => {
  expect(await ask([pin("npm", "@types/jest", "30.0.0")])).toBe("1 of 1 are the newest.\n");
});

it("says in one line each what does not answer, and compares the rest", async () => {
  const closed = await freePort();
  const host = new URL(address).host;
  const text = await ask(
    [
      pin("npm", "@types/jest", "30.0.0"),
      pin("npm", "no-such-package", "1.0.0"),
      pin("npm", "nor-this", "1.0.0"),
      pin("go", "k8s.io/kubernetes", "1.36.9"),
      pin("go", "k8s.io/kubernetes", "1.37.2"),
      pin("github", "projectcalico/calico", "3.32.1"),
    ],
    { go: `http://127.0.0.1:${closed}` },
  );

  expect(text.split("\n")).toEqual([
    "1 of 1 are the newest.",
    `${host} answers 404; not compared: no-such-package, nor-this`,
    `127.0.0.1:${closed} does not answer (ECONNREFUSED); not compared: k8s.io/kubernetes`,
    `${host} answers no JSON; not compared: projectcalico/calico`,
    "",
  ]);
});

it("fails where nothing answers, with what is needed", async () => {
  const modules = [pin("go", "sigs.k8s.io/cri-tools", "1.36.0"), pin("npm", "nor-this", "1.0.0")];

  await expect(ask(modules)).rejects.toThrow(
    /no source says .* npm_config_registry and GOPROXY .*:\n.* lists no release; .*cri-tools\n.* answers 404; .*nor-this$/,
  );
});

it("is no failure of the sources when it is interrupted", async () => {
  const asked = ask([pin("npm", "jest", "30.5.2")], {}, AbortSignal.abort());

  await expect(asked).rejects.toMatchObject({ name: "AbortError" });
});

it("asks the registry and the first module proxy of the shell", () => {
  expect(usualAddresses({})).toEqual({
    npm: "https://registry.npmjs.org",
    go: "https://proxy.golang.org",
    github: "https://api.github.com",
  });
  const shell = { npm_config_registry: "http://npm/", GOPROXY: "off,https://go|https://other" };
  expect(usualAddresses(shell)).toMatchObject({ npm: "http://npm/", go: "https://go" });
});

describe("what is pinned", () => {
  const names = pins().map(({ file, name }) => `${file}: ${name}`);

  it("has every package of package.json", () => {
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(checkout, "package.json"), "utf8"),
    ) as Record<string, object>;
    const packages = Object.keys({ ...dependencies, ...devDependencies });

    expect(packages.filter((name) => !names.includes(`package.json: ${name}`))).toEqual([]);
  });

  it("has the modules that are built, and not what these import", () => {
    const modules = names.filter((name) => name.startsWith("tools/programs/modules/"));

    expect(modules).toEqual(
      expect.arrayContaining([
        "tools/programs/modules/kubernetes: k8s.io/kubernetes",
        "tools/programs/modules/1.36/kubernetes: k8s.io/kubernetes",
        "tools/programs/modules/etcd: go.etcd.io/etcd/server/v3",
        "tools/programs/modules/coredns: github.com/coredns/coredns",
        "tools/programs/modules/flannel: github.com/flannel-io/flannel",
      ]),
    );
    expect(modules.length).toBeLessThan(30);
  });

  it("has, or names as not compared, each version that clusters are made of, but for lower bounds", () => {
    const { containerdAtLeast: _, dockerAtLeast: __, ...pinned } = versions;
    const compared = pins().map(({ version }) => version);

    const left = Object.values(pinned).filter(
      (version) => !compared.includes(version.replace(/^v/, "")) && !notCompared.includes(version),
    );
    expect(left).toEqual([]);
  });

  it("has no commits, which have no newer release", () => {
    expect(names.filter((name) => name.includes("plugin-kubernetes"))).toEqual([]);
  });
});
