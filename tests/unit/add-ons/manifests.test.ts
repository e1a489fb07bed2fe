import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import * as pulumi from "@pulumi/pulumi";

import {
  findManifests,
  manifestsFor,
  obtainable,
} from "../../../components/add-ons/manifests/manifests";
import { Manifest, manifests } from "../../../components/versions";
import { serve } from "../../support/listen";
import { testFolder } from "../../support/test-folder";
import { cloudProviderProblems } from "../../../components/add-ons/manifests/cloud-provider-images";
import { validSettings } from "../../support/sample";
import { applyObjects, objectIn, parseObjects } from "../../../components/add-ons/objects";
import { dependenciesOf, Recorder } from "../../support/record";

describe("a search for manifests", () => {
  const path = "thing-v1/thing.yaml";
  const good = "kind: Good\n";
  const bad = "kind: Bad\n";
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");

  let scratch: string;
  let base: string;
  /** What the server was asked for, in turn. */
  let asked: string[];
  /** What it answers: a text, or a status. */
  let answers: Map<string, (string | number)[]>;
  const before = { ...process.env };

  beforeEach(async () => {
    scratch = testFolder();
    asked = [];
    answers = new Map();
    base = await serve((request, response) => {
      asked.push(request.url!);
      const queue = answers.get(request.url!) ?? [404];
      const answer = queue.length > 1 ? queue.shift()! : queue[0]!;
      response.writeHead(typeof answer === "number" ? answer : 200);
      response.end(typeof answer === "number" ? "" : answer);
    });
    process.env["XDG_CACHE_HOME"] = join(scratch, "cache");
    delete process.env["ZONED_MANIFESTS"];
  });

  afterEach(() => void (process.env = { ...before }));

  const manifest = (): Manifest => ({ path, url: `${base}/upstream`, sha256: hash(good) });
  const cacheFolder = () => join(scratch, "cache", "zoned", "manifests");
  const cached = () => join(cacheFolder(), hash(good));
  const put = (file: string, text: string) => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  const find = async (mirror = "") => (await findManifests([manifest()], { mirror })).get(path);

  it("asks nobody when the cache has it", async () => {
    put(cached(), good);
    process.env["ZONED_MANIFESTS"] = base;

    expect(await find(base)).toBe(good);
    expect(asked).toEqual([]);
  });

  it("takes the user's own folder before upstream", async () => {
    process.env["ZONED_MANIFESTS"] = join(scratch, "own");
    put(join(scratch, "own", path), good);

    expect(await find()).toBe(good);
    expect(asked).toEqual([]);
  });

  it("takes the user's own address before the mirror and upstream", async () => {
    process.env["ZONED_MANIFESTS"] = `${base}/own/`;
    answers.set(`/own/${path}`, [good]);

    expect(await find(`${base}/mirror`)).toBe(good);
    expect(asked).toEqual([`/own/${path}`]);
  });

  it.each(["a folder", "an address"])(
    "finds the files below manifests/ of a mirror that is %s",
    async (kind) => {
      put(join(scratch, "mirror", "manifests", path), good);
      answers.set(`/mirror/manifests/${path}`, [good]);

      expect(await find(kind === "a folder" ? join(scratch, "mirror") : `${base}/mirror/`)).toBe(
        good,
      );
      expect(asked).not.toContain("/upstream");
    },
  );

  it("goes upstream when the user's own folder has no such file, and keeps what it got", async () => {
    process.env["ZONED_MANIFESTS"] = scratch;
    answers.set("/upstream", [good]);

    expect(await find()).toBe(good);
    expect(await find()).toBe(good);

    expect(asked).toEqual(["/upstream"]);
    expect(readdirSync(cacheFolder())).toEqual([hash(good)]);
  });

  it("notices a spoilt cache and fetches anew", async () => {
    put(cached(), bad);
    answers.set("/upstream", [good]);

    expect(await find()).toBe(good);
    expect(readFileSync(cached(), "utf8")).toBe(good);
  });

  it("refuses a wrong file with both hashes and where it came from, and does not keep it", async () => {
    answers.set("/upstream", [bad]);

    await expect(find()).rejects.toThrow(
      `${base}/upstream: has another file: SHA-256 ${hash(bad)}, expected ${hash(good)}`,
    );
    expect(() => readdirSync(cacheFolder())).toThrow("ENOENT");
  });

  it("goes no further when the user's own file is a wrong one", async () => {
    process.env["ZONED_MANIFESTS"] = scratch;
    const own = put(join(scratch, path), bad);
    answers.set("/upstream", [good]);

    await expect(find()).rejects.toThrow(
      `own folder ${own}: has another file: SHA-256 ${hash(bad)}`,
    );
    expect(asked).toEqual([]);
  });

  it("asks a stumbling server again", async () => {
    answers.set("/upstream", [500, 429, good]);

    expect(await find()).toBe(good);
    expect(asked).toHaveLength(3);
  });

  it("does not ask again for what is not there", async () => {
    await expect(find()).rejects.toThrow(`${base}/upstream: HTTP 404`);
    expect(asked).toEqual(["/upstream"]);
  });

  it("goes without a cache that cannot be written", async () => {
    put(join(scratch, "cache"), "a file where a folder should be");
    answers.set("/upstream", [good]);

    expect(await find()).toBe(good);
  });

  it("tells of every missing file at once, each place tried and why, and how to fix it", async () => {
    process.env["ZONED_MANIFESTS"] = join(scratch, "own");
    const nobody = (name: string): Manifest => ({
      path: name,
      url: `${base}/${name}`,
      sha256: hash(name),
    });

    const failure = findManifests([nobody("a.yaml"), nobody("b.yaml")], { mirror: "" });

    await expect(failure).rejects.toMatchObject({ __pulumiRunError: true });
    const { message } = (await failure.catch((error: Error) => error as Error)) as Error;
    for (const name of ["a.yaml", "b.yaml"]) {
      expect(message).toContain(`cache ${join(cacheFolder(), hash(name))}: no such file`);
      expect(message).toContain(`own folder ${join(scratch, "own", name)}: no such file`);
      expect(message).toContain(`${base}/${name}: HTTP 404`);
    }
    expect(message).toContain("pulumi config set mirror");
    expect(message).toContain("export ZONED_MANIFESTS=");
    expect(message).not.toContain("do without");
  });

  it.each([
    { list: manifests.canal, command: "pulumi config set cni flannel" },
    { list: manifests.diskDriver, command: "pulumi config set diskDriver false" },
  ])(
    "offers $command for a cluster that can do without, and for none that is there",
    async ({ list, command }) => {
      const elsewhere = list.map((one) => ({ ...one, url: `${base}/nowhere` }));

      const { all, message } = await obtainable(elsewhere, { mirror: "" });

      expect(all).toBe(false);
      expect(message).toContain(`do without them: ${command}`);
      const { message: ofLiving } = await obtainable(elsewhere, { mirror: "", isBegun: true });
      expect(ofLiving).toContain("export ZONED_MANIFESTS=");
      expect(ofLiving).not.toContain(command);
    },
  );

  it("says that all can be had when they can", async () => {
    answers.set("/upstream", [good]);

    expect(await obtainable([manifest()], { mirror: "" })).toEqual({ all: true, message: "" });
  });

  it("says why a server was not reached", async () => {
    const closed = { ...manifest(), url: "http://127.0.0.1:1/" };

    expect((await obtainable([closed], { mirror: "" })).message).not.toContain("fetch failed");
  });

  it.each([
    {
      settings: { cni: "canal", diskDriver: true },
      needs: [...manifests.canal, ...manifests.diskDriver],
    },
    { settings: { cni: "flannel", diskDriver: true }, needs: [...manifests.diskDriver] },
    { settings: { cni: "none", diskDriver: false }, needs: [] },
  ] as const)("needs no file for what the settings leave out: $settings", ({ settings, needs }) => {
    expect(manifestsFor(settings)).toEqual(needs);
  });
});

