import { readFileSync } from "node:fs";
import { join } from "node:path";

import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { type Clients, everyId, soon } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";
import { checkout } from "../../../tools/shared/checkout";
import { typedIn } from "../../support/page";

const inNetwork = (path: string) =>
  `${subscriptionPath}/resourceGroups/network/providers/Microsoft.Network/${path}`;
const subnet = (name: string) => inNetwork(`virtualNetworks/spoke/subnets/${name}`);
const contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const reader = "acdd72a7-3385-48ef-bd42-f606fba81ae7";
const identityOperator = "f1a07417-d97a-45cb-824c-7a7467783830";
const wholePage = readFileSync(join(checkout, "docs/landing-zone.md"), "utf8");
const networks = "Microsoft.Network/virtualNetworks";
const identityId = `${subscriptionPath}/resourceGroups/network/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;

/** What the page shows of a preview of the landing zone below. */
function shownByPage(): string {
  const [, shown = ""] = /```text\n(.*?)```/s.exec(wholePage) ?? [];
  return shown;
}

describe("a landing zone in which everything is wrong", () => {
  let cloud: LocalCloud;
  let preview: Awaited<ReturnType<LocalCloud["stack"]["preview"]>>;

  async function make({ resources, network, identities }: Clients): Promise<void> {
    const location = "northeurope";
    await resources.resourceGroups.createOrUpdate("network", { location });
    await resources.resourceGroups.createOrUpdate("platform", { location });
    await identities.userAssignedIdentities.createOrUpdate("network", "kubernetes", { location });
    const rule = (priority: number, protocol: string, port: string, source = "*") => ({
      ...{ name: `no-${port}`, priority, direction: "Inbound", access: "Deny", protocol },
      ...{ sourceAddressPrefix: source, sourcePortRange: "*" },
      ...{ destinationAddressPrefix: "*", destinationPortRange: port },
    });
    const group = (name: string, securityRules: ReturnType<typeof rule>[]) =>
      network.networkSecurityGroups.beginCreateOrUpdateAndWait(
        "network",
        name,
        { location, securityRules },
        soon,
      );
    await group("guard", [
      rule(200, "Tcp", "2380"),
      rule(210, "Udp", "8472"),
      rule(220, "Tcp", "6443", "AzureLoadBalancer"),
    ]);
    await group("other", []);
    await network.routeTables.beginCreateOrUpdateAndWait(
      "network",
      "to-hub",
      {
        location,
        routes: [
          {
            ...{ name: "default", addressPrefix: "0.0.0.0/0" },
            ...{ nextHopType: "VirtualAppliance", nextHopIpAddress: "10.0.1.4" },
          },
        ],
      },
      soon,
    );
    await network.virtualNetworks.beginCreateOrUpdateAndWait(
      "network",
      "spoke",
      { location, addressSpace: { addressPrefixes: ["10.1.0.0/16"] } },
      soon,
    );
    const hub = await network.virtualNetworks.beginCreateOrUpdateAndWait(
      "network",
      "hub",
      { location, addressSpace: { addressPrefixes: ["10.0.0.0/16", "10.244.0.0/20"] } },
      soon,
    );
    await network.virtualNetworkPeerings.beginCreateOrUpdateAndWait(
      "network",
      "spoke",
      "to-hub",
      { remoteVirtualNetwork: { id: hub.id } },
      soon,
    );
    const id = (path: string) => ({ id: inNetwork(path) });
    const subnets = {
      a: {
        ...{ addressPrefix: "10.1.1.0/29", routeTable: id("routeTables/to-hub") },
        networkSecurityGroup: id("networkSecurityGroups/guard"),
        delegations: [{ name: "web", serviceName: "Microsoft.Web/serverFarms" }],
      },
      b: {
        addressPrefix: "10.1.2.0/24",
        networkSecurityGroup: id("networkSecurityGroups/other"),
      },
      c: { addressPrefix: "10.1.3.0/24" },
    };
    for (const [name, body] of Object.entries(subnets)) {
      await network.subnets.beginCreateOrUpdateAndWait("network", "spoke", name, body, soon);
    }
    await network.networkSecurityGroups.beginCreateOrUpdateAndWait(
      "platform",
      "unused",
      { location },
      soon,
    );
    await network.loadBalancers.beginCreateOrUpdateAndWait(
      "platform",
      "zoned-local-api",
      { location, sku: { name: "Standard" } },
      soon,
    );
  }

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", {
      ...fewAddOns,
      ...{ cloudProvider: true, resourceGroup: "platform", identityId },
      nodeSubnets: ["a", "b", "c"].map(subnet),
      controlPlaneSize: "Standard_X9",
    });
    await make(cloud.sdks());
    const lock = "providers/Microsoft.Authorization/locks/keep";
    await cloud.lock(`${subscriptionPath}/resourceGroups/platform/${lock}`, "ReadOnly");
    preview = await cloud.stack.preview();
  });
  afterAll(() => cloud?.stop());

  it("is refused once, with all that is to be asked for, and ends with the text for the network's owners", async () => {
    const text = refused(preview);

    const said = [
      /userAssignedIdentities\/kubernetes lacks rights/,
      /resourceGroup is platform, which is in northeurope/,
      /platform has \S+\/zoned-local-api,/,
      /the lock keep on \S+\/platform is ReadOnly/,
      /the network spoke is in northeurope/,
      /podCidr is 10\.244\.0\.0\/16, expected .* apart from 10\.244\.0\.0\/20/,
      /the subnet a is delegated to Microsoft\.Web\/serverFarms/,
      /the subnet a has 3 free addresses/,
      /the route default of the subnet a leads 0\.0\.0\.0\/0 to VirtualAppliance/,
      /no NAT gateway is on a, b and c/,
      /no network security group is on c/,
      /2 network security groups \(guard and other\)/,
      /no-2380 .* of guard stops inbound TCP 2380/,
      /no-8472 .* of guard stops inbound UDP 8472/,
      /no-6443 .* of guard stops inbound TCP 6443 from AzureLoadBalancer/,
      /DenyAllInBound .* of guard stops inbound TCP 6443 from 203\.0\.113\.0\/24/,
      /DenyAllInBound .* of other stops inbound TCP 6443 from 203\.0\.113\.0\/24/,
      /size Standard_X9 is not offered/,
      /for the owners of the network, as one text:\s+The machines of .* zoned-local .* a, b and c of the network spoke\. Please give us\s+1\. /,
    ];
    const [whole = ""] = text.split("Diagnostics:").slice(1);
    const [diagnostics = ""] = whole.split("Resources:");
    const places = said.map((one) => diagnostics.search(one));
    expect(said.filter((_, at) => places[at]! < 0)).toEqual([]);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
  });

  it("is refused in the words that docs/landing-zone.md shows", () => {
    const refusal = preview.diagnostics.find((text) => text.includes("cannot be deployed"));

    const said = refusal
      ?.replaceAll(subscriptionPath, "/subscriptions/SUBSCRIPTION")
      .replaceAll(/ +$/gm, "");
    expect(`${said}\n`).toBe(shownByPage());
  });
});

/** What the page has somebody type who was given a subnet. */
function typedBy(page: string): string[] {
  const [section = ""] = page.split("## I was given a subnet").slice(1);
  const [steps = ""] = section.split("\n## ");
  return typedIn(steps);
}

describe("what docs/landing-zone.md has somebody do who was given a subnet", () => {
  const location = "westeurope";
  const typed = typedBy(wholePage);
  let cloud: LocalCloud;
  let clients: Clients;
  let before: readonly string[];

  /** A firewall in a hub that is peered, and a subnet of 27 addresses of which somebody has the last one. */
  async function make({ resources, network, identities, authorization }: Clients): Promise<void> {
    for (const group of ["network", "platform-kubernetes"]) {
      await resources.resourceGroups.createOrUpdate(group, { location });
    }
    const { principalId } = await identities.userAssignedIdentities.createOrUpdate(
      ...(["network", "kubernetes", { location }] as const),
    );
    await authorization.roleAssignments.create(
      subscriptionPath,
      "5c1b0c7e-3f0a-4a53-9d0e-2f6c3b1a7e88",
      {
        ...{ principalId: principalId!, principalType: "ServicePrincipal" },
        roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${contributor}`,
      },
    );
    // Azure's own rules admit a peered network.
    const fromHub = {
      ...{ name: "no-hub", priority: 4000, direction: "Inbound", access: "Deny", protocol: "*" },
      ...{ sourceAddressPrefix: "10.0.0.0/16", sourcePortRange: "*" },
      ...{ destinationAddressPrefix: "*", destinationPortRange: "*" },
    };
    const guard = await network.networkSecurityGroups.beginCreateOrUpdateAndWait(
      "network",
      "guard",
      { location, securityRules: [fromHub] },
      soon,
    );
    const toHub = {
      ...{ name: "default", addressPrefix: "0.0.0.0/0" },
      ...{ nextHopType: "VirtualAppliance", nextHopIpAddress: "10.0.1.4" },
    };
    const table = await network.routeTables.beginCreateOrUpdateAndWait(
      "network",
      "to-hub",
      { location, routes: [toHub] },
      soon,
    );
    const subnets = {
      hub: { addressPrefix: "10.0.1.0/24" },
      spoke: {
        addressPrefix: "10.1.1.0/27",
        ...{ networkSecurityGroup: { id: guard.id }, routeTable: { id: table.id } },
      },
    };
    for (const [name, body] of Object.entries(subnets)) {
      const addressSpace = { addressPrefixes: [name === "hub" ? "10.0.0.0/16" : "10.1.0.0/16"] };
      await network.virtualNetworks.beginCreateOrUpdateAndWait(
        ...(["network", name, { location, addressSpace }, soon] as const),
      );
      await network.subnets.beginCreateOrUpdateAndWait("network", name, "nodes", body, soon);
    }
    for (const [from, to] of [["spoke", "hub"] as const, ["hub", "spoke"] as const]) {
      await network.virtualNetworkPeerings.beginCreateOrUpdateAndWait(
        "network",
        from,
        `to-${to}`,
        {
          remoteVirtualNetwork: { id: inNetwork(`virtualNetworks/${to}`) },
          allowForwardedTraffic: true,
        },
        soon,
      );
    }
    const one = { name: "one", subnet: { id: subnet("nodes") } };
    const last = { privateIPAllocationMethod: "Static", privateIPAddress: "10.1.1.30" };
    await network.networkInterfaces.beginCreateOrUpdateAndWait(
      "network",
      "somebody",
      { location, ipConfigurations: [{ ...one, ...last }] },
      soon,
    );
  }

  /** What docs/landing-zone.md says that such a login needs: no right to assign a role anywhere. */
  async function limitLogin({ authorization }: Clients): Promise<void> {
    const joins = "2b8f3a52-6f0e-4c1d-8a57-1f0c9d2e4b67";
    await authorization.roleDefinitions.createOrUpdate(subscriptionPath, joins, {
      roleName: "joins networks",
      permissions: [
        { actions: ["join", "subnets/join"].map((one) => `${networks}/${one}/action`) },
      ],
      assignableScopes: [subscriptionPath],
    });
    await cloud.limitLogin({
      [subscriptionPath]: reader,
      [`${subscriptionPath}/resourceGroups/platform-kubernetes`]: contributor,
      [identityId]: identityOperator,
      [inNetwork("virtualNetworks/spoke")]: joins,
    });
  }

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", { ...fewAddOns, apiAccessCidrs: undefined });
    clients = cloud.sdks();
    await make(clients);
    await limitLogin(clients);
    before = await everyId(clients);
  });
  afterAll(() => cloud?.stop());

  /** Types what sets a setting, but for the key, which the stack has. */
  async function configure(): Promise<void> {
    const commands = typed.filter(
      (one) => one.startsWith("pulumi config set ") && !one.includes(" sshPublicKey "),
    );
    for (const command of commands) {
      const words = command.replace("/subscriptions/SUBSCRIPTION", subscriptionPath);
      await cloud.runSuggested(words.replaceAll("'", ""), /config set .+/);
    }
  }

  it("is what is done here", () => {
    expect(typed.filter((one) => !one.startsWith("pulumi config set "))).toEqual([
      "az login && az account set --subscription SUBSCRIPTION",
      "pulumi stack init dev",
      "pulumi preview",
      "pulumi up",
      "(umask 077 && pulumi stack output kubeconfig --show-secrets > kubeconfig)",
      "kubectl --kubeconfig kubeconfig get nodes",
    ]);
  });

  it("is refused without the identity, before anything is made, to who may not assign roles", async () => {
    await configure();
    await cloud.stack.command(
      "config",
      "rm",
      "identityId",
      "--config-file",
      cloud.stack.place.config,
    );

    expect(refused(await cloud.stack.up("--skip-preview"))).toMatch(
      /the login may not create role definitions, nor create role assignments in subscription \S+: .*--role 'User Access Administrator' .*; or give the cluster an identity .* already: pulumi config set identityId ID/,
    );
    expect(await everyId(clients)).toEqual(before);
  });

  it("is refused while a rule is missing, with the text for the network's owners", async () => {
    await configure();

    expect(refused(await cloud.stack.preview())).toMatch(
      /for the owners of the network, as one text:\s+The machines .* zoned-dev .* nodes of the network spoke\. Please give us\s+1\. a rule in guard before no-hub \(priority 4000\) that allows inbound TCP 6443 from 10\.0\.0\.0\/16 to 10\.1\.1\.0\/27/,
    );
  });

  it("is previewed with the record of the API's name, and what the firewall has to let out", async () => {
    await clients.network.securityRules.beginCreateOrUpdateAndWait(
      "network",
      "guard",
      "kubernetes-api",
      {
        ...{ priority: 200, direction: "Inbound", access: "Allow", protocol: "Tcp" },
        ...{ sourceAddressPrefix: "10.0.0.0/16", sourcePortRange: "*" },
        ...{ destinationAddressPrefix: "10.1.1.0/27", destinationPortRange: "6443" },
      },
      soon,
    );

    const said = succeeded(await cloud.stack.preview()).diagnostics.join("\n");

    expect(said).toContain("api.zoned.example. A 10.1.1.29");
    expect(said).toMatch(
      /machines in nodes leave by the route default to VirtualAppliance 10\.0\.1\.4: .* let them out to .*registry\.k8s\.io/,
    );
    expect(said).not.toContain("lacks rights");
  });

  it("makes a cluster with a private API at the end of the subnet, and a zone linked to it", async () => {
    await cloud.stack.command("config", "rm", "apiName", "--config-file", cloud.stack.place.config);

    asPlanned(await cloud.stack.up());

    expect(await cloud.kubectl("get", "nodes")).toContain("zoned-dev-cp-1");
    const { machines } = (await cloud.stack.outputs()) as { machines: { address: string }[] };
    expect(machines.map(({ address }) => address)).toEqual(
      machines.map((_, at) => `10.1.1.${28 - at}`),
    );
    expect(await frontend()).toMatchObject({
      ...{ privateIPAddress: "10.1.1.29", zones: ["1", "2", "3"] },
      subnet: { id: subnet("nodes") },
    });
    const added = (await everyId(clients)).filter((id) => !before.includes(id));
    expect(added.filter((id) => !id.includes("/platform-kubernetes/"))).toEqual([]);
    expect(
      added.filter((id) => /publicIPAddresses|natGateways|virtualNetworks\//i.test(id)),
    ).toEqual([]);
    expect(added.join()).toMatch(/privateDnsZones/i);
  });

  const frontend = async () =>
    (await clients.network.loadBalancers.get("platform-kubernetes", "zoned-dev-api"))
      .frontendIPConfigurations![0];

  it("keeps that identity, since who may not assign roles can give it no other", async () => {
    const inFile = ["--config-file", cloud.stack.place.config];
    await cloud.stack.command("config", "rm", "identityId", ...inFile);

    expect(refused(await cloud.stack.preview())).toMatch(
      /the login may not create role definitions, nor create role assignments in subscription /,
    );
    await cloud.stack.command("config", "set", "identityId", identityId, ...inFile);
  });

  it("stays where it is, when a better address becomes free, by a refresh and an update", async () => {
    await clients.network.networkInterfaces.beginDeleteAndWait("network", "somebody", soon);
    succeeded(await cloud.stack.refresh());

    unchanged(await cloud.stack.up("--skip-preview"));

    expect(await frontend()).toMatchObject({ privateIPAddress: "10.1.1.29" });
  });

  it("leaves all that was given when it is destroyed", async () => {
    succeeded(await cloud.stack.destroy());

    expect(await everyId(clients)).toEqual(before.filter((id) => !id.endsWith("/somebody")));
  });
});
