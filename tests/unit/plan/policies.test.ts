import type {
  Comparison,
  PlannedResource,
  PolicyViolation,
} from "../../../components/azure/policy-restrictions";
import { shownAs, type Shown } from "../../../components/azure/shown";
import type { MachineState } from "../../../components/azure/state";
import { newKinds, policyProblems, policyWarnings } from "../../../components/plan/policies";
import { nothing, planned } from "../../support/program";
import { subscriptionId } from "../../support/sample";

const subscription = `/subscriptions/${subscriptionId}`;
const authorization = "providers/Microsoft.Authorization";

const assignmentOf = (name: string) => `${subscription}/${authorization}/policyAssignments/${name}`;

const resource = (type: string, more: Partial<PlannedResource> = {}): PlannedResource => ({
  content: { type, name: "a" },
  apiVersion: "2024-05-01",
  ...more,
});

const violation = (
  type: string,
  comparisons: readonly Comparison[],
  name = "guardrail",
): PolicyViolation => ({
  resource: resource(type),
  assignment: assignmentOf(name),
  definition: `/${authorization}/policyDefinitions/of-${name}`,
  comparisons,
});

const untagged: Comparison = {
  expression: "tags[costCenter]",
  path: "tags[costCenter]",
  operator: "Exists",
  targetValue: "false",
};

const address = "Microsoft.Network/publicIPAddresses";
const isAddress: Comparison = {
  path: "type",
  expressionValue: address,
  operator: "In",
  targetValue: [address],
};

it("names a policy once for all types that it refuses, what it looks at and the command that satisfies it", () => {
  const problems = policyProblems({
    violations: [
      violation("Microsoft.Network/virtualNetworks", [untagged]),
      violation("Microsoft.Compute/virtualMachines", [untagged]),
    ],
  });

  expect(problems).toEqual([
    "an Azure Policy does not allow Microsoft.Network/virtualNetworks, Microsoft.Compute/virtualMachines: " +
      'it looks at tags[costCenter], which is missing, by Exists "false". ' +
      "Set tags.costCenter to what it allows (pulumi config set --path tags.costCenter VALUE); " +
      "or have whoever owns the policy exempt this cluster (az policy exemption create). " +
      `See policy guardrail: az policy assignment show --name guardrail --scope ${subscription}; ` +
      "az policy definition show --name of-guardrail",
  ]);
});

it("names every policy", () => {
  const violations = [violation(address, [untagged]), violation(address, [isAddress], "closed")];

  expect(policyProblems({ violations })).toEqual([
    expect.stringContaining("policy guardrail"),
    expect.stringContaining("policy closed"),
  ]);
});

it("names the way on without public addresses where these are not allowed", () => {
  const [problem] = policyProblems({ violations: [violation(address, [isAddress])] });

  expect(problem).toContain(`it looks at type, which is "${address}", by In ["${address}"]`);
  expect(problem).toContain("pulumi config set apiAccess private; pulumi config set egress none");
});

it.each([
  ["Microsoft.Network/virtualNetworks", "--path 'nodeSubnets[0]' ID"],
  ["Microsoft.Network/networkSecurityGroups", "--path 'nodeSubnets[0]' ID"],
  ["Microsoft.Network/routeTables", "--path 'nodeSubnets[0]' ID"],
  ["Microsoft.Network/privateDnsZones", "apiName NAME"],
  [
    "Microsoft.ManagedIdentity/userAssignedIdentities",
    "identityId ID; pulumi config set kubeletIdentityId ID",
  ],
  ["Microsoft.Resources/subscriptions/resourceGroups", "resourceGroup NAME"],
])("names what takes one that is there where %s are not allowed", (type, command) => {
  const isType = { ...isAddress, expressionValue: type, targetValue: [type] };

  const [problem] = policyProblems({ violations: [violation(type, [isType])] });

  expect(problem).toContain(`(pulumi config set ${command})`);
});

it.each([
  ["costCenter", "Microsoft.Network/privateDnsZones", /Set tags\.costCenter to what it allows/],
  ["Cost Center", "Microsoft.Compute/disks", /Set tags\["Cost Center"\] to what it allows/],
  ["Cost Center", "Microsoft.Network/privateDnsZones", /Set apiName to a name in DNS of your own/],
  [
    "Cost Center",
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
    /Set apiName to a name in DNS of your own/,
  ],
])("names what gives the tag %s to %s, or does without that", (tag, type, way) => {
  const isTag = { path: `tags[${tag}]`, targetValue: false };

  const [problem] = policyProblems({ violations: [violation(type, [isTag])] });

  expect(problem).toMatch(way);
});

