import * as pulumi from "@pulumi/pulumi";

import { problems } from "../../../components/settings/rules";
import type { Settings } from "../../../components/settings/settings";
import { warnings } from "../../../components/settings/warnings";
import { versions } from "../../../components/versions";
import { idIn, validSettings } from "../../support/sample";
import {
  clusterCases,
  etcdBackupCases,
  rebootCases,
  resourceGroupCases,
  tagCases,
} from "../../support/settings-cases/cluster";
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
  registryCases,
  registryCredentialCases,
} from "../../support/settings-cases/ids-of-others";
import { kubeProxyCases } from "../../support/settings-cases/kube-proxy";
import { kubeadmCases } from "../../support/settings-cases/kubeadm";
import {
  accessCases,
  httpProxyCases,
  proxyCa,
  rangeCases,
} from "../../support/settings-cases/network";
import { poolCases, sizeCases } from "../../support/settings-cases/pools";
import {
  access,
  complaints,
  declared,
  type Refused,
  settingsWith,
  Values,
} from "../../support/stack";

const stack: Values = { location: "westeurope", ...access };

const container = idIn(
  "backups",
  "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
);

const login = "me:hush@proxy.example:3128";
const application = {
  servicePrincipalClientId: "5ca1ab1e-0000-4000-8000-000000000001",
  servicePrincipalClientSecret: "hush",
};
const itsSecret = ["servicePrincipalClientSecret"];

const rootOf = (line: string): string => line.split(/[.[ ]/)[0]!;
const commandIn = (line: string): string => line.slice(line.lastIndexOf("(pulumi") + 1, -1);

const wordsOf = (command: string): string[] =>
  [...command.matchAll(/'((?:[^']|'\\'')*)'|"\$\(cat [^)]*\)"|(\S+)/g)].map(
    ([whole, quoted]) => quoted?.replaceAll("'\\''", "'") ?? whole,
  );

const stepsOf = (path: string): string[] =>
  [...path.matchAll(/\["([^"]+)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    ([, quoted, index, name]) => quoted ?? index ?? name!,
  );

const typed = (text: string): unknown =>
  /^(true|false|-?\d+)$/.test(text) ? JSON.parse(text) : text;

const resolved = (text: string): string => {
  if (text === '"$(cat ca.pem)"') return proxyCa;
  return text.startsWith('"$(cat') ? String(access.sshPublicKey) : text;
};

/** What a user types in where Pulumi asks for a value. */
const typedIn = (path: string): string =>
  path.startsWith("httpProxy.") ? "http://me:typed@proxy.example:3128" : "typed in";

/**
 * A stack's values after the command was typed, which is `pulumi config set` or `pulumi config rm`.
 */
function after(command: string, values: Values): Values {
  const [program, noun, verb, ...words] = wordsOf(command);
  expect([program, noun]).toEqual(["pulumi", "config"]);
  const asText = words.includes("--type");
  const hasPath = words.includes("--path");
  const [path = "", value = typedIn(path)] = words.filter(
    (word, index) => !word.startsWith("--") && words[index - 1] !== "--type",
  );
  const result: Values = JSON.parse(JSON.stringify(values));
  const steps = hasPath ? stepsOf(path) : [path];
  let place: any = result;
  for (const [index, step] of steps.slice(0, -1).entries()) {
    place[step] ??= /^\d+$/.test(steps[index + 1]!) ? [] : {};
    place = place[step];
  }
  const last = steps.at(-1)!;
  if (verb === "rm") {
    if (Array.isArray(place)) place.splice(Number(last), 1);
    else delete place[last];
  } else {
    place[last] = hasPath && !asText ? typed(resolved(value)) : resolved(value);
  }
  return result;
}

