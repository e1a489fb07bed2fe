import { createServer, type Server } from "node:http";

import { cloudProviderProblems } from "../../../../components/add-ons/manifests/cloud-provider-images";
import { validSettings } from "../../../support/sample";
import { listen } from "../../../support/listen";

let registry: Server;
let host: string;
let status: number;
let asked: string[];
beforeEach(async () => {
  status = 200;
  asked = [];
  registry = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.writeHead(url?.includes("/there/") ? 200 : status).end();
  });
  host = `127.0.0.1:${await listen(registry)}`;
});
afterEach(() => {
  registry.close();
  registry.closeAllConnections();
});

const settings = { ...validSettings, cloudProvider: true, mirror: "" };

const problems = (changes: Partial<typeof settings> = {}) => {
  const images = [`${host}/oss/there/manager:v1`, `${host}/oss/manager:v2`];
  return cloudProviderProblems({ ...settings, ...changes }, images);
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

it("asks for images beside a folder of manifests, from which no machine gets any", async () => {
  status = 404;

  expect(await problems({ mirror: "/srv/manifests" })).toHaveLength(1);
});

it.each([401, 429, 500])("finds nothing where the registry answers %i", async (code) => {
  status = code;

  expect(await problems()).toEqual([]);
});

it("finds nothing where no registry answers", async () => {
  expect(await cloudProviderProblems(settings, ["127.0.0.1:1/a:v1"])).toEqual([]);
});

it.each([{ cloudProvider: false }, { mirror: "https://mirror.example" }])(
  "asks nobody with %j",
  async (changes) => {
    status = 404;

    expect(await problems(changes)).toEqual([]);
    expect(asked).toEqual([]);
  },
);
