import type { VirtualMachine } from "@azure/arm-compute";
import type { Subnet } from "@azure/arm-network";

import { testFolder } from "../../../../tests/support/test-folder";
import { account } from "../../arm/resources/resource";
import { certificateIn } from "../../arm/rest/listener";
import { serveRest } from "../../arm/rest/rest";
import { all, createResources, newArm } from "../support/arm/fixture";
import { type Clients, clientsOf, soon } from "../support/arm/clients";
import {
  compute as computeId,
  group as groupId,
  type Kind,
  network as networkId,
  reader,
  roleDefinition,
  valid,
  withChange,
} from "../support/arm/valid-resources";

const group = "zoned";
const location = "westeurope";
const zones = ["1", "2", "3"];

const folder = testFolder();

/** A new Resource Manager, and Microsoft's clients of it. */
async function withSdks(
  use: (clients: Clients, built: ReturnType<typeof newArm>) => Promise<void>,
): Promise<void> {
  const built = newArm();
  const certificate = await certificateIn(folder);
  const server = await serveRest(built.arm, 0, {}, certificate);
  try {
    await use(clientsOf(server.port, certificate.authority), built);
  } finally {
    await server.close();
  }
}

/** The client of each kind that lies in a group by itself. */
const clientOf = {
  securityGroup: ({ network }: Clients) => network.networkSecurityGroups,
  routeTable: ({ network }: Clients) => network.routeTables,
  natIp: ({ network }: Clients) => network.publicIPAddresses,
  nat: ({ network }: Clients) => network.natGateways,
  vnet: ({ network }: Clients) => network.virtualNetworks,
  apiIp: ({ network }: Clients) => network.publicIPAddresses,
  balancer: ({ network }: Clients) => network.loadBalancers,
  nic: ({ network }: Clients) => network.networkInterfaces,
  machine: ({ compute }: Clients) => compute.virtualMachines,
};
type Own = keyof typeof clientOf;
const nameOf = (kind: Kind): string => valid[kind][0].split("/").at(-1)!;

function create(clients: Clients, kind: Own): Promise<unknown> {
  const client = clientOf[kind](clients) as any;
  const put = client.beginCreateOrUpdateAndWait ?? client.createOrUpdate;
  return put.call(client, group, nameOf(kind), valid[kind][1], soon);
}

