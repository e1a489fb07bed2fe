import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";

import { ProxyAgent, request } from "undici";

import { keyId } from "../../../../../components/token-issuer";

/** How this host reaches the stand-in for Entra. */
export interface EntraAccess {
  /** Port of the proxy by which its name is reached. */
  readonly proxy: number;
  /** File of the authority that the local Azure identifies itself by. */
  readonly authority: string;
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/**
 * A token for Azure storage, as cloud-init/etcd-snapshot.sh gets it on a machine without an identity: by a token of
 * its service account that it has signed itself.
 *
 * @param keyFile the key of service accounts' tokens
 * @param settings what the script has beside it
 */
export async function loginByKey(
  keyFile: string,
  settings: Readonly<Record<string, string>>,
  { proxy, authority }: EntraAccess,
): Promise<string> {
  const { ISSUER: iss, SUBJECT: sub, AUDIENCE: aud, LOGIN: url = "", CLIENT_ID = "" } = settings;
  const key = createPrivateKey(readFileSync(keyFile));
  const kid = keyId(createPublicKey(key));
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss, sub, aud: [aud], iat: now, nbf: now, exp: now + 600 };
  const text = `${part({ alg: "RS256", typ: "JWT", kid })}.${part(claims)}`;
  const form = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: CLIENT_ID,
    scope: "https://storage.azure.com/.default",
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`,
  });
  const dispatcher = new ProxyAgent({
    uri: `http://127.0.0.1:${proxy}`,
    requestTls: { ca: readFileSync(authority, "utf8") },
  });
  try {
    const { statusCode, body } = await request(url, {
      ...{ method: "POST", dispatcher, body: form.toString() },
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    const said = (await body.json()) as { access_token?: string; error_description?: string };
    if (said.access_token !== undefined) return said.access_token;
    throw new Error(
      `Entra ID does not take ${sub} for the cluster's identity (${statusCode}): look at its federated credentials, which take ` +
        `minutes to take effect. ${said.error_description}`,
    );
  } finally {
    await dispatcher.close();
  }
}
