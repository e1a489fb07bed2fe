import type { VirtualMachine } from "@azure/arm-compute";
import type {
  LoadBalancer,
  NatGateway,
  NetworkInterface,
  PublicIPAddress,
  Subnet,
} from "@azure/arm-network";

import { account } from "../../arm/resources/ids";
import { createResources } from "../support/arm/fixture";
import { all, type Clients, soon, withSdks } from "../support/arm/official-sdks";
import {
  compute as computeId,
  group as groupId,
  network as networkId,
  reader,
  roleDefinition,
  valid,
  withChange,
} from "../support/arm/valid-resources";

const group = "zoned";
const location = "westeurope";
const zones = ["1", "2", "3"];

/** Network of a cluster: an outgoing address and a subnet per zone, and the balancer of the API. */
async function createNetwork({ network, resources }: Clients): Promise<void> {
  await resources.resourceGroups.createOrUpdate(group, { location, tags: { stack: "dev" } });
  const securityRules = [{ name: "api", ...valid.rule[1] }];
  const created = { location, securityRules };
  await network.networkSecurityGroups.beginCreateOrUpdateAndWait(group, "nsg", created, soon);
  await network.routeTables.beginCreateOrUpdateAndWait(group, "rt", { location }, soon);
  const addressSpace = { addressPrefixes: ["172.16.0.0/16"] };
  const vnet = { location, addressSpace };
  await network.virtualNetworks.beginCreateOrUpdateAndWait(group, "vnet", vnet, soon);
  for (const zone of zones) {
    const { id: publicIp } = await network.publicIPAddresses.beginCreateOrUpdateAndWait(
      group,
      `nat-${zone}`,
      withChange("natIp", { zones: [zone] }) as PublicIPAddress,
      soon,
    );
    const { id: nat } = await network.natGateways.beginCreateOrUpdateAndWait(
      group,
      `nat-${zone}`,
      withChange("nat", { zones: [zone], "publicIpAddresses.0.id": publicIp }) as NatGateway,
      soon,
    );
    const change = { addressPrefix: `172.16.${zone}.0/24`, "natGateway.id": nat };
    const subnet = withChange("subnet", change) as Subnet;
    const name = `nodes-${zone}`;
    await network.subnets.beginCreateOrUpdateAndWait(group, "vnet", name, subnet, soon);
  }
  const address = withChange("apiIp", {}) as PublicIPAddress;
  await network.publicIPAddresses.beginCreateOrUpdateAndWait(group, "api", address, soon);
  const balancer = withChange("balancer", {}) as LoadBalancer;
  await network.loadBalancers.beginCreateOrUpdateAndWait(group, "api", balancer, soon);
}

async function createMachine({ network, compute }: Clients, zone: string): Promise<VirtualMachine> {
  const nic = await network.networkInterfaces.beginCreateOrUpdateAndWait(
    group,
    `cp-${zone}-nic`,
    withChange("nic", {
      "ipConfigurations.0.subnet.id": networkId(`virtualNetworks/vnet/subnets/nodes-${zone}`),
      "ipConfigurations.0.privateIPAllocationMethod": "Dynamic",
      "ipConfigurations.0.privateIPAddress": undefined,
    }) as NetworkInterface,
    soon,
  );
  const machine = withChange("machine", {
    zones: [zone],
    "networkProfile.networkInterfaces": [{ id: nic.id, primary: true }],
    "osProfile.computerName": `cp-${zone}`,
    "storageProfile.osDisk.name": `cp-${zone}-os`,
  });
  return compute.virtualMachines.createOrUpdate(group, `cp-${zone}`, machine as never, soon);
}

