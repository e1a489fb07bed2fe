import * as pulumi from "@pulumi/pulumi";

import type { Lock } from "../../../components/azure/locks";
import { shownAs } from "../../../components/azure/shown";
import { existingGroupProblems, lockWarnings } from "../../../components/plan/existing-group";
import type { MachineChange } from "../../../components/plan/machine-changes";
import { Recorder, valueOf } from "../../support/record";
import { machine, subscriptionId, validSettings } from "../../support/sample";
import { clusterGroup } from "../../../components/cluster-group";
import { Roles } from "../../../components/roles";

const settings = { ...validSettings, resourceGroup: "platform" };
const groupId = `/subscriptions/${subscriptionId}/resourceGroups/platform`;
/** As a test's engine calls it. */
const stack = "organization/zoned/test";

beforeAll(() => Recorder.start());

const lock = (level: Lock["properties"]["level"]): Lock => ({
  id: `${groupId}/providers/Microsoft.Authorization/locks/keep`,
  name: "keep",
  properties: { level },
});

const replaced: MachineChange = { machine: machine.name, action: "replace", reasons: [] };

/** A resource of the group, as Azure lists it. */
const resource = (type: string, name: string, tags?: Record<string, string>) =>
  [
    shownAs(`azure-native:${type}`, name),
    { id: `${groupId}/providers/Microsoft.Network/x/${name}`, name, tags },
  ] as const;

const group = {
  azure: { groupLocation: "westeurope", isBegun: false, isOwnGroup: true, shown: new Map() },
  isKnown: false,
  locks: [] as Lock[],
  machines: [machine],
  changes: [] as MachineChange[],
  subscriptionId,
};

const absent = { azure: { ...group.azure, groupLocation: undefined as never } };

const problems = (change: Partial<typeof group>, more: Partial<typeof settings> = {}) =>
  existingGroupProblems({ ...settings, ...more }, { ...group, ...change });

const having = (...shown: ReturnType<typeof resource>[]) => ({
  azure: { ...group.azure, isOwnGroup: false, shown: new Map(shown) },
});

it("lets a group be that is there, in the region, without locks and with others' resources", () => {
  expect(problems(having(resource("network:NetworkSecurityGroup", "guard")))).toEqual([]);
});

it("asks nothing of a group of the cluster's own, before it is there and later", () => {
  expect(problems(absent, { resourceGroup: "" })).toEqual([]);
  expect(problems({}, { resourceGroup: "" })).toEqual([]);
});

it.each([
  [
    "somebody else's",
    undefined,
    /zoned-test is there already, without the tag zoned-stack=\S+test, .*set clusterName NAME\), .*set resourceGroup zoned-test\).*az tag update --operation Merge --tags zoned-stack=\S+test --resource-id \S+zoned-test$/,
  ],
  [
    "of another stack",
    { "zoned-stack": "organization/zoned/other" },
    /with the tag zoned-stack=\S+other, expected zoned-stack=\S+test, .*\(pulumi config set clusterName NAME\)$/,
  ],
])("names a group of the cluster's name that is %s", (_, tags, says) => {
  const shown = having(resource("resources:ResourceGroup", "zoned-test", tags));

  expect(problems(shown, { resourceGroup: "" })).toEqual([expect.stringMatching(says)]);
});

it("has its name in commands as a shell takes it", () => {
  const [problem] = problems(absent, { resourceGroup: "platform(weu)" });

  expect(problem).toContain("(az group create --name 'platform(weu)' --location");
});

it("names a group that is not there, and both ways on", () => {
  const [problem, ...others] = problems({ ...absent, locks: [lock("ReadOnly")] });

  expect(others).toEqual([]);
  expect(problem).toMatch(
    /az group create --name platform --location westeurope.*pulumi config rm resourceGroup/,
  );
});

it("names the region of a group that is in another one", () => {
  const azure = { ...group.azure, groupLocation: "northeurope" };

  expect(problems({ azure })).toEqual([
    expect.stringMatching(
      /is in northeurope, and location is westeurope.*pulumi config set location northeurope/,
    ),
  ]);
});

it.each([
  ["network:VirtualNetwork", "zoned-test-vnet", {}],
  ["network:NetworkSecurityGroup", "zoned-test-nsg", {}],
  ["network:RouteTable", "zoned-test-rt", {}],
  ["network:LoadBalancer", "zoned-test-api", {}],
  ["network:LoadBalancer", "zoned-test", {}],
  ["network:LoadBalancer", "zoned-test-internal", {}],
  ["network:PublicIPAddress", "zoned-test-api", {}],
  ["network:PublicIPAddress", "zoned-test-egress-1", {}],
  ["network:NatGateway", "zoned-test-egress", { egress: "single" }],
  ["network:NetworkInterface", `${machine.name}-nic`, {}],
  ["compute:VirtualMachine", machine.name, {}],
  ["privatedns:PrivateZone", "zoned-test-e708c06c.internal", { apiAccess: "private" }],
  ["managedidentity:UserAssignedIdentity", "zoned-test", {}],
  ["managedidentity:UserAssignedIdentity", "zoned-test-kubelet", { registries: ["/ids/images"] }],
  [
    "managedidentity:UserAssignedIdentity",
    "zoned-test_shop_app",
    {
      workloadIdentities: [
        { namespace: "shop", serviceAccount: "app", identityId: "", roles: [] },
        { namespace: "shop", serviceAccount: "jobs", identityId: "/theirs", roles: [] },
      ],
    },
  ],
] as const)("names a %s of others that is called %s", (type, name, more) => {
  expect(problems(having(resource(type, name)), more)).toEqual([
    expect.stringMatching(
      new RegExp(`platform has \\S+/${name}, .*zoned-stack=${stack}.* clusterName NAME.*az tag`),
    ),
  ]);
});

