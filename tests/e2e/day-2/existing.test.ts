import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { type Clients, everyId, soon } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";
import { useOwnPrograms } from "../../../tools/local-azure/machines/own-programs";

const location = "southeastasia";
/** Where others have what the cluster uses. */
const theirs = "theirs";
const contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const identityId = `${subscriptionPath}/resourceGroups/${theirs}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;

const subnetId = `${subscriptionPath}/resourceGroups/${theirs}/providers/Microsoft.Network/virtualNetworks/spoke/subnets/nodes`;

const settings = { ...fewAddOns, cloudProvider: true, identityId, nodeSubnets: [subnetId] };

/** A subnet with a security group and a NAT gateway, and a machine of somebody's at its end. */
async function makeNetwork({ network }: Clients): Promise<void> {
  const sku = { name: "Standard" };
  const guard = await network.networkSecurityGroups.beginCreateOrUpdateAndWait(
    theirs,
    "guard",
    { location, tags: { costCenter: "theirs" } },
    soon,
  );
  const address = await network.publicIPAddresses.beginCreateOrUpdateAndWait(
    theirs,
    "out",
    { location, sku, publicIPAllocationMethod: "Static", zones: ["1", "2", "3"] },
    soon,
  );
  const gateway = await network.natGateways.beginCreateOrUpdateAndWait(
    theirs,
    "out",
    { location, sku, publicIpAddresses: [{ id: address.id }] },
    soon,
  );
  await network.virtualNetworks.beginCreateOrUpdateAndWait(
    theirs,
    "spoke",
    { location, addressSpace: { addressPrefixes: ["10.1.0.0/16"] } },
    soon,
  );
  const { id } = await network.subnets.beginCreateOrUpdateAndWait(
    theirs,
    "spoke",
    "nodes",
    {
      ...{ addressPrefix: "10.1.1.0/27", defaultOutboundAccess: false },
      ...{ networkSecurityGroup: { id: guard.id }, natGateway: { id: gateway.id } },
    },
    soon,
  );
  await network.networkInterfaces.beginCreateOrUpdateAndWait(
    theirs,
    "somebody",
    {
      location,
      ipConfigurations: [
        {
          ...{ name: "one", subnet: { id } },
          ...{ privateIPAllocationMethod: "Static", privateIPAddress: "10.1.1.30" },
        },
      ],
    },
    soon,
  );
}

/** A cluster on what others have made, from its first update to its end. */
describe("a cluster on what exists already", () => {
  let cloud: LocalCloud;
  let clients: Clients;
  let before: Record<string, unknown>;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings, useOwnPrograms);
    clients = cloud.sdks();
    await clients.resources.resourceGroups.createOrUpdate(theirs, { location });
    // Another region, which an identity serves as well.
    await clients.identities.userAssignedIdentities.createOrUpdate(theirs, "kubernetes", {
      location: "northeurope",
    });
    await makeNetwork(clients);
  });
  afterAll(() => cloud?.stop());

  const identity = () => clients.identities.userAssignedIdentities.get(theirs, "kubernetes");

  /** All that Azure has, by its id. */
  async function everything(): Promise<Record<string, unknown>> {
    const read = (await everyId(clients)).map(async (id) => [id, await cloud.read(id)] as const);
    return Object.fromEntries(await Promise.all(read));
  }

  it("is refused in a network that lacks a rule, with what to ask for, and changes nothing there", async () => {
    const text = refused(await cloud.stack.preview());

    expect(text).toMatch(/DenyAllInBound .* stops inbound TCP 6443 from 203\.0\.113\.0\/24/);
    expect(text).toMatch(
      /for the owners of the network, as one text:\s+The machines .* nodes of the network spoke\. Please give us\s+1\. a rule in guard /,
    );
  });

  it("is previewed with the rights that the identity lacks, and the commands that give them", async () => {
    const { principalId } = await identity();
    await clients.network.securityRules.beginCreateOrUpdateAndWait(
      theirs,
      "guard",
      "kubernetes-api",
      {
        ...{ priority: 200, direction: "Inbound", access: "Allow", protocol: "Tcp" },
        // The NAT gateway's address is one of these too, and Azure takes none twice.
        ...{ sourceAddressPrefix: "203.0.113.0/24", sourcePortRange: "*" },
        ...{ destinationAddressPrefix: "VirtualNetwork", destinationPortRange: "6443" },
      },
      soon,
    );

    const { diagnostics } = succeeded(await cloud.stack.preview());

    expect(diagnostics.join("\n")).toMatch(
      new RegExp(
        `kubernetes lacks rights.*--assignee-object-id ${principalId} .*--role 'Network Contributor' --scope \\S+/zoned-local\\b`,
        "s",
      ),
    );
  });

  it("is made without an identity, a role, an assignment or a network of its own", async () => {
    const { principalId } = await identity();
    await clients.authorization.roleAssignments.create(
      subscriptionPath,
      "5c1b0c7e-3f0a-4a53-9d0e-2f6c3b1a7e88",
      {
        principalId: principalId!,
        principalType: "ServicePrincipal",
        roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${contributor}`,
      },
    );
    before = await everything();

    const { diagnostics } = asPlanned(await cloud.stack.up());

    expect(diagnostics.join("\n")).not.toContain("lacks rights");
    const added = Object.keys(await everything()).filter((id) => !(id in before));
    expect(added.length).toBeGreaterThan(10);
    const ofOthers =
      /ManagedIdentity|Authorization|virtualNetworks|networkSecurityGroups|routeTables|natGateways/i;
    expect(added.filter((id) => ofOthers.test(id))).toEqual([]);
  });

  it("has that identity on its control plane, and in azure.json", async () => {
    const { clientId } = await identity();
    const { identity: ofMachine } = await clients.compute.virtualMachines.get(
      "zoned-local",
      "zoned-local-cp-1",
    );
    expect(Object.keys(ofMachine!.userAssignedIdentities!)).toEqual([identityId]);

    const secret = await cloud.kubectl(
      ...["get", "secret", "azure-cloud-provider", "--namespace", "kube-system"],
      ...["--output", "jsonpath={.data.cloud-config}"],
    );
    expect(JSON.parse(Buffer.from(secret, "base64").toString())).toMatchObject({
      useManagedIdentityExtension: true,
      userAssignedIdentityID: clientId,
      tenantId: account.tenantId,
      ...{ vnetName: "spoke", vnetResourceGroup: theirs, subnetName: "nodes" },
      ...{ securityGroupName: "guard", securityGroupResourceGroup: theirs },
    });
  });

  it("has its machines at the end of the subnet, where nobody is", async () => {
    const { machines } = (await cloud.stack.outputs()) as { machines: { address: string }[] };

    expect(machines.map(({ address }) => address)).toEqual(["10.1.1.29", "10.1.1.28", "10.1.1.27"]);
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("leaves exactly what was there before, when it is destroyed", async () => {
    succeeded(await cloud.stack.destroy());

    expect(await everything()).toEqual(before);
  });

  it("gives an identity of its own the rights in that network", async () => {
    await cloud.stack.configure({ ...settings, identityId: "" });

    succeeded(await cloud.stack.up("--skip-preview"));

    const assigned = Object.keys(await everything())
      .filter((id) => !(id in before) && id.includes(`/${theirs}/`))
      .map((id) => id.replace(/^.*\/Microsoft\.Network\/(.*)\/providers\/.*$/i, "$1"));
    expect(assigned.map((id) => id.toLowerCase()).sort()).toEqual([
      "networksecuritygroups/guard",
      "virtualnetworks/spoke",
      "virtualnetworks/spoke/subnets/nodes",
    ]);
  });

  it("lets Azure's cloud controller manager expose Services there by these rights, and leaves others' tags", async () => {
    const guard = async () => {
      const { securityRules, tags } = await clients.network.networkSecurityGroups.get(
        theirs,
        "guard",
      );
      return { rules: securityRules!.map(({ name }) => name), tags };
    };
    const asked = await guard();
    // Another cluster than the one of before.
    cloud.renewKubeconfig();
    const names = ["web", "inner"];
    const address = "jsonpath={.status.loadBalancer.ingress[0].ip}";
    const file = join(cloud.state, "services.json");
    const services = names.map((name) => ({
      ...{ apiVersion: "v1", kind: "Service" },
      metadata: {
        name,
        annotations: {
          "service.beta.kubernetes.io/azure-load-balancer-internal": `${name === "inner"}`,
        },
      },
      spec: { type: "LoadBalancer", ports: [{ port: 80 }] },
    }));
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: services }));
    await cloud.kubectl("apply", "--filename", file);
    for (const name of names) {
      await cloud.kubectl("wait", `service/${name}`, "--for", address, "--timeout", "300s");
    }

    const exposed = await guard();
    expect(exposed.rules.length).toBeGreaterThan(asked.rules.length);
    expect(exposed.tags).toEqual(asked.tags);
    expect(await cloud.kubectl("get", "service/inner", "--output", address)).toMatch(/^10\.1\.1\./);

    await cloud.kubectl("delete", "service", ...names);
    expect(await guard()).toEqual(asked);
  });

  it("changes to the identity of others in place, and takes its own away with its rights", async () => {
    await cloud.stack.configure(settings);

    const { steps } = succeeded(await cloud.stack.up("--skip-preview"));

    expect(steps.filter((step) => /replace.*-(vm|membership)$/.test(step))).toEqual([]);
    const { identity: ofMachine } = await clients.compute.virtualMachines.get(
      "zoned-local",
      "zoned-local-cp-1",
    );
    expect(Object.keys(ofMachine!.userAssignedIdentities!)).toEqual([identityId]);
    const left = Object.keys(await everything()).filter((id) => !(id in before));
    expect(left.filter((id) => /ManagedIdentity|Authorization/i.test(id))).toEqual([]);
  });
});
