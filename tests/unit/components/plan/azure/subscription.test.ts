import { createServer, Server } from "node:http";
import { AddressInfo } from "node:net";

import { ResourceManager } from "../../../../../components/plan/azure/resource-manager";
import { subscriptionProblems } from "../../../../../components/plan/azure/subscription";
import { account } from "../../../../../local-azure/arm/ids";
import { serveRest } from "../../../../../local-azure/arm/rest/rest";
import { newCloud } from "../../../../support/arm/fixture";
import { subscriptionId, validSettings } from "../../../../support/sample";

const name = "zoned-test-1a2b3c.westeurope.cloudapp.azure.com";

/** An Azure in which these namespaces are not registered, and these labels not free. */
async function withAzure(
  unregistered: readonly string[],
  labels: readonly string[],
  settings: Partial<typeof validSettings> = {},
): Promise<{ readonly problems: string[]; readonly asked: string[] }> {
  const asked: string[] = [];
  const server: Server = createServer(({ url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://localhost");
    const [, path = ""] = /^\/subscriptions\/[^/]+\/providers\/(.*)$/.exec(pathname) ?? [];
    asked.push(path);
    const registrationState = unregistered.includes(path) ? "NotRegistered" : "Registered";
    const available = !labels.includes(searchParams.get("domainNameLabel") ?? "");
    const body = path.includes("/") ? { available } : { namespace: path, registrationState };
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const arm = new ResourceManager(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    "token",
  );
  try {
    const connection = { arm, subscriptionId, tenantId: "tenant" };
    const all = { ...validSettings, ...settings };
    return { problems: await subscriptionProblems(all, connection, name), asked };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

it("finds nothing where all is registered and the name is free", async () => {
  const { problems, asked } = await withAzure([], []);

  expect(problems).toEqual([]);
  expect(asked).toContain("Microsoft.Network/locations/westeurope/CheckDnsNameAvailability");
});

it("names each resource provider that is not registered, and its command", async () => {
  const { problems } = await withAzure(["Microsoft.Compute", "Microsoft.ManagedIdentity"], []);

  expect(problems).toEqual([
    expect.stringContaining("az provider register --namespace Microsoft.Compute --wait"),
    expect.stringContaining("az provider register --namespace Microsoft.ManagedIdentity --wait"),
  ]);
});

it("asks for no managed identities with a service principal, and no name without its provider", async () => {
  const servicePrincipal = { clientId: "id", clientSecret: undefined as never };
  const { problems, asked } = await withAzure(["Microsoft.Network"], [], { servicePrincipal });

  expect(problems).toHaveLength(1);
  expect(asked).toEqual(["Microsoft.Compute", "Microsoft.Network"]);
});

it("names the API's name where a public address has it", async () => {
  const { problems } = await withAzure([], ["zoned-test-1a2b3c"]);

  expect(problems).toEqual([expect.stringMatching(/API's name zoned-test-1a2b3c.*clusterName/)]);
});

it("is answered by the local Azure as well", async () => {
  const rest = await serveRest(newCloud().cloud, 0);
  const arm = new ResourceManager(`http://127.0.0.1:${rest.port}`, "token");
  try {
    const connection = {
      arm,
      subscriptionId: account.subscriptionId,
      tenantId: "",
    };
    await expect(subscriptionProblems(validSettings, connection, name)).resolves.toEqual([]);
  } finally {
    await rest.close();
  }
});