it("creates, shows, lists and deletes what a cluster has", () =>
  withSdks(async (clients, { arm, machines }) => {
    const { network, compute, resources } = clients;
    await resources.resourceGroups.createOrUpdate(group, { location, tags: { stack: "dev" } });
    expect((await resources.resourceGroups.checkExistence(group)).body).toBe(true);
    for (const kind of Object.keys(clientOf) as Own[]) {
      await create(clients, kind);
      if (kind === "securityGroup") {
        const rule = { ...valid.rule[1] };
        await network.securityRules.beginCreateOrUpdateAndWait(group, "nsg", "api", rule, soon);
      }
      if (kind === "vnet") {
        const subnet = withChange("subnet", {}) as Subnet;
        const subnets = network.subnets;
        await subnets.beginCreateOrUpdateAndWait(group, "vnet", "nodes-1", subnet, soon);
      }
    }
    await compute.virtualMachineExtensions.createOrUpdate(
      ...([group, "cp-1", "bootstrap"] as const),
      {
        ...{ location, publisher: "Microsoft.Azure.Extensions", typeHandlerVersion: "2.1" },
        typePropertiesType: "CustomScript",
        protectedSettings: { commandToExecute: "join the cluster" },
      },
      soon,
    );
    expect(machines.calls).toEqual(["create cp-1 172.16.1.4", "run join the cluster on cp-1"]);

    const machine = compute.virtualMachines.get(group, "cp-1", { expand: "instanceView" });
    for (const [shown, facts] of [
      [
        await network.virtualNetworks.get(group, "vnet"),
        { subnets: [{ name: "nodes-1", addressPrefix: "172.16.1.0/24" }] },
      ],
      [
        await network.networkSecurityGroups.get(group, "nsg"),
        { securityRules: [{ name: "api", priority: 100, protocol: "Tcp" }] },
      ],
      [
        await network.loadBalancers.get(group, "api"),
        {
          backendAddressPools: [{ backendIPConfigurations: [{}] }],
          loadBalancingRules: [{ frontendPort: 6443, protocol: "Tcp" }],
        },
      ],
      [
        await network.networkInterfaces.get(group, "cp-1-nic"),
        {
          virtualMachine: { id: valid.machine[0] },
          ipConfigurations: [{ name: "ip", privateIPAddress: "172.16.1.4", primary: true }],
        },
      ],
      [
        await machine,
        {
          ...{ zones: ["1"], hardwareProfile: { vmSize: "Standard_D2s_v5" } },
          networkProfile: { networkInterfaces: [{ id: valid.nic[0] }] },
          instanceView: { statuses: [{}, { code: "PowerState/running" }] },
        },
      ],
    ] as const) {
      expect(shown).toMatchObject(facts);
    }
    for (const [list, names] of [
      [compute.virtualMachines.list(group), ["cp-1"]],
      [compute.virtualMachines.listAll(), ["cp-1"]],
      [compute.disks.listByResourceGroup(group), ["cp-1-os"]],
      [network.publicIPAddresses.listAll(), ["api", "nat-1"]],
      [network.natGateways.list(group), ["nat-1"]],
      [network.subnets.list(group, "vnet"), ["nodes-1"]],
      [network.securityRules.list(group, "nsg"), ["api"]],
      [network.loadBalancerProbes.list(group, "api"), ["readyz"]],
      [network.networkInterfaces.list(group), ["cp-1-nic"]],
    ] as const) {
      expect((await all<{ name?: string }>(list)).map(({ name }) => name).sort()).toEqual(names);
    }
    const extensions = await compute.virtualMachineExtensions.list(group, "cp-1");
    expect(extensions.value).toMatchObject([{ typePropertiesType: "CustomScript" }]);

    await compute.virtualMachines.delete(group, "cp-1", soon);
    await network.networkInterfaces.beginDeleteAndWait(group, "cp-1-nic", soon);
    await network.loadBalancers.beginDeleteAndWait(group, "api", soon);
    await network.virtualNetworks.beginDeleteAndWait(group, "vnet", soon);
    await resources.resourceGroups.beginDeleteAndWait(group, soon);

    expect(arm.isEmpty).toBe(true);
    expect((await resources.resourceGroups.checkExistence(group)).body).toBe(false);
  }));

it("creates, changes, lists and deletes a storage account with a container", () =>
  withSdks(async ({ resources, storage }) => {
    await resources.resourceGroups.createOrUpdate(group, { location });
    const account = await storage.storageAccounts.create(
      group,
      "zonedbackups",
      {
        location,
        kind: "StorageV2",
        sku: { name: "Standard_ZRS" },
        enableHttpsTrafficOnly: false,
        networkRuleSet: { defaultAction: "Deny" },
      },
      soon,
    );
    const container = await storage.blobContainers.create(group, "zonedbackups", "etcd", {});
    const changed = await storage.storageAccounts.update(group, "zonedbackups", {
      enableHttpsTrafficOnly: true,
    });

    expect(account).toMatchObject({
      enableHttpsTrafficOnly: false,
      networkRuleSet: { defaultAction: "Deny" },
      primaryEndpoints: { blob: "https://zonedbackups.blob.core.windows.net/" },
      provisioningState: "Succeeded",
    });
    expect(changed).toMatchObject({ enableHttpsTrafficOnly: true, kind: "StorageV2" });
    expect(container).toMatchObject({
      name: "etcd",
      publicAccess: "None",
      leaseState: "Available",
    });
    expect(await all(storage.storageAccounts.list())).toMatchObject([{ name: "zonedbackups" }]);
    expect(await all(storage.blobContainers.list(group, "zonedbackups"))).toMatchObject([
      { name: "etcd", leaseState: "Available" },
    ]);
    await storage.blobContainers.delete(group, "zonedbackups", "etcd");
    await storage.storageAccounts.delete(group, "zonedbackups");
    expect(await all(storage.storageAccounts.listByResourceGroup(group))).toEqual([]);
  }));