it("creates, lists and deletes the network and machines of a cluster in three zones", () =>
  withSdks(async (clients, { arm, machines }) => {
    const { network, compute, resources } = clients;
    await createNetwork(clients);
    expect((await resources.resourceGroups.checkExistence(group)).body).toBe(true);
    for (const zone of zones) await createMachine(clients, zone);
    await compute.virtualMachineExtensions.createOrUpdate(
      group,
      "cp-1",
      "bootstrap",
      {
        location,
        publisher: "Microsoft.Azure.Extensions",
        typePropertiesType: "CustomScript",
        typeHandlerVersion: "2.1",
        protectedSettings: { commandToExecute: "join the cluster" },
      },
      soon,
    );

    const vnet = await network.virtualNetworks.get(group, "vnet");
    expect(vnet.subnets?.map(({ name, addressPrefix }) => [name, addressPrefix])).toEqual(
      zones.map((zone) => [`nodes-${zone}`, `172.16.${zone}.0/24`]),
    );
    const nsg = await network.networkSecurityGroups.get(group, "nsg");
    expect(nsg.securityRules).toMatchObject([{ name: "api", priority: 100, protocol: "Tcp" }]);
    expect(nsg.defaultSecurityRules?.map(({ priority }) => priority)).toContain(65500);
    const { backendAddressPools, loadBalancingRules } = await network.loadBalancers.get(
      group,
      "api",
    );
    expect(backendAddressPools?.[0]?.backendIPConfigurations).toHaveLength(3);
    expect(loadBalancingRules).toMatchObject([{ frontendPort: 6443, protocol: "Tcp" }]);
    const nic = await network.networkInterfaces.get(group, "cp-2-nic");
    expect(nic).toMatchObject({
      virtualMachine: { id: computeId("virtualMachines/cp-2") },
      ipConfigurations: [{ name: "ip", privateIPAddress: "172.16.2.4", primary: true }],
    });
    const vm = await compute.virtualMachines.get(group, "cp-1", { expand: "instanceView" });
    expect(vm).toMatchObject({
      zones: ["1"],
      hardwareProfile: { vmSize: "Standard_D2s_v5" },
      networkProfile: { networkInterfaces: [{ primary: true }] },
      instanceView: { statuses: [{}, { code: "PowerState/running" }] },
    });
    expect(machines.calls.filter((call) => call.startsWith("create"))).toHaveLength(3);
    expect(machines.calls).toContain("run join the cluster on cp-1");

    const namesOf = async (list: AsyncIterable<{ name?: string }>) =>
      (await all(list)).map(({ name }) => name).sort();
    expect(await namesOf(compute.virtualMachines.list(group))).toEqual(["cp-1", "cp-2", "cp-3"]);
    expect(await namesOf(compute.virtualMachines.listAll())).toHaveLength(3);
    expect(await namesOf(compute.disks.listByResourceGroup(group))).toHaveLength(3);
    expect(await namesOf(network.publicIPAddresses.listAll())).toHaveLength(4);
    expect(await namesOf(network.natGateways.list(group))).toHaveLength(3);
    expect(await namesOf(network.subnets.list(group, "vnet"))).toHaveLength(3);
    expect(await namesOf(network.securityRules.list(group, "nsg"))).toEqual(["api"]);
    expect(await namesOf(network.loadBalancerProbes.list(group, "api"))).toEqual(["readyz"]);
    expect(await namesOf(network.networkInterfaces.list(group))).toHaveLength(3);
    const extensions = await compute.virtualMachineExtensions.list(group, "cp-1");
    expect(extensions.value).toMatchObject([
      { name: "bootstrap", typePropertiesType: "CustomScript" },
    ]);
    expect(await namesOf(resources.resources.listByResourceGroup(group))).toContain(
      "cp-1/bootstrap",
    );

    for (const zone of zones) {
      await compute.virtualMachines.delete(group, `cp-${zone}`, soon);
      await network.networkInterfaces.beginDeleteAndWait(group, `cp-${zone}-nic`, soon);
    }
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

    expect(await network.loadBalancers.updateTags(group, "api", { tags })).toMatchObject({ tags });
    expect(await network.publicIPAddresses.updateTags(group, "api", { tags })).toMatchObject({
      tags,
    });
    expect(await network.virtualNetworks.updateTags(group, "vnet", { tags })).toMatchObject({
      tags,
      subnets: [{ name: "nodes-1" }],
    });
    expect(await compute.virtualMachines.update(group, "cp-1", { tags }, soon)).toMatchObject({
      tags,
    });
    expect(await compute.disks.update(group, "data", { tags, diskSizeGB: 16 }, soon)).toMatchObject(
      {
        tags,
        diskSizeGB: 16,
        zones: ["1"],
      },
    );
    expect(await resources.resourceGroups.update(group, { tags })).toMatchObject({
      tags,
      location,
    });
    expect(
      await identities.userAssignedIdentities.update(group, "cluster", { location, tags }),
    ).toMatchObject({ tags });

    expect(balancerWithoutTags()).toEqual(before);
    expect(machines.calls).toHaveLength(calls);
    expect(
      await all(resources.resources.list({ filter: "tagName eq 'owner' and tagValue eq 'me'" })),
    ).toHaveLength(6);
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

it("copies a disk by way of a snapshot, and refuses one that does not exist", () =>
  withSdks(async ({ compute }, { arm }) => {
    await createResources(arm, "disk");
    const copy = (name: string, sourceResourceId: string) =>
      compute.disks.createOrUpdate(
        group,
        name,
        { location, zones: ["2"], creationData: { createOption: "Copy", sourceResourceId } },
        soon,
      );
    const missing = computeId("snapshots/none");

    const snapshot = await compute.snapshots.createOrUpdate(
      group,
      "backup",
      {
        location,
        incremental: true,
        creationData: { createOption: "Copy", sourceResourceId: valid.disk[0] },
      },
      soon,
    );

    expect(snapshot).toMatchObject({ diskSizeGB: 8, completionPercent: 100, incremental: true });
    expect(await copy("copy", snapshot.id!)).toMatchObject({ diskSizeGB: 8, zones: ["2"] });
    await compute.snapshots.delete(group, "backup", soon);
    expect(await all(compute.snapshots.list())).toEqual([]);
    await expect(copy("other", missing)).rejects.toMatchObject({ statusCode: 404 });
    await expect(copy("copy", missing)).rejects.toMatchObject({ code: "PropertyChangeNotAllowed" });
  }));

it("assigns roles to identities, and lists assignments of a scope", () =>
  withSdks(async ({ identities, authorization }, { arm }) => {
    await arm.put(groupId, { location });
    const identity = await identities.userAssignedIdentities.createOrUpdate(group, "cluster", {
      location,
    });
    const name = "00000000-0000-4000-8000-00000000000a";
    const parameters = {
      principalId: identity.principalId!,
      principalType: "ServicePrincipal",
      roleDefinitionId: roleDefinition(reader),
    };

    const made = await authorization.roleAssignments.create(groupId, name, parameters);

    expect(made).toMatchObject({ scope: groupId, principalType: "ServicePrincipal" });
    const above = `/subscriptions/${account.subscriptionId}`;
    await authorization.roleAssignments.create(above, name.replace(/a$/, "b"), {
      principalId: account.objectId,
      roleDefinitionId: roleDefinition(reader),
    });
    const principals = async (filter?: string) =>
      (await all(authorization.roleAssignments.listForScope(groupId, { filter }))).map(
        ({ principalId }) => principalId,
      );
    // What is assigned above a scope counts there too.
    expect(await principals()).toEqual(
      expect.arrayContaining([identity.principalId, account.objectId]),
    );
    expect(await principals(`principalId eq '${identity.principalId}'`)).toEqual([
      identity.principalId,
    ]);
    expect(await principals(`assignedTo('${account.objectId}')`)).toEqual([account.objectId]);
    await authorization.roleAssignments.delete(above, name.replace(/a$/, "b"));
    expect(
      await all(
        authorization.roleAssignments.listForScope(`/subscriptions/${account.subscriptionId}`, {
          filter: "atScope()",
        }),
      ),
    ).toEqual([]);
    await expect(
      authorization.roleAssignments.create(groupId, name, {
        ...parameters,
        principalId: account.objectId,
      }),
    ).rejects.toMatchObject({ statusCode: 400, code: "RoleAssignmentUpdateNotPermitted" });
    await authorization.roleAssignments.delete(groupId, name);
    await identities.userAssignedIdentities.delete(group, "cluster");
    expect(await all(identities.userAssignedIdentities.listByResourceGroup(group))).toEqual([]);
  }));

it("reports an operation that fails after its PUT was accepted, with Azure's code", () =>
  withSdks(async (clients, { arm, machines }) => {
    await createNetwork(clients);
    machines.createError = new Error("no such image");

    await expect(createMachine(clients, "1")).rejects.toThrow(
      /OSProvisioningInternalError.*no such image/,
    );

    expect(arm.peek(computeId("virtualMachines/cp-1"))).toMatchObject({
      provisioningState: "Failed",
    });
  }));

it("shows a machine that is switched off, and switches it on again", () =>
  withSdks(async ({ compute }, { arm }) => {
    await createResources(arm);
    const power = async () =>
      (await compute.virtualMachines.instanceView(group, "cp-1")).statuses?.at(-1)?.code;

    await compute.virtualMachines.deallocate(group, "cp-1", soon);
    expect(await power()).toBe("PowerState/deallocated");
    await compute.virtualMachines.start(group, "cp-1", soon);
    expect(await power()).toBe("PowerState/running");
  }));

it("resizes a machine only to sizes of its hardware, unless it is deallocated", () =>
  withSdks(async ({ compute }, { arm, machines }) => {
    await createResources(arm);
    const sizes = async () =>
      (await all(compute.virtualMachines.listAvailableSizes(group, "cp-1"))).map(
        ({ name }) => name,
      );
    const resize = () =>
      compute.virtualMachines.update(
        group,
        "cp-1",
        { hardwareProfile: { vmSize: "Standard_B2as_v2" } },
        soon,
      );

    expect(await sizes()).toEqual(["Standard_D2s_v5", "Standard_D4s_v5", "Standard_D8s_v5"]);
    for (const stop of ["", "powerOff"] as const) {
      if (stop) await compute.virtualMachines[stop](group, "cp-1", soon);
      await expect(resize()).rejects.toMatchObject({
        statusCode: 409,
        code: "OperationNotAllowed",
        message: expect.stringContaining("not available in the current hardware cluster"),
      });
    }
    await compute.virtualMachines.deallocate(group, "cp-1", soon);
    expect(await sizes()).toContain("Standard_B2as_v2");
    await resize();
    const { statuses } = await compute.virtualMachines.instanceView(group, "cp-1");
    expect(statuses?.at(-1)?.code).toBe("PowerState/deallocated");
    expect(machines.calls.some((call) => call.startsWith("restart"))).toBe(false);
  }));

it("changes and deletes no extension of a machine that does not run", () =>
  withSdks(async ({ compute }, { arm }) => {
    await createResources(arm);
    const extensions = compute.virtualMachineExtensions;
    await compute.virtualMachines.deallocate(group, "cp-1", soon);

    const notRunning = {
      statusCode: 409,
      code: "OperationNotAllowed",
      message: "Cannot modify extensions in the VM when the VM is not running.",
    };
    const extension = await extensions.get(group, "cp-1", "bootstrap");
    const run = () =>
      extensions.createOrUpdate(
        ...([group, "cp-1", "bootstrap"] as const),
        { ...extension, protectedSettings: { commandToExecute: "true" } },
        soon,
      );
    await expect(run()).rejects.toMatchObject(notRunning);
    await expect(extensions.delete(group, "cp-1", "bootstrap", soon)).rejects.toMatchObject(
      notRunning,
    );
    await compute.virtualMachines.start(group, "cp-1", soon);
    await run();
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