it.each([
  ["of this stack", { "zoned-stack": stack }, {}],
  ["that this cluster does not make", undefined, { nodeSubnets: ["/subnets/theirs"] }],
])("lets a network be %s", (_, tags, more) => {
  expect(
    problems(having(resource("network:VirtualNetwork", "zoned-test-vnet", tags)), more),
  ).toEqual([]);
});

it.each([
  ["of a living cluster", true, {}],
  ["beside a cluster without cloud provider", false, { cloudProvider: false }],
])(
  "lets balancers without the tag be that have the names of the cloud provider's %s",
  (_, isBegun, more) => {
    const names = ["zoned-test", "zoned-test-internal"];
    const { azure } = having(...names.map((name) => resource("network:LoadBalancer", name)));

    expect(problems({ azure: { ...azure, isBegun } }, more)).toEqual([]);
  },
);

it("does not let a first cluster's cloud provider take the API's balancer of a neighbour", () => {
  const theirs = { "zoned-stack": "organization/zoned/neighbour" };
  const shown = having(resource("network:LoadBalancer", "zoned-api", theirs));

  expect(problems(shown, { clusterName: "zoned-api" })).toEqual([
    expect.stringMatching(/platform has \S+\/zoned-api, .*take another name for the cluster/),
  ]);
});

it("gives a stack that has another name than when it made its cluster the command that says so to Azure", () => {
  const tags = { "zoned-stack": "organization/zoned/before" };
  const shown = having(
    resource("network:LoadBalancer", "zoned-test-api", tags),
    resource("compute:VirtualMachine", machine.name, tags),
  );

  expect(problems({ ...shown, isKnown: true })).toEqual([
    expect.stringMatching(
      new RegExp(
        `pulumi stack rename.*for id in \\S+/zoned-test-api \\S+/${machine.name}; do az tag update .*--tags zoned-stack=${stack} --resource-id \\$id; done$`,
      ),
    ),
  ]);
});

it("does not take what has the name of a machine to come for its own because others were renamed", () => {
  const own = resource("network:LoadBalancer", "zoned-test-api", { "zoned-stack": stack });
  const theirs = resource("compute:VirtualMachine", machine.name, { "zoned-stack": "theirs" });

  expect(problems({ ...having(own, theirs), isKnown: true })).toEqual([
    expect.stringMatching(/take another name/),
  ]);
});

it("does not take another stack's resource for its own", () => {
  const tags = { "zoned-stack": `${stack}-2` };

  expect(problems(having(resource("network:LoadBalancer", "zoned-test-api", tags)))).toHaveLength(
    1,
  );
});

describe.each(["platform", ""])("in a group of others or its own: '%s'", (resourceGroup) => {
  it("refuses every change under a lock that is read-only, with the command that removes it", () => {
    expect(problems({ locks: [lock("ReadOnly")] }, { resourceGroup })).toEqual([
      expect.stringMatching(
        /lock keep on \S+\/platform is ReadOnly.*az lock delete --ids \S+keep$/,
      ),
    ]);
  });

  it("refuses a change that deletes a machine under a lock against deletion, and else warns of it", () => {
    const locks = [lock("CanNotDelete")];

    expect(problems({ locks }, { resourceGroup })).toEqual([]);
    expect(lockWarnings({ locks, changes: [] })).toEqual([
      expect.stringMatching(/CanNotDelete: .*replace or remove a machine, and pulumi destroy/),
    ]);
    expect(problems({ locks, changes: [replaced] }, { resourceGroup })).toEqual([
      expect.stringMatching(new RegExp(`would delete the VM of ${machine.name}, .*az lock delete`)),
    ]);
    expect(lockWarnings({ locks, changes: [replaced] })).toEqual([]);
  });
});

describe("the cluster's group", () => {
  /** What is made in the group waits for these, and is deleted before them. */
  const awaitedBy = (output: pulumi.Output<string>): Promise<Set<pulumi.Resource>> =>
    (output as unknown as { allResources(): Promise<Set<pulumi.Resource>> }).allResources();

  it.each([true, false])(
    "of others has name and id in a preview (%s), and comes after the roles without being made",
    async (preview) => {
      const recorder = await Recorder.start({ preview });
      const plan = { settings: { ...validSettings, resourceGroup: "platform" }, subscriptionId };
      const watched = { transformations: [recorder.watch] };
      const roles = new Roles("identity", plan, watched);

      const { name, id, own } = clusterGroup(plan, roles);

      expect(await valueOf(name)).toBe("platform");
      expect(await valueOf(id)).toBe(`/subscriptions/${subscriptionId}/resourceGroups/platform`);
      for (const output of [name, id]) expect([...(await awaitedBy(output))]).toContain(roles);
      expect(own).toBeUndefined();
    },
  );
});