it("changes tags alone by PATCH, and leaves everything else", () =>
  withSdks(async ({ network, compute, resources, identities }, { arm, machines }) => {
    await createResources(arm);
    await identities.userAssignedIdentities.createOrUpdate(group, "cluster", { location });
    const calls = machines.calls.length;
    const balancerWithoutTags = (): unknown =>
      JSON.parse(
        JSON.stringify(arm.peek(valid.balancer[0]), (key, value: unknown) =>
          key === "etag" || key === "tags" ? undefined : value,
        ),
      );
    const before = balancerWithoutTags();
    const tags = { owner: "me" };

    for (const [shown, more] of [
      [await network.loadBalancers.updateTags(group, "api", { tags })],
      [await network.publicIPAddresses.updateTags(group, "api", { tags })],
      [
        await network.virtualNetworks.updateTags(group, "vnet", { tags }),
        { subnets: [{ name: "nodes-1" }] },
      ],
      [await compute.virtualMachines.update(group, "cp-1", { tags }, soon)],
      [
        await compute.disks.update(group, "data", { tags, diskSizeGB: 16 }, soon),
        { diskSizeGB: 16, zones: ["1"] },
      ],
      [await resources.resourceGroups.update(group, { tags }), { location }],
      [await identities.userAssignedIdentities.update(group, "cluster", { location, tags })],
    ] as readonly [object, object?][]) {
      expect(shown).toMatchObject({ tags, ...more });
    }

    expect(balancerWithoutTags()).toEqual(before);
    expect(machines.calls).toHaveLength(calls);
  }));

it("adds identities to a machine by PATCH, and takes away what is null or not in the type", () =>
  withSdks(async ({ compute, identities }, { arm }) => {
    await createResources(arm, "machine");
    const [one, other] = await Promise.all(
      ["one", "other"].map(async (name) => {
        const made = await identities.userAssignedIdentities.createOrUpdate(group, name, {
          location,
        });
        return made.id!;
      }),
    );
    const patch = async (type: string, ids?: Record<string, object | null>) => {
      const given = { type, userAssignedIdentities: ids } as VirtualMachine["identity"];
      await compute.virtualMachines.beginUpdateAndWait(group, "cp-1", { identity: given }, soon);
      const { identity } = await compute.virtualMachines.get(group, "cp-1");
      return {
        type: identity?.type,
        ids: Object.keys(identity?.userAssignedIdentities ?? {}),
        hasItsOwn: identity?.principalId !== undefined && identity.tenantId === account.tenantId,
      };
    };
    const both = "SystemAssigned, UserAssigned";

    const answers = [
      await patch("UserAssigned", { [one!]: {} }),
      await patch(both, { [other!]: {} }),
      await patch(both),
      await patch(both, { [one!.toUpperCase()]: null }),
      await patch("SystemAssigned"),
      await patch("None"),
    ];

    expect(answers).toEqual([
      { type: "UserAssigned", ids: [one], hasItsOwn: false },
      { type: both, ids: [one, other], hasItsOwn: true },
      { type: both, ids: [one, other], hasItsOwn: true },
      { type: both, ids: [other], hasItsOwn: true },
      { type: "SystemAssigned", ids: [], hasItsOwn: true },
      { type: undefined, ids: [], hasItsOwn: false },
    ]);
  }));

it("pages lists, each page with the address of the next", () =>
  withSdks(async ({ network, resources }, { arm }) => {
    await arm.put(groupId, { location });
    const sizes: number[] = [];
    for (let number = 0; number < 230; number++) {
      await arm.put(networkId(`routeTables/rt-${number}`), { location });
    }

    for await (const page of network.routeTables.list(group).byPage()) sizes.push(page.length);
    const some = resources.resources.listByResourceGroup(group, { top: 90 });
    for await (const page of some.byPage()) sizes.push(page.length);

    expect(sizes).toEqual([100, 100, 30, 90, 90, 50]);
  }));

