import {
  explained,
  explainedAssignment,
  explainedCredential,
  explainedPolicy,
  passes,
} from "../../../components/azure/refusals";
import { machinesOf } from "../../../components/settings/topology";
import { validSettings } from "../../support/sample";

describe("machine refusal", () => {
  const machines = machinesOf(validSettings);
  const controlPlane = machines[1]!;
  const worker = machines.find(({ role }) => role === "worker")!;

  /** As azure-native hands on what Azure says, at once or at the end of an operation. */
  const atOnce = (code: string, message: string) =>
    `Status=409 Code="${code}" Message="${message}"`;
  const later = (code: string, message: string) =>
    `RESPONSE 200: 200 OK\nERROR CODE: ${code}\n${JSON.stringify({ error: { code, message } }, null, 2)}`;

  it.each([
    ["ZonalAllocationFailed", "at the moment"],
    ["AllocationFailed", "at the moment"],
    ["OverconstrainedZonalAllocationRequest", "at the moment"],
    ["OverconstrainedAllocationRequest", "at the moment"],
    ["SkuNotAvailable", "this subscription cannot have size Standard_D2s_v5"],
    ["NotAvailableForSubscription", "this subscription cannot have size Standard_D2s_v5"],
    ["QuotaExceeded", "az vm list-usage -l westeurope"],
  ])("says of %s which size and zone it is about, and what to set", (code, says) => {
    for (const error of [atOnce(code, "…"), later(code, "…")]) {
      const text = explained(controlPlane, validSettings, [error]);

      expect(text).toMatch(/^zoned-test-cp-2: /);
      expect(text).toContain(says);
      expect(text).toMatch(/Standard_D2s_v5 in zone 2/);
      expect(text).toContain("westeurope");
      expect(text).toContain("pulumi config set controlPlaneSize SIZE");
      expect(text).toContain("run pulumi up again");
    }
  });

  it("names the machine to look at for somebody else's custom script extension", () => {
    const message = "Multiple VMExtensions per handler not supported for OS type 'Linux'.";

    expect(explained(worker, validSettings, [atOnce("BadRequest", message)])).toMatch(
      new RegExp(
        `^${worker.name}: .*az vm extension list --resource-group zoned-test --vm-name ${worker.name} `,
        "s",
      ),
    );
  });

  it("names the pool's setting for a worker", () => {
    expect(explained(worker, validSettings, [atOnce("SkuNotAvailable", "…")])).toContain(
      "pulumi config set --path 'workerPools[0].size' SIZE",
    );
  });

  describe("of a spot machine", () => {
    const spot = { ...worker, spot: { evictionPolicy: "Delete" as const, maxPrice: 0.01 } };
    const price =
      "Unable to perform operation 'Create VM' since the provided max price '0.01 USD' is lower than the current spot price '0.02 USD'";

    it.each([
      [
        "SkuNotAvailable",
        "…",
        /no capacity to spare .*pulumi up --continue-on-error.*\[0\]\.size' SIZE.*\[0\]\.spot'/s,
      ],
      ["ZonalAllocationFailed", "…", /no capacity to spare/],
      [
        "OperationNotAllowed",
        price,
        /costs more than its pool's maxPrice now.*pulumi up --continue-on-error.*\[0\]\.spot\.maxPrice'/s,
      ],
      [
        "OperationNotAllowed",
        "Operation could not be completed as it results in exceeding approved LowPriorityCores quota.",
        /^(?!.*another family).*lowPriorityCores.*pulumi up again.*\[0\]\.size' SIZE.*\[0\]\.count' COUNT.*\[0\]\.spot'/s,
      ],
      ["QuotaExceeded", "…", /lowPriorityCores/],
    ])("%s says what it means, and the ways on", (code, message, says) => {
      expect(explained(spot, validSettings, [atOnce(code, message)])).toMatch(says);
      expect(explained(worker, validSettings, [atOnce(code, message)]) ?? "").not.toMatch(says);
    });
  });

  it("takes OperationNotAllowed for a quota only where Azure speaks of one", () => {
    const quota =
      "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.";

    for (const error of [atOnce, later].map((one) => one("OperationNotAllowed", quota)))
      expect(explained(controlPlane, validSettings, [error])).toContain("vCPU quota");
    expect(
      explained(controlPlane, validSettings, [
        atOnce("OperationNotAllowed", "The disk is being used."),
      ]),
    ).toBeUndefined();
  });

  it("leaves everything else to Azure's own words", () => {
    expect(
      explained(controlPlane, validSettings, [atOnce("InvalidParameter", "…")]),
    ).toBeUndefined();
  });
});

