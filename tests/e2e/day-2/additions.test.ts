import { parseId } from "../../../tools/local-azure/arm/resources/resource";
import { type Clients, soon } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  asPlanned,
  hasManifests,
  LocalCloud,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

const location = "southeastasia";
const group = "zoned-local";
/** Where others have what they refer to. */
const theirs = "theirs";
const standard = { name: "Standard" };
const egress = `${group}-egress`;
const admitting = "nodes-reach-the-api-through-their-egress";

interface Resource {
  readonly urn: string;
  readonly type: string;
  readonly id: string;
}

/** What somebody else writes on a resource of this name, by Microsoft's SDK. */
type Addition = (clients: Clients, name: string, tag: Record<string, string>) => Promise<unknown>;

/**
 * What others write on each type that the program makes. A type that is missing here fails; one that
 * is the program's alone has a sentence instead.
 */
const additions: Readonly<Record<string, Addition | string>> = {
  "azure-native:resources:ResourceGroup": async ({ resources }, name, tag) => {
    const { tags } = await resources.resourceGroups.get(name);
    return resources.resourceGroups.update(name, { tags: { ...tags, ...tag } });
  },

  "azure-native:managedidentity:UserAssignedIdentity": ({ identities }, name, tag) =>
    identities.userAssignedIdentities.update(group, name, { tags: tag }),

  "azure-native:network:VirtualNetwork": async ({ network }, name, tag) => {
    const found = await network.virtualNetworks.get(group, name);
    await network.virtualNetworks.beginCreateOrUpdateAndWait(
      group,
      name,
      {
        ...found,
        tags: { ...found.tags, ...tag },
        addressSpace: {
          addressPrefixes: [...new Set([...found.addressSpace!.addressPrefixes!, "10.99.0.0/16"])],
        },
        dhcpOptions: { dnsServers: ["10.99.0.4"] },
        enableDdosProtection: true,
        flowTimeoutInMinutes: 10,
      },
      soon,
    );
    await network.subnets.beginCreateOrUpdateAndWait(
      group,
      name,
      "theirs",
      { addressPrefix: "10.99.0.0/24" },
      soon,
    );
  },

  "azure-native:network:Subnet": async ({ network }, name) => {
    const found = await network.subnets.get(group, `${group}-vnet`, name);
    const isForMachines = name.startsWith("nodes-");
    await network.subnets.beginCreateOrUpdateAndWait(
      group,
      `${group}-vnet`,
      name,
      {
        ...found,
        serviceEndpoints: [{ service: "Microsoft.Storage", locations: [location] }],
        privateEndpointNetworkPolicies: "Enabled",
        // Azure delegates no subnet that has machines.
        ...(!isForMachines && {
          delegations: [{ name: "dns", serviceName: "Microsoft.Network/dnsResolvers" }],
          routeTable: { id: (await network.routeTables.get(theirs, "routes")).id },
        }),
      },
      soon,
    );
  },

  "azure-native:network:NetworkSecurityGroup": async ({ network }, name, tag) => {
    await network.networkSecurityGroups.updateTags(group, name, { tags: tag });
    await network.securityRules.beginCreateOrUpdateAndWait(
      group,
      name,
      "k8s-azure-lb_allow_IPv4",
      {
        priority: 500,
        direction: "Inbound",
        access: "Allow",
        protocol: "Tcp",
        sourceAddressPrefix: "Internet",
        sourcePortRange: "*",
        destinationAddressPrefixes: ["203.0.113.200"],
        destinationPortRange: "80",
      },
      soon,
    );
  },
  "azure-native:network:SecurityRule": "a rule is one's own; the group above has somebody else's",

  "azure-native:network:RouteTable": async ({ network }, name, tag) => {
    await network.routeTables.updateTags(group, name, { tags: tag });
    await network.routes.beginCreateOrUpdateAndWait(
      group,
      name,
      "to-the-firm",
      {
        addressPrefix: "192.168.0.0/16",
        nextHopType: "VirtualAppliance",
        nextHopIpAddress: "10.99.0.9",
      },
      soon,
    );
  },

  "azure-native:network:PublicIPAddress": async ({ network }, name, tag) => {
    const found = await network.publicIPAddresses.get(group, name);
    await network.publicIPAddresses.beginCreateOrUpdateAndWait(
      group,
      name,
      {
        ...found,
        tags: { ...found.tags, ...tag },
        idleTimeoutInMinutes: 15,
        ddosSettings: { protectionMode: "Enabled" },
        dnsSettings: found.dnsSettings
          ? { ...found.dnsSettings, reverseFqdn: "api.firm.example" }
          : { domainNameLabel: "out-of-the-firm" },
      },
      soon,
    );
  },

  "azure-native:network:NatGateway": async ({ network }, name, tag) => {
    const found = await network.natGateways.get(group, name);
    const { id } = await addressOf(network, `for-${name}`);
    const others = found.publicIpAddresses!.filter((one) => one.id !== id);
    await network.natGateways.beginCreateOrUpdateAndWait(
      group,
      name,
      {
        ...found,
        tags: { ...found.tags, ...tag },
        idleTimeoutInMinutes: 30,
        publicIpAddresses: [...others, { id }],
      },
      soon,
    );
  },

  "azure-native:network:LoadBalancer": async ({ network }, name, tag) => {
    const found = await network.loadBalancers.get(group, name);
    const part = (kind: string) => ({ id: `${found.id}/${kind}/theirs` });
    const not = <T extends { name?: string }>(list: T[] = []) =>
      list.filter((one) => one.name !== "theirs");
    await network.loadBalancers.beginCreateOrUpdateAndWait(
      group,
      name,
      {
        ...found,
        tags: { ...found.tags, ...tag },
        frontendIPConfigurations: [
          ...not(found.frontendIPConfigurations),
          {
            name: "theirs",
            publicIPAddress: { id: (await addressOf(network, `for-${name}`)).id },
          },
        ],
        backendAddressPools: [...not(found.backendAddressPools), { name: "theirs" }],
        probes: [
          ...not(found.probes),
          { name: "theirs", protocol: "Tcp", port: 8080, intervalInSeconds: 5 },
        ],
        loadBalancingRules: [
          ...not(found.loadBalancingRules),
          {
            name: "theirs",
            protocol: "Tcp",
            frontendPort: 80,
            backendPort: 8080,
            frontendIPConfiguration: part("frontendIPConfigurations"),
            backendAddressPools: [part("backendAddressPools")],
            probe: part("probes"),
            disableOutboundSnat: true,
          },
        ],
        outboundRules: [
          {
            name: "theirs",
            protocol: "All",
            frontendIPConfigurations: [part("frontendIPConfigurations")],
            backendAddressPool: part("backendAddressPools"),
          },
        ],
      },
      soon,
    );
  },

  "azure-native:network:NetworkInterface": async ({ network }, name, tag) => {
    const found = await network.networkInterfaces.get(group, name);
    const [own] = found.ipConfigurations!;
    const { id } = await network.networkSecurityGroups.get(theirs, "guard");
    const pool = `${(await network.loadBalancers.get(group, `${group}-api`)).id}/backendAddressPools`;
    const pools = own!.loadBalancerBackendAddressPools ?? [];
    await network.networkInterfaces.beginCreateOrUpdateAndWait(
      group,
      name,
      {
        ...found,
        tags: { ...found.tags, ...tag },
        networkSecurityGroup: { id },
        dnsSettings: { dnsServers: ["10.99.0.4"] },
        ipConfigurations: [
          {
            ...own!,
            loadBalancerBackendAddressPools: [
              ...pools.filter((one) => !one.id!.endsWith("/theirs")),
              { id: `${pool}/theirs` },
            ],
          },
          { name: "second", subnet: own!.subnet, privateIPAllocationMethod: "Dynamic" },
        ],
      },
      soon,
    );
  },

  "azure-native:compute:VirtualMachine": async ({ compute, identities }, name, tag) => {
    const { tags } = await compute.virtualMachines.get(group, name);
    const policy = await identities.userAssignedIdentities.get(theirs, "policy");
    await compute.virtualMachines.beginUpdateAndWait(
      group,
      name,
      {
        tags: { ...tags, ...tag },
        identity: {
          type: "SystemAssigned, UserAssigned",
          userAssignedIdentities: { [policy.id!]: {} },
        },
        licenseType: "UBUNTU_PRO",
        osProfile: {
          linuxConfiguration: {
            patchSettings: {
              patchMode: "AutomaticByPlatform",
              assessmentMode: "AutomaticByPlatform",
            },
          },
        },
      },
      soon,
    );
    await compute.virtualMachineExtensions.beginCreateOrUpdateAndWait(
      group,
      name,
      "LinuxDiagnostic",
      {
        location,
        publisher: "Microsoft.Azure.Diagnostics",
        typePropertiesType: "LinuxDiagnostic",
        typeHandlerVersion: "4.0",
        autoUpgradeMinorVersion: true,
        settings: { StorageAccount: "firm" },
      },
      soon,
    );
  },

  "azure-native:compute:VirtualMachineExtension": async ({ compute }, machine, tag) => {
    const { tags } = await compute.virtualMachineExtensions.get(group, machine, "bootstrap");
    await compute.virtualMachineExtensions.beginUpdateAndWait(
      group,
      machine,
      "bootstrap",
      { tags: { ...tags, ...tag } },
      soon,
    );
  },

  "azure-native:authorization:RoleDefinition": "a role of one's own has no tags",
  "azure-native:authorization:RoleAssignment": "an assignment is one's own and has no tags",
};