describe("a search for the images of the cloud provider", () => {
  let host: string;
  let status: number;
  let asked: string[];
  beforeEach(async () => {
    status = 200;
    asked = [];
    const registry = await serve(({ method, url }, response) => {
      asked.push(`${method} ${url}`);
      response.writeHead(url?.includes("/there/") ? 200 : status).end();
    });
    host = new URL(registry).host;
  });

  const settings = { ...validSettings, cloudProvider: true, mirror: "" };

  const problems = (changes: Partial<typeof settings> = {}) => {
    const images = [`${host}/oss/there/manager:v1`, `${host}/oss/manager:v2`];
    const archive = `http://${host}/v1/archive.tar.gz`;
    return cloudProviderProblems({ ...settings, ...changes }, { images, archive });
  };

  it("finds nothing of images that are there, and asks for each by its tag", async () => {
    expect(await problems()).toEqual([]);
    expect(asked.sort()).toEqual([
      "HEAD /v2/oss/manager/manifests/v2",
      "HEAD /v2/oss/there/manager/manifests/v1",
    ]);
  });

  it("names an image that is not there, and what to do", async () => {
    status = 404;

    expect(await problems()).toEqual([
      expect.stringMatching(/\/oss\/manager:v2, which Kubernetes .* needs .*config set mirror/),
    ]);
  });

  it("asks for the archive by which kubelets log in where there are registries, also without the cloud provider", async () => {
    const registries = ["/a/registry"];
    expect(await problems({ registries, cloudProvider: false })).toEqual([]);
    expect(asked).toEqual(["HEAD /v1/archive.tar.gz"]);
    status = 404;

    expect(await problems({ registries })).toEqual([
      expect.stringMatching(/manager:v2/),
      expect.stringMatching(
        /\/v1\/archive.tar.gz, by which kubelets .* log in .* is not there: take/,
      ),
    ]);
  });

  it("asks for the images and the archive of the cloud provider's own version", async () => {
    const fetched = jest.spyOn(globalThis, "fetch").mockResolvedValue(new Response());
    const older = { ...settings, registries: ["/a/registry"], kubernetesVersion: "1.36.3" };

    await cloudProviderProblems(older);

    expect(fetched.mock.calls.map(([url]) => url)).toEqual([
      "https://mcr.microsoft.com/v2/oss/v2/kubernetes/azure-cloud-controller-manager/manifests/v1.36.5",
      "https://mcr.microsoft.com/v2/oss/v2/kubernetes/azure-cloud-node-manager/manifests/v1.36.5",
      "https://packages.aks.azure.com/cloud-provider-azure/v1.36.5/binaries/azure-acr-credential-provider-linux-amd64-v1.36.5.tar.gz",
    ]);
    fetched.mockRestore();
  });

  it("asks for images beside a folder of manifests, from which no machine gets any", async () => {
    status = 404;

    expect(await problems({ mirror: "/srv/manifests" })).toHaveLength(1);
  });

  it.each([401, 429, 500])("finds nothing where the registry answers %i", async (code) => {
    status = code;

    expect(await problems()).toEqual([]);
  });

  it("finds nothing where no registry answers", async () => {
    expect(
      await cloudProviderProblems(settings, { images: ["127.0.0.1:1/a:v1"], archive: "" }),
    ).toEqual([]);
  });

  it.each([{ cloudProvider: false }, { mirror: "https://mirror.example" }])(
    "asks nobody with %j",
    async (changes) => {
      status = 404;

      expect(await problems(changes)).toEqual([]);
      expect(asked).toEqual([]);
    },
  );
});

