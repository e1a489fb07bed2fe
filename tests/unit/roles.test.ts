import { ArmClient } from "../../components/azure/resource-manager";
import { Roles, takenRoles } from "../../components/roles";
import { account, subscriptionPath } from "../../tools/local-azure/arm/resources/ids";
import { serveRest } from "../../tools/local-azure/arm/rest/rest";
import { newArm } from "../../tools/local-azure/tests/support/arm/fixture";
import { Recorder } from "../support/record";
import { validSettings } from "../support/sample";

const { subscriptionId } = account;
const mine = "organization/zoned/test";

/** What a first update of this stack says of the roles that are there, as this program has made them. */
async function saidOf(description: (text: string) => string, more = {}): Promise<string[]> {
  const recorder = await Recorder.start();
  new Roles(
    "identity",
    { settings: validSettings, subscriptionId },
    { transformations: [recorder.watch] },
  );
  const { arm } = newArm();
  for (const { inputs } of await recorder.of("azure-native:authorization:RoleDefinition")) {
    const { scope: _, roleDefinitionId, ...role } = inputs;
    await arm.put(
      `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${roleDefinitionId}`,
      { ...role, description: description(role["description"]) },
    );
  }
  const rest = await serveRest(arm, 0);
  const client = new ArmClient(`http://127.0.0.1:${rest.port}`, "token");
  try {
    return await takenRoles({ ...validSettings, ...more }, { ...account, arm: client });
  } finally {
    await rest.close();
  }
}

const ofOther = (text: string) => text.replace(mine, "organization/zoned/other");

it("names roles of another stack's cluster with the same name, and what to set", async () => {
  expect(await saidOf(ofOther)).toEqual([
    expect.stringMatching(
      /^clusterName is zoned-test, .* of stack organization\/zoned\/other: .*\(pulumi config set clusterName NAME\)$/,
    ),
  ]);
});

it.each<[string, (text: string) => string, object]>([
  ["of this stack, as an interrupted update leaves them", (text) => text, {}],
  ["of an older release", (text) => text.replace(` Of stack ${mine}.`, ""), {}],
  ["that the cluster does not make", ofOther, { identityId: "/ids/theirs" }],
  ["of a cluster of another name", ofOther, { clusterName: "zoned-prod" }],
])("lets roles be %s", async (_, description, more) => {
  expect(await saidOf(description, more)).toEqual([]);
});