it("a region without federated credentials is named as such, with the way on, and nothing else is", () => {
  const what = "azure-native:managedidentity:FederatedIdentityCredential pods-shop_app";
  const refusal =
    'Status=405 Code="MethodNotAllowed" Message="The request format was unexpected: Support for federated identity credentials not enabled."';

  expect(explainedCredential(what, ["something before", refusal])).toMatch(
    /^azure-native:\S+ pods-shop_app: .*region.*az identity create .*--location REGION.*identityId.*run pulumi up again\.$/s,
  );
  expect(explainedCredential(what, ['Status=405 Code="MethodNotAllowed"'])).toBeUndefined();
});

it.each([
  ["RoleAssignment", "PrincipalNotFound", true],
  ["RoleAssignment", "RoleDefinitionDoesNotExist", true],
  ["RoleAssignment", "AuthorizationFailed", false],
  ["RoleDefinition", "RoleDefinitionHasAssignments", true],
  // Of a role that was made a moment ago: asked again, azure-native would find it there already.
  ["RoleDefinition", "RoleDefinitionDoesNotExist", false],
])("a %s is asked for again after %s: %s, for some minutes", (type, code, isAgain) => {
  const token = `azure-native:authorization:${type}`;
  const refusal = `Status=400 Code="${code}" Message="…"`;

  expect(passes(token, [refusal])).toBe(isAgain);
  expect(passes(token, ["something since", refusal])).toBe(false);
  expect(passes(token, Array(18).fill(refusal))).toBe(false);
});

it("a role that somebody else has assigned is named with the command that takes that away, and nothing else is", () => {
  const inputs = {
    principalId: "the-principal",
    roleDefinitionId: "/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/a-guid",
    scope: "/subscriptions/s/resourceGroups/their (shop)",
  };
  const refusal =
    'Status=409 Code="RoleAssignmentExists" Message="The role assignment already exists."';

  expect(explainedAssignment("a role", [refusal], inputs)).toMatch(
    /^a role: somebody else .*az role assignment delete --assignee the-principal --role a-guid --scope '\/subscriptions\/s\/resourceGroups\/their \(shop\)'\. Then run pulumi up/s,
  );
  expect(
    explainedAssignment("a role", ['Status=400 Code="PrincipalNotFound"'], inputs),
  ).toBeUndefined();
});

