import { getGroupLocks, scopeOf } from "../../../components/azure/group-locks";
import { ArmClient } from "../../../components/azure/resource-manager";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/ids";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { validSettings } from "../../support/sample";

const location = "westeurope";
const idOf = (group: string) => `${subscriptionPath}/resourceGroups/${group}`;
const guardIn = (group: string) =>
  `${idOf(group)}/providers/Microsoft.Network/networkSecurityGroups/guard`;

/** Scopes of the locks that hold for a cluster, of these that there are. */
async function locksOf(resourceGroup: string, isThere: boolean, scopes: readonly string[]) {
  const { arm } = newArm();
  for (const group of ["zoned-test", "platform", "other"].slice(isThere ? 0 : 1)) {
    await arm.put(idOf(group), { location });
    await arm.put(guardIn(group), { location });
  }
  for (const scope of scopes) {
    await arm.put(`${scope}/providers/Microsoft.Authorization/locks/keep`, {
      level: "CanNotDelete",
    });
  }
  const rest = await serveRest(arm, 0);
  const { subscriptionId } = account;
  const client = new ArmClient(`http://127.0.0.1:${rest.port}`, "token");
  const connection = { arm: client, subscriptionId, tenantId: "" };
  try {
    const found = await getGroupLocks({ ...validSettings, resourceGroup }, isThere, connection);
    return found.map(scopeOf);
  } finally {
    await rest.close();
  }
}

it.each([
  ["a group of its own", "", "zoned-test"],
  ["a group of others", "platform", "platform"],
])("holds in %s, or above it, and not beside it nor on one resource", async (_, named, group) => {
  const scopes = [subscriptionPath, idOf(group)];
  const besides = [idOf("other"), guardIn(group)];

  expect((await locksOf(named, true, [...scopes, ...besides])).sort()).toEqual(scopes);
});

it("holds in the subscription, before there is a group", async () => {
  expect(await locksOf("", false, [subscriptionPath, idOf("other")])).toEqual([subscriptionPath]);
});
