import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { text } from "node:stream/consumers";

import { registryLogin } from "../../../components/kubeadm/registries";
import { claimsOf } from "../../../tools/local-azure/machines/identity-token";
import { serverCertificate } from "../../../tools/local-azure/tests/support/plugins/fake-api";
import { askCredentialProvider, pluginApi } from "../../support/credential-provider";
import { listen } from "../../support/listen";

jest.setTimeout(60_000);

const tenantId = "11111111-2222-4333-8444-555555555555";
const kubelets = "20000000-0000-4000-8000-00000000c11e";
/** As Azure calls one whose name may be used again by somebody else (its label's scope). */
const server = "ourimages-a1b2c3d4e5.azurecr.io";

const machine = {
  address: "172.16.1.4",
  subnet: { address: "172.16.1.0", prefix: "24" },
  mac: "00:0d:3a:01:02:03",
  compute: { name: "workers-1", vmId: "abc", zone: "1" },
  identities: [
    { resourceId: "/the/cluster", clientId: tenantId, principalId: tenantId },
    { resourceId: "/the/kubelets", clientId: kubelets, principalId: kubelets },
  ],
  inboundRules: [],
};

/** A registry as Azure's answer those who log in: for a token of the kubelets' identity that is for registries. */
async function admits(request: IncomingMessage): Promise<boolean> {
  const form = new URLSearchParams(await text(request));
  const { aud, appid } = claimsOf(form.get("access_token") ?? "") ?? {};
  return (
    form.get("grant_type") === "access_token_refresh_token" &&
    form.get("service") === server &&
    form.get("tenant") === tenantId &&
    aud?.replace(/\/$/, "") === "https://containerregistry.azure.net" &&
    appid === kubelets
  );
}

/** Upstream's program, with the file that a machine gets, between its metadata service and a registry. */
async function ask(image: string, clientId = kubelets) {
  const { key, cert } = await serverCertificate(server);
  const registry = createServer({ key, cert }, (request, response) => {
    if (request.url === "/oauth2/exchange") {
      void admits(request).then((isAdmitted) =>
        response
          .writeHead(isAdmitted ? 200 : 401)
          .end(JSON.stringify({ refresh_token: "for an hour" })),
      );
      return;
    }
    const where = `realm="https://${server}/oauth2/token",service="${server}"`;
    response.writeHead(401, { "Www-Authenticate": `Bearer ${where}` }).end();
  });
  const { content } = registryLogin({
    ...{ tenantId, clientId, resourceManagerEndpoint: "https://management.azure.com" },
  });
  try {
    const port = await listen(registry);
    return await askCredentialProvider({ image, login: content, machine, port, ca: cert });
  } finally {
    registry.close();
    registry.closeAllConnections();
  }
}

it("logs in to a registry by the kubelets' identity, of several that a machine has", async () => {
  const { stdout, stderr, code, asked } = await ask(`${server}/shop/app:1`);

  expect([code, stderr.match(/error.*/gi)]).toEqual([0, null]);
  const { auth, ...response } = JSON.parse(stdout) as { auth: Record<string, object> };
  expect(response).toMatchObject({ apiVersion: pluginApi, kind: "CredentialProviderResponse" });
  expect(auth[server]).toEqual({
    username: "00000000-0000-0000-0000-000000000000",
    password: "for an hour",
  });
  expect(new Set(asked)).toEqual(new Set([`${server}:443`]));
});

it("gives none where the machine has not the identity", async () => {
  const { stdout, stderr, code } = await ask(`${server}/shop/app:1`, tenantId.replace("1", "9"));

  expect(code).not.toBe(0);
  expect(stderr).toContain("Identity not found");
  expect(stdout).not.toContain("password");
});