it("leaves an exemption alone where no setting decides it", () => {
  const forwards = { path: "properties.enableIPForwarding", expressionValue: true };

  const [problem] = policyProblems({
    violations: [violation("Microsoft.Network/networkInterfaces", [forwards])],
  });

  expect(problem).toMatch(/\. Have whoever owns the policy exempt/);
});

it("warns alone of a policy that looks at what is not known beforehand", () => {
  const hosts = { path: "properties.securityProfile.encryptionAtHost", targetValue: true };
  const answer = { violations: [violation("Microsoft.Compute/virtualMachines", [hosts])] };

  expect(policyProblems(answer)).toEqual([]);
  expect(policyWarnings(answer)).toEqual([
    expect.stringMatching(
      /^An Azure Policy may not allow Microsoft\.Compute\/virtualMachines.*encryptionAtHost, which is missing.*Set encryptionAtHost to what it allows \(pulumi config set encryptionAtHost true\); or have/,
    ),
  ]);
});

it.each([
  ["403 AuthorizationFailed: no", /checkPolicyRestrictions\/read, which Reader has/],
  [
    "409 MissingSubscriptionRegistration: not registered",
    /az provider register --namespace Microsoft\.PolicyInsights/,
  ],
  ["429 TooManyRequests: later", /Run pulumi preview again when Azure answers/],
  ["fetch failed", /Run pulumi preview again when Azure answers/],
])("says in one warning why it is not known, and what helps: %s", (got, says) => {
  const unread = `Azure Resource Manager did not do POST https://management.azure.com/a: ${got}`;
  const [warning, ...others] = policyWarnings({ violations: [], unread });

  expect(others).toEqual([]);
  expect(warning).toContain(`${unread}. `);
  expect(warning).toMatch(says);
  expect(warning!.match(/Reader|az provider|preview again/g)).toHaveLength(1);
});

it("says nothing where no policy refuses anything", () => {
  expect([...policyProblems({ violations: [] }), ...policyWarnings({ violations: [] })]).toEqual(
    [],
  );
});

describe("a first plan", () => {
  const saidOf = async (status: number, body: object) => {
    const { plan, says } = await planned({}, { ...nothing, ofPolicies: { status, body } });
    return { isMade: plan !== undefined, says };
  };

  it("is refused where a policy would refuse what it makes", async () => {
    const policyEvaluations = [
      {
        policyInfo: { policyAssignmentId: assignmentOf("guardrail") },
        evaluationResult: "NonCompliant",
        evaluationDetails: { evaluatedExpressions: [untagged] },
        effectDetails: { policyEffect: "Deny" },
      },
    ];

    const { isMade, says } = await saidOf(200, { contentEvaluationResult: { policyEvaluations } });

    expect(isMade).toBe(false);
    expect(says).toMatch(/an Azure Policy does not allow .*virtualNetworks, .*policy guardrail/);
  });

  it("goes on with one warning where the login may not ask", async () => {
    const error = { code: "AuthorizationFailed", message: "no" };

    const { isMade, says } = await saidOf(403, { error });

    expect(isMade).toBe(true);
    expect(says.match(/It is not known which Azure Policies/g)).toHaveLength(1);
  });
});

describe("newKinds", () => {
  const machine = "Microsoft.Compute/virtualMachines";
  const all = [
    resource("Microsoft.Resources/subscriptions/resourceGroups"),
    resource("Microsoft.Network/virtualNetworks"),
    resource("Microsoft.Network/virtualNetworks/subnets", {
      parent: "/groups/g/providers/Microsoft.Network/virtualNetworks/A",
    }),
    resource(address),
    resource(machine, { standsFor: { size: "Standard_D2s_v5", names: ["b", "a"] } }),
    resource(machine, { standsFor: { size: "Standard_D8s_v5", names: ["a"] } }),
    resource(machine, { standsFor: { size: "Standard_D2s_v5", names: ["c"] } }),
    resource("Microsoft.Storage/storageAccounts/blobServices/containers", {
      parent: "/groups/g/providers/Microsoft.Storage/storageAccounts/new/blobServices/default",
    }),
  ];
  const shown: Shown = new Map([
    [
      shownAs("azure-native:network:VirtualNetwork", "a"),
      { name: "a", type: "Microsoft.Network/VirtualNetworks" },
    ],
  ]);
  const machines = new Map([["a", { size: "standard_d2s_v5" } as MachineState]]);

  it("has all of a first update", () => {
    expect(newKinds(all, { isBegun: false, shown: new Map(), machines: new Map() })).toEqual(all);
  });

  it("has of a later one the types, the sizes and the machines that are new, and parts of what is new", () => {
    const later = newKinds(all, { isBegun: true, shown, machines });

    expect(later).toEqual([all[3], all[5], all[6], all[7]]);
  });
});