describe("policy refusal", () => {
  const subscription = "/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11";
  const group = "/providers/Microsoft.Management/managementGroups/landing-zones";
  const authorization = "providers/Microsoft.Authorization";
  const assignment = `${subscription}/${authorization}/policyAssignments/01dcd3c3aa91`;
  const definition = `/${authorization}/policyDefinitions/871b6d14-10aa-478d-b590-94f262ecfa99`;

  /** What Azure's message is where the assignment has none of its own for people. */
  const identified =
    "Resource 'zoned-dev' was disallowed by policy. Policy identifiers: '" +
    JSON.stringify([
      {
        policyAssignment: { name: "Tags of everything", id: assignment },
        policyDefinition: { name: "Require a tag", id: definition },
      },
      {
        policyAssignment: {
          name: "Baseline",
          id: `${group}/${authorization}/policyAssignments/base`,
        },
        policyDefinition: {
          name: "Regions",
          id: `${group}/${authorization}/policyDefinitions/regions`,
        },
        policySetDefinition: {
          name: "All of it",
          id: `${group}/${authorization}/policySetDefinitions/all`,
          version: "1.0.0",
        },
      },
    ]) +
    "'.";

  const comparison = (path: string, value: unknown, operator: string, target: unknown) => ({
    result: "True",
    expressionKind: "Field",
    expression: path,
    path,
    expressionValue: value,
    targetValue: target,
    operator,
  });

  /** Azure's whole answer where it has, as the provider prints it at the end of an operation. */
  const whole = JSON.stringify({
    error: {
      code: "RequestDisallowedByPolicy",
      target: "zoned-dev-cp-1",
      message:
        "Resource 'zoned-dev-cp-1' was disallowed by policy. Reasons: 'Only in America'. See error details for policy resource IDs.",
      additionalInfo: [
        {
          type: "PolicyViolation",
          info: {
            evaluationDetails: {
              evaluatedExpressions: [
                comparison(
                  "type",
                  "Microsoft.Compute/virtualMachines",
                  "Equals",
                  "Microsoft.Compute/virtualMachines",
                ),
                comparison("location", "westeurope", "NotIn", ["eastus", "westus"]),
              ],
            },
            policyDefinitionId: definition,
            policyDefinitionDisplayName: "Allowed locations",
            policyAssignmentId: assignment,
            policyAssignmentDisplayName: "Regions of ours",
            policyDefinitionEffect: "deny",
          },
        },
      ],
    },
  });

  const atOnce = (message: string) =>
    `Status=403 Code="RequestDisallowedByPolicy" Message="${message}"`;
  const later = `RESPONSE 200: 200 OK\nERROR CODE: RequestDisallowedByPolicy\n${whole}`;

  const what = "azure-native:resources:ResourceGroup cluster";
  const of = (error: string) => explainedPolicy(what, ["something before", error])!;

  it.each([
    ["as Azure wrote it", identified],
    ["with escaped quotes", identified.replaceAll('"', '\\"')],
    ["with quotes escaped twice", identified.replaceAll('"', '\\\\\\"')],
  ])("names each policy and where its rule is, by a message %s", (_, message) => {
    const text = of(atOnce(message));

    expect(text).toMatch(/^azure-native:resources:ResourceGroup cluster: an Azure Policy does not/);
    expect(text).toContain(
      `See policy Tags of everything: az policy assignment show --name 01dcd3c3aa91 --scope ${subscription}; ` +
        "az policy definition show --name 871b6d14-10aa-478d-b590-94f262ecfa99\n",
    );
    expect(text).toContain(
      `See policy Baseline: az policy assignment show --name base --scope ${group}; ` +
        "az policy definition show --name regions --management-group landing-zones\n",
    );
    expect(text).toContain("run pulumi up again");
    expect(text).not.toContain("activity-log");
  });

  it("says what the policy says, what it looked at, and which setting decides that", () => {
    const text = of(later);

    expect(text).toContain("The policy says: Only in America\n");
    expect(text).toContain(`--name 01dcd3c3aa91 --scope ${subscription}`);
    expect(text).toContain(
      'It looked at location, which is "westeurope", by NotIn ["eastus","westus"].\n',
    );
    expect(text).not.toContain("It looked at type");
    expect(text).toContain("Set location to what it allows");
  });

  it.each([
    ["Microsoft.Compute/virtualMachines/sku.name", "controlPlaneSize or workerPools"],
    [
      "Microsoft.Compute/virtualMachines/storageProfile.osDisk.managedDisk.storageAccountType",
      "osDiskSku",
    ],
  ])("knows that %s is decided by %s", (path, setting) => {
    const looked = later.replace('"path":"location"', `"path":"${path}"`);

    expect(of(looked)).toContain(`Set ${setting} to what it allows`);
  });

  it("knows a tag that is missing, and public addresses, by what decides them", () => {
    const missing = { ...comparison("tags[costCenter]", undefined, "Exists", "false") };
    const address = "Microsoft.Network/publicIPAddresses";
    const looking = (one: object) =>
      of(`RequestDisallowedByPolicy ${JSON.stringify({ evaluatedExpressions: [one] })}`);

    const ofTag = looking(missing);
    expect(ofTag).toContain('It looked at tags[costCenter], which is missing, by Exists "false".');
    expect(ofTag).toContain(
      "Set tags.costCenter to what it allows (pulumi config set --path tags.costCenter VALUE)",
    );
    expect(looking(comparison("type", address, "In", [address]))).toContain(
      "Set apiAccess to private and egress to none",
    );
  });

  it.each([
    "Resource 'zoned-dev' was disallowed by policy. Reasons: 'Only in America'. See error details for policy resource IDs.",
    "Resource 'zoned-dev' was disallowed by policy. Policy identifiers: ''.",
  ])("says where the policy is written down when Azure does not name it: %s", (message) => {
    expect(of(atOnce(message))).toContain("az monitor activity-log list --status Failed");
  });

  it("knows the message of before, which has the definition alone", () => {
    const message = `The resource action 'Microsoft.Network/publicIpAddresses/write' is disallowed by one or more policies. Policy identifier(s): '${definition}'.`;

    expect(of(atOnce(message))).toContain(
      "See policy 871b6d14-10aa-478d-b590-94f262ecfa99: az policy definition show --name 871b6d14",
    );
  });

  it("has a person log in with multi-factor authentication, which Microsoft asks and nobody exempts", () => {
    const text = of(
      atOnce(
        "Resource 'zoned-dev' was disallowed by policy. Reasons: 'MFA is required'. See error details for policy resource IDs.",
      ),
    );

    expect(text).toMatch(/^azure-native:resources:ResourceGroup cluster: .*az logout; az login/);
    expect(text).not.toContain("exempt");
  });

  it("leaves everything else to others", () => {
    const other = 'Status=403 Code="AuthorizationFailed" Message="does not have authorization"';

    expect(explainedPolicy(what, [other])).toBeUndefined();
  });
});