it("refuses a stale If-Match and an If-None-Match of what is there with 412", () =>
  withSdks(async ({ network: { networkSecurityGroups, routeTables, securityRules } }, { arm }) => {
    await createResources(arm);
    const when = (name: "If-Match" | "If-None-Match", value = "") => ({
      ...{ requestOptions: { customHeaders: { [name]: value } }, ...soon },
    });
    const seen = await networkSecurityGroups.get(group, "nsg");
    const { etag: rulesEtag } = await securityRules.get(group, "nsg", "api");
    const rule = { ...valid.rule[1], priority: 200 };
    await securityRules.beginCreateOrUpdateAndWait(group, "nsg", "more", rule, soon);
    const now = await networkSecurityGroups.get(group, "nsg");
    const put = (body: typeof now, options: ReturnType<typeof when>) =>
      networkSecurityGroups.beginCreateOrUpdateAndWait(group, "nsg", body, options);
    const putRoutes = (name: string, options: ReturnType<typeof when>) =>
      routeTables.beginCreateOrUpdateAndWait(group, name, { location }, options);
    const stale = when("If-Match", seen.etag);

    expect(rulesEtag).toBe(seen.etag);
    expect(now.etag).not.toBe(seen.etag);
    for (const refused of [
      () => put(seen, stale),
      () => networkSecurityGroups.updateTags(group, "nsg", { tags: {} }, stale),
      () => networkSecurityGroups.beginDeleteAndWait(group, "nsg", stale),
      () => putRoutes("none", when("If-Match", "*")),
      () => put(now, when("If-None-Match", now.etag)),
      () => putRoutes("rt", when("If-None-Match", "*")),
    ]) {
      await expect(refused()).rejects.toMatchObject({
        statusCode: 412,
        code: "PreconditionFailed",
      });
    }
    expect(arm.peek(valid.securityGroup[0])!["securityRules"]).toHaveLength(2);
    await put(now, when("If-Match", now.etag));
  }));

it("changes a pool of a load balancer as a resource of its own", () =>
  withSdks(async ({ network }, { arm }) => {
    await createResources(arm);
    const before = await network.loadBalancers.get(group, "api");

    const pool = await network.loadBalancerBackendAddressPools.beginCreateOrUpdateAndWait(
      group,
      "api",
      "kubernetes",
      {
        loadBalancerBackendAddresses: [
          {
            name: "worker-1",
            ipAddress: "172.16.1.9",
            virtualNetwork: { id: networkId("virtualNetworks/vnet") },
          },
        ],
      },
      soon,
    );

    expect(pool.loadBalancerBackendAddresses).toMatchObject([{ ipAddress: "172.16.1.9" }]);
    const after = await network.loadBalancers.get(group, "api");
    expect(after.etag).not.toBe(before.etag);
    expect(pool.etag).toBe(after.etag);
    expect(after.backendAddressPools?.map(({ name }) => name)).toEqual(["cp", "kubernetes"]);
    expect(after.backendAddressPools?.[0]?.backendIPConfigurations).toHaveLength(1);
    await network.loadBalancerBackendAddressPools.beginDeleteAndWait(
      group,
      "api",
      "kubernetes",
      soon,
    );
    await expect(
      network.loadBalancerBackendAddressPools.get(group, "api", "kubernetes"),
    ).rejects.toMatchObject({ statusCode: 404, code: "NotFound" });
  }));

it("attaches and detaches a disk by a PUT of the machine's disks alone, as the disk driver does", () =>
  withSdks(async ({ compute }, { arm, machines }) => {
    await createResources(arm);
    const calls = machines.calls.length;
    const before = { ...arm.peek(valid.machine[0]) };
    const dataDisk = {
      lun: 0,
      createOption: "Attach",
      managedDisk: { id: computeId("disks/data") },
    };
    const put = (more: object) =>
      compute.virtualMachines.createOrUpdate(
        group,
        "cp-1",
        { location, storageProfile: { dataDisks: [{ ...dataDisk, ...more }] } },
        soon,
      );

    await put({});

    expect(await compute.disks.get(group, "data")).toMatchObject({
      managedBy: valid.machine[0],
      diskState: "Attached",
    });
    await put({ toBeDetached: true });
    expect(await compute.disks.get(group, "data")).toMatchObject({ diskState: "Unattached" });
    await compute.virtualMachines.createOrUpdate(group, "cp-1", { location }, soon);
    expect(arm.peek(valid.machine[0])).toEqual({ ...before, etag: expect.anything() });
    expect(machines.calls).toHaveLength(calls);
  }));

