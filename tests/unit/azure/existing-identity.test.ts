import { createServer } from "node:http";

import { getExistingIdentity } from "../../../components/azure/existing-identity";
import { ArmClient } from "../../../components/azure/resource-manager";
import { listen } from "../../support/listen";
import { subscriptionId, validSettings } from "../../support/sample";

const identityId = `/subscriptions/${subscriptionId}/resourceGroups/identities/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;
const properties = { clientId: "the-client", principalId: "the-principal" };

interface Azure {
  readonly identity?: object;
  /** What the login may do with it; undefined where Azure does not say it. */
  readonly permissions?: readonly object[];
}

async function ask({ identity, permissions }: Azure, settings = { ...validSettings, identityId }) {
  const asked: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    asked.push(pathname);
    const isPermissions = pathname.endsWith("/permissions");
    const body = isPermissions ? permissions && { value: permissions } : identity;
    const error = { code: "ResourceNotFound", message: "…" };
    response.writeHead(body ? 200 : 404).end(JSON.stringify(body ?? { error }));
  });
  const arm = new ArmClient(`http://127.0.0.1:${await listen(server)}`, "token");
  try {
    const connection = { arm, subscriptionId, tenantId: "tenant" };
    return { ...(await getExistingIdentity(settings, connection)), asked };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

it("takes client id and principal id from Azure", async () => {
  const { identity, problems } = await ask({ identity: { location: "elsewhere", properties } });

  expect(identity).toMatchObject(properties);
  expect(problems).toEqual([]);
});

it("names an identity that is not there, and both ways on", async () => {
  const { problems } = await ask({});

  expect(problems).toEqual([
    expect.stringMatching(/identityId is .*kubernetes, .*az identity list.*config rm identityId/),
  ]);
});

it("names the role by which a login may give the identity to machines", async () => {
  const { problems } = await ask({
    identity: { properties },
    permissions: [{ actions: ["*/read"], notActions: [] }],
  });

  expect(problems).toEqual([
    expect.stringMatching(
      /may not give .* --role 'Managed Identity Operator' --scope .*kubernetes/,
    ),
  ]);
});

it("asks for nothing where the program makes an identity", async () => {
  const { asked, problems } = await ask({}, { ...validSettings, identityId: "" });

  expect([asked, problems]).toEqual([[], []]);
});
