import * as pulumi from "@pulumi/pulumi";

import { after } from "../../support/settings-cases/case";
import { accessCases } from "../../support/settings-cases/access";
import { clusterCases, resourceGroupCases, tagCases } from "../../support/settings-cases/cluster";
import { entraBesideLogin, entraCases } from "../../support/settings-cases/entra";
import {
  machineIdentityCases,
  workloadIdentityCases,
} from "../../support/settings-cases/identities";
import {
  diskEncryptionSetCases,
  existingIdentityCases,
  imageCases,
  nodeSubnetCases,
} from "../../support/settings-cases/ids-of-others";
import { kubeadmCases } from "../../support/settings-cases/kubeadm";
import { kubeProxyCases } from "../../support/settings-cases/kube-proxy";
import { etcdBackupCases, rebootCases } from "../../support/settings-cases/maintenance";
import { httpProxyCases, rangeCases } from "../../support/settings-cases/network";
import { poolCases, sizeCases } from "../../support/settings-cases/pools";
import { registryCases, registryCredentialCases } from "../../support/settings-cases/registries";
import { access, complaints, settingsWith, Values } from "../../support/stack";

const stack: Values = { location: "westeurope", ...access };

const login = "me:hush@proxy.example:3128";

const rootOf = (line: string): string => line.split(/[.[ ]/)[0]!;
const commandIn = (line: string): string => line.slice(line.lastIndexOf("(pulumi") + 1, -1);

beforeEach(() => {
  jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
});

it("accepts a stack that says no more than it must", () => {
  expect(complaints(stack)).toEqual([]);
});

describe.each(
  Object.entries({
    clusterCases,
    diskEncryptionSetCases,
    imageCases,
    machineIdentityCases,
    registryCredentialCases,
    registryCases,
    sizeCases,
    rangeCases,
    accessCases,
    poolCases,
    kubeadmCases,
    kubeProxyCases,
    entraCases,
    etcdBackupCases,
    existingIdentityCases,
    resourceGroupCases,
    nodeSubnetCases,
    rebootCases,
    httpProxyCases,
    tagCases,
    workloadIdentityCases,
  }),
)("%s", (_, { refused, accepted }) => {
  const encrypted = ["registryCredentials"];

  it.each(refused)("refuses %s, and only that", (_flaw, values, says) => {
    expect(complaints({ ...stack, ...values }, encrypted)).toEqual([expect.stringContaining(says)]);
  });

  it.each(refused)("names a command that fixes %s", (_flaw, values) => {
    const [line = ""] = complaints({ ...stack, ...values }, encrypted);
    const fixed = after(commandIn(line), { ...stack, ...values });
    const all = [...encrypted, "servicePrincipalClientSecret", "httpProxy"];
    expect(complaints(fixed, all)).toEqual([]);
  });

  it.each(accepted)("accepts %s", (_merit, values) => {
    expect(complaints({ ...stack, ...values }, encrypted)).toEqual([]);
  });
});

it(
  "reports every problem of a stack at once, each with the setting, its value and a " + "command",
  () => {
    const messages = complaints({
      location: "",
      zones: ["1", 2, "1"],
      controlPlaneCount: 2,
      podCidr: "10.244.0.1/16",
      workerPools: [{ name: "cp", count: "many", colour: "red" }],
      sshPublicKey: "",
      apiAccessCidrs: [],
    });
    expect(messages.map(rootOf).sort()).toEqual([
      "apiAccessCidrs",
      "controlPlaneCount",
      "location",
      "podCidr",
      "sshPublicKey",
      "workerPools",
      "workerPools",
      "workerPools",
      "zones",
      "zones",
    ]);
    for (const line of messages)
      expect(line).toMatch(/^[\w.[\]]+ (is|has) .+, expected .+ \(pulumi config /);
  },
);

it("refuses to repair machines by an application, whose machines have no identity", () => {
  const application = {
    servicePrincipalClientId: "5ca1ab1e-0000-4000-8000-000000000001",
    servicePrincipalClientSecret: "hush",
  };

  const messages = complaints({ ...stack, ...application, autoRepair: true }, [
    "servicePrincipalClientSecret",
  ]);

  expect(messages).toEqual([expect.stringContaining("autoRepair is true beside")]);
});

it("finds room for one range while another is no range at all", () => {
  const messages = complaints({
    ...stack,
    networkCidr: "x",
    podCidr: "y",
    serviceCidr: "172.16.0.0/8",
  });
  expect(messages.map(rootOf).sort()).toEqual(["networkCidr", "podCidr", "serviceCidr"]);
});

it.each([
  ["zone", "zones"],
  ["Egress", "egress"],
  ["proxySchedulre", "proxyScheduler"],
  ["apiCidrs", "podCidr"],
  ["mirrors", "mirror"],
])("takes %s for a misspelt %s", (misspelt, meant) => {
  expect(complaints({ ...stack, [misspelt]: "x" })).toEqual([
    expect.stringContaining(`did you mean ${meant}?`),
  ]);
});

it("names the stack, and hides where in the program it was thrown", () => {
  expect(() => settingsWith({ ...stack, cni: "x" })).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/^stack \S+ cannot be deployed:\n {2}- cni is "x"/),
      __pulumiRunError: true,
    }),
  );
});

