import { ArmClient, type AzureConnection } from "../../components/azure/resource-manager";
import type { ResourceManager } from "../../tools/local-azure/arm/resource-manager";
import { account } from "../../tools/local-azure/arm/resources/resource";
import type { Served } from "../../tools/local-azure/arm/rest/listener";
import { serveRest } from "../../tools/local-azure/arm/rest/rest";

const served: Served[] = [];

afterAll(() => Promise.all(served.map((one) => one.close())));

/**
 * By which the program asks a local Azure, until the test file has ended. A token that is no identity's
 * is an owner's.
 */
export async function connectionTo(arm: ResourceManager, token = "me"): Promise<AzureConnection> {
  const server = await serveRest(arm, 0);
  served.push(server);
  return { ...account, arm: new ArmClient(`http://127.0.0.1:${server.port}`, token) };
}