/** Some values have thousands of entries. */
const titled = (refused: readonly Refused[]) =>
  refused.map(([values, says]) => [JSON.stringify(values).slice(0, 120), says, values] as const);

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

  it.each(titled(refused))("refuses %s, and only that, with a command: %s", (_, says, values) => {
    const [line = "", ...more] = complaints({ ...stack, ...values }, encrypted);
    expect([line, more]).toEqual([expect.stringContaining(says), []]);
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

it.each<[string, Values, string]>([
  ["repairs machines by it", { autoRepair: true }, "autoRepair is true beside"],
  ["saves snapshots by it", { etcdBackups: { container } }, "etcdBackups.container is set beside"],
  ["has pods log in by it", { machineIdentity: false }, "machineIdentity is false beside"],
])("refuses an application, whose machines have no identity, where one %s", (_, more, says) => {
  const messages = complaints({ ...stack, ...application, ...more }, itsSecret);

  expect(messages).toEqual([expect.stringContaining(says)]);
});

it.each([
  [
    "that is too narrow for pools beside another one that is wrong",
    { networkCidr: "192.168.0.0/20", podCidr: "y", serviceCidr: "10.0.0.0/25" },
  ],
  [
    "of which two are no ranges at all",
    { networkCidr: "x", podCidr: "y", serviceCidr: "172.16.0.0/8" },
  ],
])("tells of each range what is wrong with it: %s", (_, ranges) => {
  const messages = complaints({ ...stack, ...ranges });

  expect(messages.map(rootOf).sort()).toEqual(["networkCidr", "podCidr", "serviceCidr"]);
});

const taints = [
  { key: "a b", value: "c d", effect: "NoSchedule" },
  { key: "gpu", effect: "NoSchedule" },
];

it.each<[string, Values, Values]>([
  [
    "the entries of a list that are well",
    { apiExtraSans: ["EXAMPLE.com", "api.example", "a..b", "api.test", "7"] },
    { apiExtraSans: ["api.example", "api.test"] },
  ],
  [
    "those behind one that has two faults",
    { workerPools: [{ name: "workers", count: 1, taints }] },
    { workerPools: [{ taints: taints.slice(1) }] },
  ],
  [
    "ranges apart from each other",
    { networkCidr: "10.0.0.0/8" },
    { podCidr: "192.168.0.0/16", serviceCidr: "100.64.0.0/16" },
  ],
  [
    "such ranges in place of none",
    { networkCidr: "10.0.0.0/8", podCidr: "x", serviceCidr: "y" },
    { podCidr: "192.168.0.0/16", serviceCidr: "100.64.0.0/16" },
  ],
  ["as many zones", { zones: ["a", "2", "c", "d"] }, { zones: ["1", "2", "3"] }],
  [
    "names that no other pool has",
    { workerPools: ["pool-2", "B", "pool-2"].map((name) => ({ name, count: 1 })) },
    { workerPools: [{ name: "pool-2" }, { name: "pool-5" }, { name: "pool-3" }] },
  ],
])("gives commands that can be run one after another, and leave %s", (_, values, left) => {
  const lines = complaints({ ...stack, ...values }).filter((line) => !line.endsWith("(as above)"));

  const fixed = lines.reduce((now, line) => after(commandIn(line), now), { ...stack, ...values });

  expect(complaints(fixed)).toEqual([]);
  expect(fixed).toMatchObject(left);
});

it("sets no range to what it is already, where it knows none that is free", () => {
  const values = { networkCidr: "10.0.0.0/8", serviceCidr: "100.64.0.0/12" };
  const workerPools = [1, 2].map((n) => ({ name: `pool-${n}`, count: 3000 }));

  expect(complaints({ ...stack, ...values, workerPools })).toEqual([
    expect.stringMatching(/^podCidr is "10\.244\.0\.0\/16".*\(pulumi config set podCidr RANGE\)$/),
  ]);
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

it.each<[string, Values]>([
  ["a private key", { sshPublicKey: "-----BEGIN PRIVATE KEY-----\nhush\n" }],
  ["a word for a key", { sshPublicKey: "hush" }],
  ["a mirror's password", { mirror: "https://me:hush@mirror.example" }],
  ["an API's proxy with a password", { apiProxy: "http://me:hush@p:1" }],
  [
    "a signature behind the address of snapshots",
    { etcdBackups: { endpoint: "https://ours.blob.core.windows.net/?sv=2024&sig=hush" } },
  ],
  ["a login in it", { etcdBackups: { endpoint: "https://me:hush@blobs.example" } }],
  ["Azure's address with a password", { resourceManagerEndpoint: "https://me:hush@azure.example" }],
  ["the same without http://", { apiProxy: "me:hush@proxy.example:3128" }],
  ["an application's secret", { servicePrincipalClientSecret: "hush" }],
  ["a secret in the place of an id", { servicePrincipalClientId: "hush" }],
  ["a proxy's password", { httpProxy: { https: `http://${login}` } }],
  ["one with signs of its own", { httpProxy: { https: "http://me:#hush@p:1" } }],
  ["one in place of the map", { httpProxy: `http://${login}` }],
  ["one in a list", { httpProxy: { https: [`http://${login}`] } }],
  ["one in place of a list", { httpProxy: { noProxy: `http://${login}` } }],
  ["one among names", { httpProxy: { noProxy: [`http://${login}`] } }],
  [
    "a registry's password",
    { registryCredentials: { "ghcr.io": { username: "me", password: "hush" } } },
  ],
  ["one without a user", { registryCredentials: { "ghcr.io": { password: "hush" } } }],
  ["one in place of both", { registryCredentials: { "ghcr.io": "hush" } }],
  ["one as a name", { httpProxy: { [`http://${login}`]: "x" } }],
])("never repeats %s, encrypted or not", (_, values) => {
  for (const encrypted of [[], Object.keys(values)]) {
    const messages = complaints({ ...stack, ...values }, encrypted);
    expect(messages.join()).not.toContain("hush");
    if (encrypted.length === 0) expect(messages).not.toEqual([]);
  }
});

describe("people beside an encrypted proxy with a password", () => {
  const said = (values: Values) => complaints({ ...stack, ...values }, ["httpProxy"]);

  it.each(titled(entraBesideLogin.refused))("are refused for %s: %s", (_, says, values) => {
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

describe("settings read", () => {
  const identityId = idIn(
    "identities",
    "Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes",
  );
  const registries = [idIn("images", "Microsoft.ContainerRegistry/registries/ourimages")];
  const kubeletIdentityId = idIn(
    "identities",
    "Microsoft.ManagedIdentity/userAssignedIdentities/kubelets",
  );
  const image = idIn("images", "Microsoft.Compute/galleries/zoned/images/node/versions/1.0.0");
  const diskEncryptionSetId = idIn("keys", "Microsoft.Compute/diskEncryptionSets/kubernetes");
  const subnet = (name: string) =>
    idIn("network", `Microsoft.Network/virtualNetworks/spoke/subnets/${name}`);
  it("takes an application whose secret is encrypted, and keeps it a secret", async () => {
    const { servicePrincipal } = settingsWith({ ...stack, ...application }, itsSecret);
    expect(servicePrincipal?.clientId).toBe(application.servicePrincipalClientId);
    expect(await pulumi.isSecret(servicePrincipal!.clientSecret)).toBe(true);
  });

  it.each(["", "my-app"])("refuses %j for the id of an application", (servicePrincipalClientId) => {
    const values = { ...stack, ...application, servicePrincipalClientId };
    expect(complaints(values, itsSecret)).toEqual([
      expect.stringMatching(
        /^servicePrincipalClientId is .*, expected the application's client id/,
      ),
    ]);
  });

  it("refuses an identity beside an application, of which only one can log in", () => {
    expect(complaints({ ...stack, ...application, identityId }, itsSecret)).toEqual([
      expect.stringMatching(
        /^identityId is set beside servicePrincipalClientId.*config rm identityId/,
      ),
    ]);
  });

  it("fills in what depends on the stack, the release or other settings", () => {
    expect(settingsWith({ ...stack, zones: ["2", "3"] })).toMatchObject({
      clusterName: `zoned-${pulumi.getStack()}`,
      kubernetesVersion: versions.kubernetes,
      imageVersion: "",
      workerPools: [
        {
          name: "workers",
          count: 2,
          size: "Standard_D2s_v5",
          zones: ["2", "3"],
          labels: {},
          taints: [],
          osDiskSku: "Premium_LRS",
          osDiskSizeGb: 64,
          maxUnavailable: 1,
        },
      ],
      servicePrincipal: undefined,
    });
  });

  it("calls an image's stack as its cluster where its own name would be too long for one, and no cluster so", async () => {
    const nameIn = async (stackName: string, program: string) => {
      const before = { ...process.env };
      process.env = { ...before, ZONED_PROGRAM: program };
      pulumi.runtime.setMockOptions(undefined, "zoned", stackName);
      try {
        return settingsWith(stack).clusterName;
      } finally {
        process.env = before;
        pulumi.runtime.setMockOptions(undefined, "zoned", "stack");
      }
    };
    const longest = "p".repeat(28);

    expect(await nameIn(`${longest}-image`, "image")).toBe(`zoned-${longest}-image`);
    expect(await nameIn(`${longest}p-image`, "image")).toBe(`zoned-${longest}p`);
    await expect(nameIn(`${longest}p-image`, "")).rejects.toThrow(/clusterName is .*-image/);
  });

  it("reads every setting that Pulumi.yaml declares, under its own name", () => {
    const given: Values = {
      ...stack,
      clusterName: "other",
      resourceGroup: "platform",
      zones: ["1", "2"],
      networkCidr: "10.8.0.0/16",
      podCidr: "10.16.0.0/16",
      serviceCidr: "10.32.0.0/16",
      nodeSubnets: [],
      egress: "single",
      apiAccess: "private",
      apiName: "api.zoned.example",
      apiProxy: "http://proxy.example:3128",
      sshAccessCidrs: ["10.0.0.0/8"],
      apiExtraSans: ["api.example"],
      adminUsername: "jane",
      imageVersion: "24.04.202501010",
      image,
      kubernetesVersion: "1.36.0",
      controlPlaneCount: 5,
      controlPlaneSize: "Standard_D8s_v5",
      schedulableControlPlanes: false,
      workerPools: [
        {
          name: "gpu",
          count: 1,
          size: "Standard_NC6s_v3",
          zones: ["2"],
          labels: { a: "b" },
          osDiskSku: "Premium_LRS",
          osDiskSizeGb: 256,
          ephemeralOsDisk: "NvmeDisk",
          maxPods: 30,
          spot: { evictionPolicy: "Delete", maxPrice: 0.05 },
          maxUnavailable: 1,
          taints: [{ key: "a", value: "b", effect: "NoExecute" }],
        },
      ],
      osDiskSku: "StandardSSD_LRS",
      osDiskSizeGb: 128,
      encryptionAtHost: true,
      diskEncryptionSetId,
      drainMinutes: 30,
      encryptionKeyGeneration: 2,
      caGeneration: 3,
      serviceAccountKeyGeneration: 4,
      containerRuntime: "containerd",
      proxyMode: "nftables",
      proxyScheduler: "sh",
      kubeProxy: { ipvs: { syncPeriod: "1h30m" }, oomScoreAdj: -998 },
      cni: "flannel",
      cloudProvider: false,
      diskDriver: false,
      storageClasses: false,
      metricsServer: true,
      identityId,
      machineIdentity: true,
      registries,
      kubeletIdentityId,
      registryCredentials: { "ghcr.io": { username: "robot", password: "1" } },
      autoRepair: true,
      reboots: { days: ["tue", "sat"], from: "02:00", to: "05:00" },
      entra: {
        ...{ tenant: "", issuer: "https://login.example", application: "kubernetes" },
        ...{ admins: ["admins"], usernameClaim: "email", groupsClaim: "roles", ca: "" },
      },
      kubeadm: {
        apiServerExtraArgs: { v: "1" },
        controllerManagerExtraArgs: { v: "2" },
        schedulerExtraArgs: { v: "3" },
        etcdExtraArgs: { "snapshot-count": "4" },
        kubeletExtraArgs: { v: "5" },
        ignorePreflightErrors: ["NumCPU"],
        timeouts: { discovery: "6m" },
        patches: { "etcd.yaml": "{}" },
      },
      etcdBackups: {
        container,
        every: "30m",
        endpoint: "https://ours.privatelink.example",
      },
      mirror: "https://mirror.example",
      httpProxy: { http: "", https: "http://proxy.example:3128", noProxy: [".example"], ca: "" },
      tags: { costCenter: "4711" },
      resourceManagerEndpoint: "https://management.example",
      protect: true,
      reinitialize: "1-20261123T174128Z",
      restoreFrom: "latest",
      workloadIdentities: [
        {
          ...{ namespace: "shop", serviceAccount: "app", identityId: "" },
          roles: [{ role: "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", scope: "/subscriptions/shop" }],
        },
      ],
      skipHealthCheckUntil: "20261123T180000Z",
    };
    expect(settingsWith(given, ["registryCredentials"])).toEqual({
      ...given,
      servicePrincipal: undefined,
    });
    // Not beside a private API.
    const nodeSubnets = [subnet("1"), subnet("2")];
    const publicly = { ...given, apiAccess: "public", apiName: "", nodeSubnets };
    expect(settingsWith(publicly, ["registryCredentials"])).toMatchObject({ nodeSubnets });
    const principal = ["servicePrincipalClientId", "servicePrincipalClientSecret"];
    expect([...Object.keys(given), ...principal].sort()).toEqual(Object.keys(declared).sort());
  });

  it("gives a pool the stack's disk, unless it names its own", () => {
    const workerPools = [
      { name: "a", count: 1 },
      { name: "b", count: 1, osDiskSku: "Premium_LRS", osDiskSizeGb: 256 },
    ];
    const disks = { osDiskSku: "StandardSSD_LRS", osDiskSizeGb: 128 };
    expect(settingsWith({ ...stack, ...disks, workerPools }).workerPools).toMatchObject([
      disks,
      { osDiskSku: "Premium_LRS", osDiskSizeGb: 256 },
    ]);
  });

  it("composes addresses with an endpoint that ends in a slash", () => {
    const { resourceManagerEndpoint, etcdBackups } = settingsWith({
      ...stack,
      resourceManagerEndpoint: "https://management.example/",
      etcdBackups: { container, endpoint: "https://ours.example/" },
    });
    expect(resourceManagerEndpoint).toBe("https://management.example");
    expect(etcdBackups?.endpoint).toBe("https://ours.example");
  });

  it("saves etcd every hour where nothing else is said", () => {
    const { etcdBackups } = settingsWith({ ...stack, etcdBackups: { container } });
    expect(etcdBackups?.every).toBe("1h");
  });
});

describe("settings warnings", () => {
  const settings = { ...validSettings, proxyMode: "nftables" as const };

  const events = (rate: string) => ({
    kubeadm: { ...validSettings.kubeadm, kubeletExtraArgs: { "event-qps": rate } },
  });

  it.each<[string, Partial<Settings>, string]>([
    ["an API open to everyone", { apiAccessCidrs: ["0.0.0.0/0"] }, "apiAccessCidrs opens"],
    [
      "an API open to half of everyone",
      { apiAccessCidrs: ["203.0.113.0/24", "128.0.0.0/1"] },
      "apiAccessCidrs opens",
    ],
    [
      "a public API for private addresses alone",
      { apiAccessCidrs: ["10.1.0.0/16", "100.64.0.0/10"] },
      "private ranges alone (10.1.0.0/16, 100.64.0.0/10)",
    ],
    ["SSH open to everyone", { sshAccessCidrs: ["0.0.0.0/0"] }, "sshAccessCidrs opens"],
    ...["networkCidr", "podCidr", "serviceCidr"].map((key): [string, Partial<Settings>, string] => [
      `a public ${key}`,
      { [key]: "20.0.0.0/16" },
      `${key} 20.0.0.0/16 is not private`,
    ]),
    [
      "a stack without pools, of which the first needs a name too",
      { workerPools: [] },
      "If you need them: pulumi config set --path 'workerPools[0].name' workers; pulumi config set --path 'workerPools[0].count' 2.",
    ],
    [
      "pools without machines",
      { workerPools: validSettings.workerPools.map((pool) => ({ ...pool, count: 0 })) },
      "If you need them: pulumi config set --path 'workerPools[0].count' 2.",
    ],
    [
      "three control planes in two zones",
      { zones: ["1", "2"] },
      "3 control planes over zone 1 and 2",
    ],
    [
      "repairs of machines that no cloud provider names",
      { autoRepair: true, cloudProvider: false },
      "autoRepair is true and cloudProvider false",
    ],
    ...[["127.0.0.0/8"], ["localhost", "fd00::/64"], ["10.0.0.0/8"]].map(
      (nodePortAddresses): [string, Partial<Settings>, string] => [
        `node ports at ${nodePortAddresses.join(" and ")}, where no balancer reaches machines`,
        { kubeProxy: { nodePortAddresses } },
        `kubeProxy.nodePortAddresses (${nodePortAddresses.join(", ")}) has no address of the machines`,
      ],
    ),
    [
      "node ports at machines' own loopback, in subnets of others",
      { kubeProxy: { nodePortAddresses: ["127.0.0.0/8"] }, nodeSubnets: ["subnet"] },
      "has no address of the machines",
    ],
    [
      "IPVS once its end is near",
      { kubernetesVersion: "1.39.0", proxyMode: "ipvs" },
      "gone in 1.43",
    ],
    [
      "events of kubelets without a limit",
      events("0"),
      "pulumi config set --path --type string kubeadm.kubeletExtraArgs.event-qps 50",
    ],
  ])("warns of %s", (_, change, says) => {
    expect(warnings({ ...settings, ...change })).toEqual([expect.stringContaining(says)]);
  });

  it.each<[string, Partial<Settings>]>([
    ["valid settings", {}],
    ["a large owner's network", { apiAccessCidrs: ["17.0.0.0/8"] }],
    ["private ranges beside a public one", { apiAccessCidrs: ["10.1.0.0/16", "203.0.113.0/24"] }],
    ["private ranges of a private API", { apiAccess: "private", apiAccessCidrs: ["10.1.0.0/16"] }],
    [
      "ranges of every private kind",
      { networkCidr: "192.168.0.0/16", podCidr: "100.64.0.0/10", serviceCidr: "198.18.0.0/15" },
    ],
    ["one control plane in one zone", { controlPlaneCount: 1, zones: ["1"] }],
    ["five control planes in three zones", { controlPlaneCount: 5 }],
    ["a limit of kubelets' events", events("5")],
    [
      "events of kubelets that take 0 as their default",
      { ...events("0"), kubernetesVersion: "1.36.3" },
    ],
    ["nftables after IPVS's end", { kubernetesVersion: "1.43.0" }],
    ...[["primary"], ["all"], ["127.0.0.0/8", "172.16.0.0/16"]].map(
      (nodePortAddresses): [string, Partial<Settings>] => [
        `node ports at ${nodePortAddresses.join(" and ")}`,
        { kubeProxy: { nodePortAddresses } },
      ],
    ),
    [
      "node ports in subnets of others",
      { kubeProxy: { nodePortAddresses: ["10.0.0.0/8"] }, nodeSubnets: ["subnet"] },
    ],
    [
      "node ports that no balancer asks for",
      { kubeProxy: { nodePortAddresses: ["127.0.0.0/8"] }, cloudProvider: false },
    ],
  ])("says nothing of %s", (_, change) => {
    expect(warnings({ ...settings, ...change })).toEqual([]);
  });

  it("reaches the engine's log, and stops nothing", () => {
    const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
    const settings = settingsWith({
      location: "westeurope",
      ...access,
      apiAccessCidrs: ["0.0.0.0/0"],
    });
    expect(settings.apiAccessCidrs).toEqual(["0.0.0.0/0"]);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("whole internet"));
  });

  it("refuses IPVS where kube-proxy ends at once", () => {
    const messages = problems({ ...validSettings, kubernetesVersion: "1.40.0" }).filter(
      ({ key }) => key === "proxyMode",
    );
    expect(messages).toEqual([
      expect.objectContaining({ fix: "pulumi config set proxyMode nftables" }),
    ]);
  });
});