it.each([
  { what: "a private key", values: { sshPublicKey: "-----BEGIN PRIVATE KEY-----\nhush\n" } },
  { what: "a word for a key", values: { sshPublicKey: "hush" } },
  { what: "a mirror's password", values: { mirror: "https://me:hush@mirror.example" } },
  { what: "an API's proxy with a password", values: { apiProxy: "http://me:hush@p:1" } },
  { what: "the same without http://", values: { apiProxy: "me:hush@proxy.example:3128" } },
  { what: "an application's secret", values: { servicePrincipalClientSecret: "hush" } },
  { what: "a secret in the place of an id", values: { servicePrincipalClientId: "hush" } },
  { what: "a proxy's password", values: { httpProxy: { https: `http://${login}` } } },
  { what: "one with signs of its own", values: { httpProxy: { https: "http://me:#hush@p:1" } } },
  { what: "one in place of the map", values: { httpProxy: `http://${login}` } },
  { what: "one in a list", values: { httpProxy: { https: [`http://${login}`] } } },
  { what: "one in place of a list", values: { httpProxy: { noProxy: `http://${login}` } } },
  { what: "one among names", values: { httpProxy: { noProxy: [`http://${login}`] } } },
  {
    what: "a registry's password",
    values: { registryCredentials: { "ghcr.io": { username: "me", password: "hush" } } },
  },
  {
    what: "one without a user",
    values: { registryCredentials: { "ghcr.io": { password: "hush" } } },
  },
  { what: "one in place of both", values: { registryCredentials: { "ghcr.io": "hush" } } },
  { what: "one as a name", values: { httpProxy: { [`http://${login}`]: "x" } } },
])("never repeats $what, encrypted or not", ({ values }) => {
  for (const encrypted of [[], Object.keys(values)]) {
    const messages = complaints({ ...stack, ...values }, encrypted);
    expect(messages.join()).not.toContain("hush");
    if (encrypted.length === 0) expect(messages).not.toEqual([]);
  }
});

describe("people beside an encrypted proxy with a password", () => {
  const said = (values: Values) => complaints({ ...stack, ...values }, ["httpProxy"]);

  it.each(entraBesideLogin.refused)("are refused for %s, with a fix", (_flaw, values, says) => {
    const [line = "", ...more] = said(values);

    expect([line, more]).toEqual([expect.stringContaining(says), []]);
    expect(line).not.toContain("hush");
    expect(said(after(commandIn(line), values))).toEqual([]);
  });

  it.each(entraBesideLogin.accepted)("are accepted with %s", (_merit, values) => {
    expect(said(values)).toEqual([]);
  });
});

it("refuses the password of a registry in clear, with the command that encrypts another one", () => {
  const registryCredentials = { "ghcr.io": { username: "me", password: "hush" } };

  expect(complaints({ ...stack, registryCredentials })).toEqual([
    expect.stringMatching(
      /^registryCredentials\["ghcr\.io"\]\.password is readable .* \(pulumi config set --secret --path 'registryCredentials\["ghcr\.io"\]\.password'\)$/,
    ),
  ]);
});

describe("an encrypted proxy", () => {
  const encrypted = (https: string) =>
    complaints({ ...stack, httpProxy: { https } }, ["httpProxy"]);

  it.each([`http://${login}`, "http://me%40firm.example:p%3Ass%2Fw%25rd@proxy.example:3128"])(
    "may have a user and a password: %s",
    (https) => {
      expect(encrypted(https)).toEqual([]);
    },
  );

  it.each([
    "http://me@proxy.example:3128",
    "http://me:@proxy.example:3128",
    "http://me:hu'sh@proxy.example:3128",
    'http://me:hu"sh@proxy.example:3128',
    "http://me:hu sh@proxy.example:3128",
    "http://me:hu$sh@proxy.example:3128",
    "http://me:hush%0@proxy.example:3128",
    "http://me:hush\n@proxy.example:3128",
    "http://me:hush@proxy.example",
    "http://me:hush@proxy.example:3128/path",
    "http://me:hu@sh@proxy.example:3128",
    "https://me:hush@proxy.example:3128",
  ])("has them percent-encoded, its port and no TLS: %j is refused", (https) => {
    expect(encrypted(https)).toEqual([
      expect.stringMatching(
        /^httpProxy\.https has an @, .* \(pulumi config set --secret --path httpProxy\.https\)$/,
      ),
    ]);
  });
});
