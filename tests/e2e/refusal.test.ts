import { RoleAssignment } from "@pulumi/azure-native/authorization";
import { VirtualMachine } from "@pulumi/azure-native/compute";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";
import { LocalWorkspace } from "@pulumi/pulumi/automation";

import { explainRefusals } from "../../components/azure/refusals";
import { Fault } from "../../tools/local-azure/arm/faults";
import { account, subscriptionPath } from "../../tools/local-azure/arm/resources/resource";
import { machine, validSettings } from "../support/sample";
import { LocalCloud } from "../../tools/lab/local-cloud";

let cloud: LocalCloud;
beforeAll(async () => {
  cloud = await LocalCloud.start("local");
  process.env["PATH"] = cloud.environment()["PATH"];
});
afterEach(() => jest.restoreAllMocks());
afterAll(() => cloud?.stop());

const makeMachine = (): void =>
  void new VirtualMachine("vm", {
    resourceGroupName: validSettings.clusterName,
    location: validSettings.location,
    vmName: machine.name,
  });

const makeGroup = (): void =>
  void new ResourceGroup("cluster", {
    resourceGroupName: validSettings.clusterName,
    location: validSettings.location,
  });

/**
 * What the program says when Azure refuses a resource. The program runs in this process: the
 * language host that is built for rehearsals is too old to hand hooks on.
 */
async function saidOf(
  make: () => void,
  fault?: Partial<Fault>,
): Promise<{ said: string; engine: string }> {
  const said = jest.spyOn(pulumi.log, "error").mockImplementation(async () => undefined);
  const stack = await LocalWorkspace.createOrSelectStack(
    {
      stackName: "refused",
      projectName: "refused",
      program: async () => {
        await explainRefusals(validSettings);
        make();
      },
    },
    { envVars: cloud.environment() },
  );
  if (fault) await cloud.fault({ method: "PUT", id: `virtualMachines/${machine.name}$`, ...fault });
  const engine = await stack.up().then(
    () => "it went on",
    (error: Error) => error.message,
  );
  await cloud.clearFaults();
  return { said: said.mock.calls.map(([text]) => text).join("\n"), engine };
}

it("says beside Azure's own words which size and zone had no room, and what to set", async () => {
  const { said, engine } = await saidOf(makeMachine, {
    code: "ZonalAllocationFailed",
    message: "No capacity.",
  });

  expect(engine).toContain("No capacity.");
  expect(said).toContain("zoned-test-cp-1: Azure has no room for another Standard_D2s_v5");
  expect(said).toContain("in zone 1 of westeurope");
  expect(said).toContain("pulumi config set controlPlaneSize SIZE");
});

it("says of any resource which policy has refused it", async () => {
  const id = `${subscriptionPath}/providers/Microsoft.Authorization/policyAssignments/tags`;
  await cloud.assign(id, "96670d01-0a4d-4649-9c89-2d3abc0a5025", { tagName: "costCenter" });

  const { said, engine } = await saidOf(makeGroup);

  expect(engine).toContain("was disallowed by policy");
  expect(said).toContain("azure-native:resources:ResourceGroup cluster: an Azure Policy");
  expect(said).toContain(
    `See policy tags: az policy assignment show --name tags --scope ${subscriptionPath}; ` +
      "az policy definition show --name 96670d01-0a4d-4649-9c89-2d3abc0a5025",
  );
});

it("assigns a role once all of Azure knows whom to", async () => {
  const reader = "acdd72a7-3385-48ef-bd42-f606fba81ae7";
  const assign = () =>
    void new RoleAssignment("reads", {
      ...{ scope: subscriptionPath, principalId: account.objectId },
      principalType: "ServicePrincipal",
      roleAssignmentName: "11111111-2222-3333-4444-555555555555",
      roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${reader}`,
    });

  const told = jest.spyOn(pulumi.log, "info").mockImplementation(async () => undefined);

  const { said, engine } = await saidOf(assign, {
    ...{ id: "roleAssignments/", status: 400, code: "PrincipalNotFound", times: 2 },
  });

  expect([engine, said]).toEqual(["it went on", ""]);
  expect(told.mock.calls).toEqual([[expect.stringContaining('Code="PrincipalNotFound"')]]);
});

it("adds nothing to what it does not know", async () => {
  const { said, engine } = await saidOf(makeMachine, { code: "Boom", message: "Something else." });

  expect(engine).toContain("Something else.");
  expect(said).toBe("");
});
