import * as pulumi from "@pulumi/pulumi";

import { type ArmClient, connect } from "../../../components/azure/resource-manager";
import { getShown, knownOutput, shownAs } from "../../../components/azure/shown";
import { getAzureState } from "../../../components/azure/state";
import { Settings } from "../../../components/settings/settings";
import { Recorder, valueOf } from "../../support/record";
import { subscriptionId, validSettings } from "../../support/sample";
import { serve } from "../../support/listen";

const group = `/subscriptions/${subscriptionId}/resourceGroups/zoned-test`;
const vms = `${group}/providers/Microsoft.Compute/virtualMachines`;

interface Answer {
  readonly status?: number;
  readonly body: unknown;
}

/** Resource Manager's answers by path. */
type Answers = Readonly<Record<string, Answer>>;

const error = (status: number, code: string) => ({
  status,
  body: { error: { code, message: "…" } },
});
const list = (...value: unknown[]) => ({ body: { value } });

const networkOf = (path: string) => `${group}/providers/Microsoft.Network/${path}`;
const identities = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities`;
const accounts = `${group}/providers/Microsoft.Storage/storageAccounts`;

const networkTypes = {
  LoadBalancer: "loadBalancers",
  NatGateway: "natGateways",
  NetworkInterface: "networkInterfaces",
  NetworkSecurityGroup: "networkSecurityGroups",
  PublicIPAddress: "publicIPAddresses",
  RouteTable: "routeTables",
  VirtualNetwork: "virtualNetworks",
};

const groupWith = (tags?: Record<string, string>): Answer => ({
  body: { location: "westeurope", tags, properties: { provisioningState: "Succeeded" } },
});

const sound200: Answers = {
  "/subscriptions": list({ subscriptionId, tenantId: "the-tenant" }),
  [group]: groupWith({ "zoned-stack": "organization/zoned/test" }),
  [vms]: list(),
  ...Object.fromEntries(Object.values(networkTypes).map((path) => [networkOf(path), list()])),
  ...{ [identities]: list(), [accounts]: list() },
};

let requests: URL[];

const view = (...codes: string[]): Answer => ({
  body: { statuses: codes.map((code) => ({ code })) },
});
/** Of machines of which a test says nothing else. */
const isRunning = (path: string) =>
  path.endsWith("/instanceView")
    ? view("ProvisioningState/succeeded", "PowerState/running")
    : undefined;

/** Emulates Resource Manager, and asks it. */
const ask = async (answers: Answers = {}, change: Partial<Settings> = {}, isKnown = false) => {
  const all = { ...sound200, ...answers };
  requests = [];
  const endpoint = await serve((request, response) => {
    const url = new URL(request.url!, "http://localhost");
    requests.push(url);
    const { status = 200, body } = all[url.pathname] ??
      isRunning(url.pathname) ?? { status: 500, body: `no answer for ${url.pathname}` };
    response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await Recorder.start({
    calls: {
      "azure-native:authorization:getClientToken": () => ({ token: "token" }),
    },
  });
  const settings = { ...validSettings, ...change, resourceManagerEndpoint: endpoint };
  const connection = await connect(settings);
  requests = [];
  return getAzureState(settings, isKnown, connection);
};

const times = (path: string) => requests.filter(({ pathname }) => pathname === path).length;

const machine = (name: string, tags?: Record<string, string>) => ({
  name,
  tags,
  properties: { hardwareProfile: { vmSize: "Standard_D2s_v5" }, provisioningState: "Succeeded" },
});
const bootstrap = (provisioningState: string, tags?: Record<string, string>) => ({
  body: { tags, properties: { provisioningState } },
});
const stepOf = (name: string) => `${vms}/${name}/extensions/bootstrap`;
const noStep = error(404, "ResourceNotFound");

it("asks Azure Resource Manager by the versions that it knows", async () => {
  const { groupState, groupLocation } = await ask();

  const query = (path: string) => requests.find((url) => url.pathname === path)?.searchParams;
  expect(query(group)?.get("api-version")).toBe("2024-03-01");
  expect(Object.fromEntries(query(vms)!)).toEqual({ "api-version": "2024-11-01" });
  expect(groupState).toBe("Succeeded");
  expect(groupLocation).toBe("westeurope");
});

it("reads with which disk controller a machine was made, where Azure says", async () => {
  const plain = machine("cp-1");
  const storageProfile = { diskControllerType: "NVMe" };
  const nvme = { ...machine("cp-2"), properties: { ...plain.properties, storageProfile } };

  const { machines } = await ask({
    [vms]: list(plain, nvme),
    ...{ [stepOf("cp-1")]: noStep, [stepOf("cp-2")]: noStep },
  });

  expect([...machines.values()].map(({ diskController }) => diskController)).toEqual([
    undefined,
    "NVMe",
  ]);
});

describe("in a resource group of its own", () => {
  const oneMachine = { [vms]: list(machine("cp-1")), [stepOf("cp-1")]: noStep };

  it.each([
    ["that has the stack's tag, as an interrupted first update leaves it", false, undefined],
    ["that an older release made, and the outputs know", true, groupWith()],
  ])("has every machine for the cluster's %s", async (_, isKnown, found) => {
    const answers = { ...oneMachine, ...(found && { [group]: found }) };
    const azure = await ask(answers, {}, isKnown);

    expect(azure).toMatchObject({ isOwnGroup: true, isBegun: true });
    expect([...azure.machines.keys()]).toEqual(["cp-1"]);
  });

  it("is not begun before it has a machine", async () => {
    expect(await ask()).toMatchObject({ isOwnGroup: true, isBegun: false });
  });

  it.each([undefined, { "zoned-stack": "organization/zoned/other" }])(
    "takes no group for its own that has the tags %j, nor machines in it",
    async (tags) => {
      const azure = await ask({ ...oneMachine, [group]: groupWith(tags) });

      expect(azure).toMatchObject({ isOwnGroup: false, isBegun: false, machines: new Map() });
    },
  );
});

describe("in a resource group of others", () => {
  const mine = { "zoned-stack": "organization/zoned/test" };
  const platform = group.replace("zoned-test", "platform");
  const inPlatform = (answers: Answers): Answers =>
    Object.fromEntries(
      Object.entries({ ...sound200, ...answers }).map(([path, answer]) => [
        path.replace(group, platform),
        answer,
      ]),
    );
  const others = { [vms]: list(machine("jumpbox")), [stepOf("jumpbox")]: noStep };

  it("takes none of their machines for the cluster's, nor the cluster for begun", async () => {
    const azure = await ask(inPlatform(others), { resourceGroup: "platform" });

    expect(azure).toMatchObject({ isBegun: false, groupState: "Succeeded" });
    expect([...azure.machines.keys()]).toEqual([]);
    expect(azure.shown.has(shownAs("azure-native:compute:VirtualMachine", "jumpbox"))).toBe(true);
  });

  it("knows its own by the stack's tag", async () => {
    const answers = {
      [vms]: list(machine("jumpbox"), machine("cp-1", mine)),
      ...{ [stepOf("jumpbox")]: noStep, [stepOf("cp-1")]: noStep },
    };
    const azure = await ask(inPlatform(answers), { resourceGroup: "platform" });

    expect(azure.isBegun).toBe(true);
    expect([...azure.machines.keys()]).toEqual(["cp-1"]);
  });
});

it("asks Compute itself for machines and steps, and reads what the last update wrote on them", async () => {
  const tags = {
    "zoned-generation": "abc",
    "zoned-initialization": "1-then",
    "zoned-created-at": "then",
    "zoned-drained": "before",
  };
  const { machines } = await ask({
    [vms]: list(machine("cp-1", tags), machine("cp-2")),
    [stepOf("cp-1")]: bootstrap("Succeeded", {
      "zoned-bootstrap-requested-at": "later",
      "zoned-initial-control-plane": "the-initial-vm",
      "zoned-kubernetes": "1.36.3",
      "zoned-configuration": "def",
      "zoned-restored-from": "latest",
      "zoned-encryption-keys": "2 1",
      "zoned-cas": "1 2",
      "zoned-service-account-keys": "2 3",
      "zoned-fixed": "jkl",
      "zoned-drained": "long before",
      "zoned-script": "ghi",
    }),
    [stepOf("cp-2")]: noStep,
    [`${vms}/cp-2/instanceView`]: view("PowerState/deallocated", "ProvisioningState/succeeded"),
  });

  expect(Object.fromEntries(machines)).toEqual({
    "cp-1": {
      size: "Standard_D2s_v5",
      power: "running",
      generation: "abc",
      initialization: "1-then",
      createdAt: "then",
      drained: "before",
      bootstrap: {
        state: "Succeeded",
        requestedAt: "later",
        initialControlPlane: "the-initial-vm",
        kubernetesVersion: "1.36.3",
        configuration: "def",
        restoredFrom: "latest",
        encryptionKeys: "2 1",
        cas: "1 2",
        serviceAccountKeys: "2 3",
        fixed: "jkl",
        drained: "long before",
        script: "ghi",
      },
    },
    "cp-2": { size: "Standard_D2s_v5", power: "deallocated" },
  });
});

it("takes a VM that could not be made for none that is off: its next PUT starts it", async () => {
  const vm = machine("cp-1");
  const { machines } = await ask({
    [vms]: list({ ...vm, properties: { ...vm.properties, provisioningState: "Failed" } }),
    [stepOf("cp-1")]: noStep,
    [`${vms}/cp-1/instanceView`]: view("ProvisioningState/failed/x", "PowerState/deallocated"),
  });

  expect(machines.get("cp-1")?.power).toBeUndefined();
});

it("gives all that Azure shows of what others write on too, subnets of the cluster's own network by themselves", async () => {
  const subnet = { name: "nodes-1", properties: { serviceEndpoints: [] } };
  const vnet = {
    ...{ name: "Zoned-Test-VNet", tags: { owner: "firm" } },
    properties: { subnets: [subnet] },
  };
  const gateway = { id: "/natGateways/other-egress" };
  const other = {
    name: "other-vnet",
    properties: { subnets: [{ name: "nodes-1", properties: { natGateway: gateway } }] },
  };
  const vm = machine("cp-1");
  const step = bootstrap("Succeeded");
  const { shown } = await ask({
    [networkOf("virtualNetworks")]: list(vnet, other),
    [vms]: list(vm),
    [stepOf("cp-1")]: step,
  });

  const of = (type: string, name: string) => shown.get(shownAs(`azure-native:${type}`, name));
  expect(of("network:VirtualNetwork", "zoned-test-vnet")).toEqual(vnet);
  expect(of("network:Subnet", "nodes-1")).toEqual(subnet);
  expect(of("compute:VirtualMachine", "cp-1")).toEqual(vm);
  expect(of("compute:VirtualMachineExtension", "cp-1")).toEqual(step.body);
  expect(of("resources:ResourceGroup", "zoned-test")).toMatchObject({ location: "westeurope" });
});

it.each([
  ...Object.entries(networkTypes).map(([type, path]) => [`network:${type}`, networkOf(path)]),
  ["managedidentity:UserAssignedIdentity", identities],
])("gives what Azure shows of a %s", async (type, path) => {
  const it = { name: "it", tags: { owner: "firm" } };

  const { shown } = await ask({ [path!]: list(it) });

  expect(shown.get(shownAs(`azure-native:${type}`, "it"))).toEqual(it);
});

it("gives what Azure shows of a private API's zone and its link, and asks for none where the program makes none", async () => {
  const zones = networkOf("privateDnsZones");
  const it = { name: "it", tags: { owner: "firm" } };
  const answers = { [zones]: list(it), [`${zones}/it/virtualNetworkLinks`]: list(it) };

  const { shown } = await ask(answers, { apiAccess: "private" });
  for (const type of ["PrivateZone", "VirtualNetworkLink"])
    expect(shown.get(shownAs(`azure-native:privatedns:${type}`, "it"))).toEqual(it);
  for (const none of [{}, { apiAccess: "private", apiName: "api.example" } as const]) {
    await ask(answers, none);
    expect(times(zones)).toBe(0);
  }
});

it("knows the ranges that others have put on the cluster's gateways, whose groups they may be in, and of a public API alone", async () => {
  const theirs = (path: string) =>
    `/subscriptions/${subscriptionId}/resourceGroups/theirs/providers/Microsoft.Network/${path}`;
  const name = "zoned-test-egress-1";
  const gateway = {
    name,
    properties: {
      publicIpAddresses: [
        { id: networkOf(`publicipaddresses/${name}`) },
        { id: theirs("publicIPAddresses/one") },
        { id: theirs("publicIPAddresses/hidden") },
      ],
      publicIpPrefixes: [{ id: theirs("publicIPPrefixes/some") }],
    },
  };
  const other = { ...gateway, name: "of-others" };
  const answers = {
    [networkOf("natGateways")]: list(gateway, other),
    [theirs("publicIPAddresses/one")]: { body: { properties: { ipAddress: "20.9.0.1" } } },
    [theirs("publicIPAddresses/hidden")]: error(403, "AuthorizationFailed"),
    [theirs("publicIPPrefixes/some")]: { body: { properties: { ipPrefix: "20.9.1.0/28" } } },
  };
  const rangesOf = async (apiAccess: Settings["apiAccess"]) => {
    const { shown } = await ask(answers, { apiAccess, apiName: "api.zoned.example" });
    return [name, other.name].map(
      (one) => shown.get(shownAs("azure-native:network:NatGateway", one))!.addedRanges,
    );
  };

  expect(await rangesOf("public")).toEqual([["20.9.0.1/32", "20.9.1.0/28"], undefined]);
  expect(await rangesOf("private")).toEqual([undefined, undefined]);
});

const withIssuer = { machineIdentity: false };

it("gives what Azure shows of a token issuer's account, and asks for none where there is no issuer", async () => {
  const it = { name: "it", tags: { owner: "firm" } };
  const answers = { [accounts]: list(it) };
  const ofIssuer = shownAs("azure-native:storage:StorageAccount", "it");

  expect((await ask(answers, withIssuer)).shown.get(ofIssuer)).toEqual(it);
  expect((await ask(answers)).shown.has(ofIssuer)).toBe(false);
  expect(times(accounts)).toBe(0);
});

it("gives no account where nobody has used storage yet, and hides no other refusal", async () => {
  const missing = error(409, "MissingSubscriptionRegistration");
  expect((await ask({ [accounts]: missing }, withIssuer)).groupState).toBe("Succeeded");

  const refuses = (path: string) =>
    path.endsWith("/storageAccounts")
      ? Promise.reject(new Error("GET it: 403 AuthorizationFailed: no"))
      : Promise.resolve([]);
  const shown = getShown({ listOnce: refuses } as unknown as ArmClient, group, {
    ...validSettings,
    ...withIssuer,
  });
  await expect(shown).rejects.toThrow("403 AuthorizationFailed");
});

const servicePrincipal = { clientId: "it", clientSecret: undefined as never };
const podsIdentity = { namespace: "shop", serviceAccount: "app", identityId: "", roles: [] };

it.each([
  ["none of its own where the settings name one", {}, 0],
  ["none where a service principal does what one would", { identityId: "", servicePrincipal }, 0],
  ["that of kubelets, beside the cluster's of others", { registries: ["/a/registry"] }, 1],
  [
    "none where kubelets have one of others too",
    { registries: ["/a/registry"], kubeletIdentityId: "/b" },
    0,
  ],
  ["those of pods", { workloadIdentities: [podsIdentity] }, 1],
  [
    "none of pods that log in as others",
    { workloadIdentities: [{ ...podsIdentity, identityId: "/c" }] },
    0,
  ],
])("asks for identities that it makes: %s", async (_, settings, asked) => {
  await ask({}, { identityId: "/an/identity", ...settings });

  expect(times(identities)).toBe(asked);
});

it("knows nothing of a group that does not exist, and asks for that once", async () => {
  const missing = error(404, "ResourceGroupNotFound");
  const azure = await ask({ [group]: missing, [vms]: missing }, {}, true);

  expect(azure).toMatchObject({ groupState: undefined, isBegun: false, machines: new Map() });
  expect(requests).toHaveLength(2);
});

it("has nothing left to ask when it says why it fails", async () => {
  const refused = ask({ [vms]: error(404, "SubscriptionNotFound") });

  await expect(refused).rejects.toThrow("404");
  for (const path of Object.values(networkTypes)) expect(times(networkOf(path))).toBe(1);
});

it("fails where the login may not read the group", async () => {
  await expect(ask({ [group]: error(403, "AuthorizationFailed") })).rejects.toThrow("403");
});

describe("an output that Azure fills in", () => {
  class Made extends pulumi.CustomResource {
    declare readonly vmId: pulumi.Output<string>;
    constructor() {
      super("azure-native:compute:VirtualMachine", "vm", { vmId: undefined });
    }
  }

  const filledIn = { "azure-native:compute:VirtualMachine": { vmId: "new" } };

  /** Whether it is known, and the value. */
  const knownAs = async (preview: boolean, now: string | undefined) => {
    await Recorder.start({ preview, filledIn: preview ? {} : filledIn });
    const made = new Made();
    const output = knownOutput(made.vmId, made, now) as pulumi.Output<string> & {
      isKnown: Promise<boolean>;
      resources: () => Set<pulumi.Resource>;
    };
    expect(output.resources()).toContain(made);
    return (await output.isKnown) ? valueOf(output) : undefined;
  };

  it.each([
    ["a preview knows what Azure has", true, "old", "old"],
    ["a preview knows nothing of what is yet to be made", true, undefined, undefined],
    ["an update takes what Azure has filled in", false, "old", "new"],
  ])("%s", async (_claim, preview, now, expected) => {
    expect(await knownAs(preview, now)).toBe(expected);
  });
});
