import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  discoveryDocument,
  keysDocument,
  keysUrl,
} from "../../../../../../components/token-issuer";
import { account } from "../../../../arm/resources/ids";
import { authorityFile, certificateIn } from "../../../../arm/rest/certificate";
import { serveApiProxy } from "../../../../daemon/api-proxy";
import { loginHost } from "../../../../entra/login-host";
import { TokenService } from "../../../../entra/token-service";
import { claimsOf } from "../../../../machines/identity-token";
import { loginByKey } from "../../../../machines/simulated/bootstrap/key-login";
import { newArm } from "../../../support/arm/fixture";
import { group } from "../../../support/arm/valid-resources";

const issuer = "https://oidcabc.blob.core.windows.net/issuer";
const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cluster`;

it("a simulated machine logs in by the key of service accounts, as somebody whom Entra was told of", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zoned-login-"));
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const keyFile = join(folder, "sa.key");
  writeFileSync(keyFile, privateKey);
  const { arm } = newArm();
  await arm.put(group, { location: "westeurope" });
  const { body } = await arm.put(identity, { location: "westeurope" });
  const subject = "system:serviceaccount:kube-system:snapshots";
  await arm.put(`${identity}/federatedIdentityCredentials/snapshots`, {
    ...{ issuer, subject, audiences: ["api://AzureADTokenExchange"] },
  });
  const documents: Record<string, string> = {
    [`${issuer}/.well-known/openid-configuration`]: discoveryDocument(issuer),
    [keysUrl(issuer)]: keysDocument(publicKey),
  };
  const read = async (url: string) => JSON.parse(documents[url]!);
  const entra = await new TokenService(arm, read).serve(0, await certificateIn(folder));
  const proxy = await serveApiProxy(() => undefined, entra.port, 0);
  const access = { proxy: proxy.port, authority: authorityFile(folder) };
  const settings = {
    ...{ ISSUER: issuer, SUBJECT: subject, AUDIENCE: "api://AzureADTokenExchange" },
    LOGIN: `https://${loginHost}/${account.tenantId}/oauth2/v2.0/token`,
    CLIENT_ID: String(body["clientId"]),
  };

  const token = await loginByKey(keyFile, settings, access);
  const refused = loginByKey(
    keyFile,
    { ...settings, SUBJECT: "system:serviceaccount:a:b" },
    access,
  );

  expect(claimsOf(token)).toMatchObject({
    ...{ aud: "https://storage.azure.com", appid: body["clientId"] },
  });
  await expect(refused).rejects.toThrow(/federated credentials.*AADSTS700213/);
  await Promise.all([proxy.close(), entra.close()]);
  rmSync(folder, { recursive: true });
});