const isInterface = ({ type }: Resource) => type.endsWith(":NetworkInterface");

/** A public address that somebody else has. */
const addressOf = (network: Clients["network"], name: string) =>
  network.publicIPAddresses.beginCreateOrUpdateAndWait(
    theirs,
    name,
    { location, sku: standard, publicIPAllocationMethod: "Static", zones: ["1", "2", "3"] },
    soon,
  );

describe("what others write on a cluster's resources", () => {
  const settings = hasManifests ? {} : { cni: "flannel", diskDriver: false };
  let cloud: LocalCloud;
  let clients: Clients;
  let resources: Resource[];

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    succeeded(await cloud.stack.up("--skip-preview"));
    clients = cloud.sdks();
    const { deployment } = (await cloud.stack.stackExport()) as {
      deployment: { resources: Resource[] };
    };
    resources = deployment.resources
      .filter(({ type }) => type.startsWith("azure-native:"))
      // Interfaces join a pool that is made before.
      .sort((a, b) => Number(isInterface(a)) - Number(isInterface(b)));
    await clients.resources.resourceGroups.createOrUpdate(theirs, { location });
    await clients.identities.userAssignedIdentities.createOrUpdate(theirs, "policy", { location });
    await clients.network.routeTables.beginCreateOrUpdateAndWait(
      theirs,
      "routes",
      { location },
      soon,
    );
    await clients.network.networkSecurityGroups.beginCreateOrUpdateAndWait(
      theirs,
      "guard",
      { location },
      soon,
    );
  });
  afterAll(() => cloud?.stop());

  const write = async (tag: Record<string, string>) => {
    for (const { type, id } of resources) {
      const addition = additions[type];
      const { names, name } = parseId(id)!;
      const isStep = type.endsWith(":VirtualMachineExtension");
      if (typeof addition === "function") await addition(clients, isStep ? names[0]! : name, tag);
    }
  };

  /** All of the stack, and the diagnostic extensions, as Azure shows them; any write changes etags. */
  const azureState = async (): Promise<Record<string, unknown>> => {
    const machines = resources.filter(({ type }) => type.endsWith(":VirtualMachine"));
    const ids = [
      ...resources.map(({ id }) => id),
      ...machines.map(({ id }) => `${id}/extensions/LinuxDiagnostic`),
    ];
    const read = ids.map(async (id) => [id, await cloud.read(id)] as const);
    // The rule follows what others put on the gateway.
    const text = JSON.stringify(await Promise.all(read), (key, value: unknown) =>
      key === "etag" || (value as { name?: string } | undefined)?.name === admitting
        ? undefined
        : value,
    );
    return Object.fromEntries(JSON.parse(text) as [string, unknown][]);
  };

  it("is written by this test on every type that the program makes", () => {
    const types = [...new Set(resources.map(({ type }) => type))].sort();

    expect(types.filter((type) => !(type in additions))).toEqual([]);
    expect(Object.keys(additions).filter((type) => !types.includes(type))).toEqual([]);
  });

  it("is there after a refresh and an update, which changes nothing but to admit machines by their gateway's new address", async () => {
    await write({ owner: "firm", "hidden-link:/app": "Resource" });
    const before = await azureState();

    succeeded(await cloud.stack.refresh());
    const { steps, planned } = asPlanned(await cloud.stack.up());
    expect([steps, planned]).toEqual(Array(2).fill([expect.stringContaining(admitting)]));
    unchanged(await cloud.stack.up("--skip-preview"));

    expect(await azureState()).toEqual(before);
    const rule = resources.find(({ id }) => id.endsWith(admitting))!;
    const { properties } = (await cloud.read(rule.id)) as {
      properties: { sourceAddressPrefixes: string[] };
    };
    const { ipAddress } = await clients.network.publicIPAddresses.get(theirs, `for-${egress}`);
    expect(properties.sourceAddressPrefixes).toContain(`${ipAddress}/32`);
  });

  it("is there after an update without a refresh, which replaces nothing", async () => {
    await write({ owner: "firm", "cost-center": "4711" });
    const before = await azureState();

    const run = succeeded(await cloud.stack.up());

    const { planned = [], steps } = run;
    expect(planned.length).toBeGreaterThan(0);
    expect([...planned, ...steps].filter((step) => !step.startsWith("update "))).toEqual([]);
    expect(await azureState()).toEqual(before);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("goes where others take it away, and what is the program's stays", async () => {
    const name = `${group}-cp-1`;
    const { tags } = await clients.compute.virtualMachines.get(group, name);
    const { owner: _, ...others } = tags!;
    const { id } = await clients.identities.userAssignedIdentities.get(theirs, "policy");
    await clients.compute.virtualMachines.beginUpdateAndWait(
      group,
      name,
      {
        tags: others,
        identity: { type: "UserAssigned", userAssignedIdentities: { [id!]: null as never } },
      },
      soon,
    );

    succeeded(await cloud.stack.up("--skip-preview"));

    const now = await clients.compute.virtualMachines.get(group, name);
    expect(now.tags).toEqual(others);
    expect(now.tags).toHaveProperty("zoned-created-at");
    expect(now.identity?.type).toBe("UserAssigned");
    expect(Object.keys(now.identity!.userAssignedIdentities!)).toEqual([
      expect.stringMatching(`/resourceGroups/${group}/.*/userAssignedIdentities/${group}$`),
    ]);
  });

  describe("the tags of the settings", () => {
    const withoutTags = [":Subnet", ":SecurityRule", ":RoleDefinition", ":RoleAssignment"];
    const tagsNow = async () =>
      Promise.all(
        resources
          .filter(({ type }) => !withoutTags.some((end) => type.endsWith(end)))
          .map(async ({ id }) => {
            const { tags = {} } = (await cloud.read(id)) as { tags?: Record<string, string> };
            return tags;
          }),
      );

    it("come to every resource that takes some, and replace none of Azure's", async () => {
      await cloud.stack.configure({ ...settings, tags: { Team: "platform", Cost: "4711" } });

      const { steps } = succeeded(await cloud.stack.up("--skip-preview"));

      const ofAzure = steps.filter((step) => step.includes("azure-native"));
      expect(ofAzure.filter((step) => !step.startsWith("update "))).toEqual([]);
      for (const tags of await tagsNow()) {
        expect(tags).toMatchObject({ Team: "platform", Cost: "4711" });
      }
      succeeded(await cloud.stack.refresh());
      unchanged(await cloud.stack.up("--skip-preview"));
    });

    it("go with the setting, one by one, and others' stay", async () => {
      await cloud.stack.configure({ ...settings, tags: { Cost: "4712" } });

      succeeded(await cloud.stack.up("--skip-preview"));

      for (const tags of await tagsNow()) {
        expect(tags).toMatchObject({ Cost: "4712", "cost-center": "4711" });
        expect(tags).not.toHaveProperty("Team");
      }
      unchanged(await cloud.stack.up("--skip-preview"));
    });
  });

  it("is a disk that stays attached through a refresh and a resize", async () => {
    const disk = "/providers/Microsoft.Compute/disks/pvc-1";
    const vm = "/providers/Microsoft.Compute/virtualMachines/zoned-local-workers-1";
    const made = (await cloud.inGroup("PUT", disk, {
      location: "southeastasia",
      zones: ["2"],
      sku: { name: "StandardSSD_LRS" },
      properties: { creationData: { createOption: "Empty" }, diskSizeGB: 8 },
    })) as { id: string };
    const machine = (await cloud.inGroup("GET", vm)) as {
      properties: { storageProfile: Record<string, unknown>; [name: string]: unknown };
    };
    const dataDisks = [{ lun: 0, createOption: "Attach", managedDisk: { id: made.id } }];
    machine.properties.storageProfile = { ...machine.properties.storageProfile, dataDisks };
    await cloud.inGroup("PUT", vm, machine);

    succeeded(await cloud.stack.refresh());
    await cloud.stack.configure({
      ...settings,
      workerPools: [{ name: "workers", count: 2, size: "Standard_B2ms" }],
    });
    asPlanned(await cloud.stack.up());

    const resized = (await cloud.inGroup("GET", vm)) as {
      properties: { hardwareProfile: { vmSize: string }; storageProfile: { dataDisks: unknown[] } };
    };
    expect(resized.properties.hardwareProfile.vmSize).toBe("Standard_B2ms");
    expect(resized.properties.storageProfile.dataDisks).toHaveLength(1);
  });
});