describe("the objects of a manifest", () => {
  const account =
    "apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: a, namespace: kube-system }\n";
  const daemonSet =
    "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: d, namespace: kube-system }\nspec: {}\n";

  async function apply(text: string) {
    const recorder = await Recorder.start();
    const parent = new pulumi.ComponentResource(
      "test:index:Parent",
      "parent",
      {},
      {
        transformations: [recorder.watch],
      },
    );
    const resources = applyObjects("thing", parseObjects("thing.yaml", text), { parent });
    return { recorder, resources };
  }

  it("makes a resource of every object, named after its add-on, kind and name", async () => {
    const { recorder } = await apply(`---\n${account}---\n---\n${daemonSet}---\n`);

    expect((await recorder.objects()).map(({ type, name }) => ({ type, name }))).toEqual([
      { type: "kubernetes:core/v1:ServiceAccount", name: "thing/ServiceAccount/a" },
      { type: "kubernetes:apps/v1:DaemonSet", name: "thing/DaemonSet/d" },
    ]);
  });

  it("takes lists apart", () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: ConfigMap, metadata: { name: x } }\n`;

    expect(parseObjects("list.yaml", list)).toEqual([
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } },
    ]);
  });

  it("applies what runs after what it needs, wherever the manifest has it", async () => {
    const { recorder } = await apply(`${daemonSet}---\n${account}`);

    const needs = await recorder.object("ServiceAccount", "a");
    expect(await dependenciesOf(await recorder.object("DaemonSet", "d"))).toEqual([needs.resource]);
  });

  it("refuses a kind that it does not know, by name", async () => {
    await expect(
      apply("apiVersion: batch/v1\nkind: Job\nmetadata: { name: once }\n"),
    ).rejects.toThrow("thing has a batch/v1/Job called once");
  });

  it("says which file is not YAML", () => {
    expect(() => parseObjects("thing.yaml", "a: [")).toThrow("thing.yaml is not YAML");
  });

  it("hands out the one object of a kind and name, and refuses two", () => {
    const objects = parseObjects("thing.yaml", account);

    expect(objectIn(objects, "ServiceAccount", "a")).toBe(objects[0]);
    expect(() => objectIn([...objects, ...objects], "ServiceAccount", "a")).toThrow("got 2");
  });
});
