import { cloudProviderProblems } from "../../../../components/add-ons/manifests/cloud-provider-images";
import { validSettings } from "../../../support/sample";
import { serve } from "../../../support/listen";

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