it("copies a disk by way of a snapshot", () =>
  withSdks(async ({ compute }, { arm }) => {
    await createResources(arm, "disk");
    const copyOf = (sourceResourceId: string) => ({
      ...{ location, creationData: { createOption: "Copy", sourceResourceId } },
    });

    const snapshot = await compute.snapshots.createOrUpdate(
      ...([group, "backup"] as const),
      { ...copyOf(valid.disk[0]), incremental: true },
      soon,
    );
    const copy = { ...copyOf(snapshot.id!), zones: ["2"] };

    expect(snapshot).toMatchObject({ diskSizeGB: 8, completionPercent: 100, incremental: true });
    expect(await compute.disks.createOrUpdate(group, "copy", copy, soon)).toMatchObject({
      ...{ diskSizeGB: 8, zones: ["2"] },
    });
    await compute.snapshots.delete(group, "backup", soon);
    expect(await all(compute.snapshots.list())).toEqual([]);
  }));

it("lists what is assigned at a scope and above it, of anybody or of one", () =>
  withSdks(async ({ identities, authorization }, { arm }) => {
    await arm.put(groupId, { location });
    const { principalId = "" } = await identities.userAssignedIdentities.createOrUpdate(
      ...([group, "cluster"] as const),
      { location },
    );
    const roleDefinitionId = roleDefinition(reader);
    const { roleAssignments } = authorization;
    const above = `/subscriptions/${account.subscriptionId}`;
    const name = "00000000-0000-4000-8000-00000000000a";
    const principals = async (scope: string, filter?: string) =>
      (await all(roleAssignments.listForScope(scope, { filter }))).map((one) => one.principalId);
    const { objectId } = account;

    await roleAssignments.create(groupId, name, { principalId, roleDefinitionId });
    await roleAssignments.create(above, name, { principalId: objectId, roleDefinitionId });

    expect((await principals(groupId)).sort()).toEqual([principalId, objectId].sort());
    for (const filter of [`assignedTo('${objectId}')`, `principalId eq '${objectId}'`]) {
      expect(await principals(groupId, filter)).toEqual([objectId]);
    }
    expect(await principals(above, "atScope()")).toEqual([objectId]);
    await roleAssignments.delete(above, name);
    expect(await principals(above, "atScope()")).toEqual([]);
  }));

it("reports an operation that fails after its PUT was accepted, with Azure's code", () =>
  withSdks(async (clients, { arm, machines }) => {
    await createResources(arm, "nic");
    machines.createError = new Error("no such image");

    await expect(create(clients, "machine")).rejects.toThrow(
      /OSProvisioningInternalError.*no such image/,
    );

    expect(arm.peek(valid.machine[0])).toMatchObject({ provisioningState: "Failed" });
  }));

it("answers what a subscription has: regions, providers with zones, sizes, groups", () =>
  withSdks(async ({ resources, compute, network }, { arm }) => {
    await arm.put(groupId, { location });

    expect(await all(network.privateLinkServices.list(group))).toEqual([]);
    const provider = await resources.providers.get("Microsoft.Compute");
    const machines = provider.resourceTypes?.find(
      (type) => type.resourceType === "virtualMachines",
    );
    expect(machines?.zoneMappings).toContainEqual({ location: "West Europe", zones });
    expect(machines?.apiVersions).toContain("2024-11-01");
    expect(await all(resources.resourceGroups.list())).toMatchObject([{ name: group, location }]);
    const sizes = await all(compute.resourceSkus.list());
    expect(sizes.some(({ locations }) => locations?.includes("northeurope"))).toBe(true);
    await expect(resources.providers.get("Microsoft.Nothing")).rejects.toMatchObject({
      statusCode: 404,
    });
  }));
