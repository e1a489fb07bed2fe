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

const location = "southeastasia";
/** Where others have things too. */
const resourceGroup = "platform";
const groupId = `${subscriptionPath}/resourceGroups/${resourceGroup}`;
const lockId = `${groupId}/providers/Microsoft.Authorization/locks/keep`;

const settings = {
  ...fewAddOns,
  resourceGroup,
  cloudProvider: true,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }],
  protect: true,
};

/** A cluster in a resource group of others, from its first preview to its end. */
describe("a cluster in a resource group that exists already", () => {
  let cloud: LocalCloud;
  let clients: Clients;
  let before: readonly string[];

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    clients = cloud.sdks();
  });
  afterAll(() => cloud?.stop());

  const securityGroup = (name: string) =>
    clients.network.networkSecurityGroups.beginCreateOrUpdateAndWait(
      resourceGroup,
      name,
      { location },
      soon,
    );

  it("is refused while the group is not there, with the command that makes it", async () => {
    expect(refused(await cloud.stack.preview())).toMatch(
      /resourceGroup is platform, .* no such group.*az group create --name platform --location southeastasia/,
    );
  });

  it("is refused in a group that somebody else has made with the cluster's name", async () => {
    const own = "zoned-local";
    await clients.resources.resourceGroups.createOrUpdate(own, { location });
    await cloud.stack.configure({ ...settings, resourceGroup: "" });

    expect(refused(await cloud.stack.preview())).toMatch(
      /resource group zoned-local is there already, without the tag zoned-stack=\S+\/zoned\/local, /,
    );
    await clients.resources.resourceGroups.beginDeleteAndWait(own, soon);
    await cloud.stack.configure(settings);
  });

  it("is refused beside a lock and a resource of others with one of its names, both at once", async () => {
    await clients.resources.resourceGroups.createOrUpdate(resourceGroup, { location });
    await securityGroup("guard");
    before = await everyId(clients);
    await securityGroup("zoned-local-nsg");
    await cloud.lock(lockId, "ReadOnly");

    const text = refused(await cloud.stack.preview());

    expect(text).toMatch(
      /the lock keep on \S+\/platform is ReadOnly.*az lock delete --ids \S+keep/,
    );
    expect(text).toMatch(
      /platform has \S+\/zoned-local-nsg, .* without the tag zoned-stack=\S+\/zoned\/local/,
    );
  });

  it("is made beside what others have there, without a group of its own", async () => {
    await cloud.unlock(lockId);
    await clients.network.networkSecurityGroups.beginDeleteAndWait(
      resourceGroup,
      "zoned-local-nsg",
      soon,
    );

    asPlanned(await cloud.stack.up());

    const { resourceGroup: output } = (await cloud.stack.outputs()) as { resourceGroup: string };
    expect(output).toBe(resourceGroup);
    const groups = (await everyId(clients)).filter((id) => !id.includes("/providers/"));
    expect(groups.map((id) => id.toLowerCase())).toEqual([groupId.toLowerCase()]);
    const nodes = await cloud.get<{ metadata: { name: string } }>("nodes");
    expect(nodes).toHaveLength(2);
  });

  it("has its tag on what it has made, and none on what it has not", async () => {
    const tagged: string[] = [];
    const untagged: string[] = [];
    for await (const { name, managedBy, tags } of clients.resources.resources.list()) {
      // Azure makes a machine's disk, and deletes it with the machine.
      if (managedBy !== undefined) continue;
      (tags?.["zoned-stack"]?.endsWith("/zoned/local") ? tagged : untagged).push(name!);
    }
    expect(untagged).toEqual(["guard"]);
    expect(tagged).toContain("zoned-local-vnet");
  });

  it("gives the group to the cloud provider", async () => {
    const secret = await cloud.kubectl(
      ...["get", "secret", "azure-cloud-provider", "--namespace", "kube-system"],
      ...["--output", "jsonpath={.data.cloud-config}"],
    );

    expect(JSON.parse(Buffer.from(secret, "base64").toString())).toMatchObject({
      resourceGroup,
      vnetResourceGroup: resourceGroup,
      tagsMap: { "zoned-stack": expect.stringMatching(/\/zoned\/local$/) },
    });
  });

  it("changes nothing by a second update, and is well by the doctor", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));

    expect((await cloud.doctor()).code).toBe(0);
  });

  it("says what a lock keeps from being deleted, and refuses a change that would", async () => {
    await cloud.lock(lockId, "CanNotDelete");
    const { diagnostics } = succeeded(await cloud.stack.preview());
    expect(diagnostics.join("\n")).toMatch(
      /keep on \S+ is CanNotDelete: .* and pulumi destroy\. .*az lock delete/,
    );

    await cloud.stack.configure({ ...settings, workerPools: [] });
    const text = refused(await cloud.stack.preview());

    expect(text).toMatch(
      /CanNotDelete, and this change would delete the VM of zoned-local-workers-1/,
    );
    await cloud.unlock(lockId);
  });

  it("stays in its group", async () => {
    await cloud.stack.configure({ ...settings, resourceGroup: "" });

    expect(refused(await cloud.stack.preview())).toMatch(
      /resourceGroup is none, and this stack's cluster was made with platform.*\(pulumi config set resourceGroup platform\)/,
    );
    await cloud.stack.configure(settings);
  });

  it("is kept by protect, in a group of others too", async () => {
    const machines = `${groupId}/providers/Microsoft.Compute/virtualMachines`;

    expect(refused(await cloud.stack.destroy())).toMatch(/protect/);

    expect(await cloud.read(machines)).toMatchObject({
      value: [expect.anything(), expect.anything()],
    });
  });

  it("leaves exactly what others had there, when it is destroyed, and drains nothing for it", async () => {
    await cloud.stack.unprotect();
    await cloud.takingTime(0.05);

    const { stdout } = succeeded(await cloud.stack.destroy());

    expect(await everyId(clients)).toEqual(before);
    expect(stdout).not.toMatch(/draining|evict/i);
  });
});
