import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { createServer } from "node:https";

import { serverCertificate } from "../../tools/local-azure/tests/support/plugins/fake-api";
import { listen, serveProxyTo } from "./listen";

const newKey = () => generateKeyPairSync("rsa", { modulusLength: 2048 });

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token of an issuer, signed by RS256. */
function signed(key: KeyObject, claims: object): string {
  const text = `${part({ alg: "RS256", typ: "JWT", kid: "of-today" })}.${part(claims)}`;
  return `${text}.${sign("RSA-SHA256", Buffer.from(text), key).toString("base64url")}`;
}

/**
 * An issuer of OpenID Connect that says who it is and which key signs, by https under a name, and an HTTP
 * proxy that leads to it as the internet would.
 */
export async function startIssuer(hostname: string) {
  const { key, cert } = await serverCertificate(hostname);
  const [keys, strangers] = [newKey(), newKey()];
  const state = { isDown: false };
  const server = createServer({ key, cert }, (request, response) => {
    const { pathname } = new URL(request.url!, "https://any");
    const issuer = `https://${request.headers.host}${pathname.replace(/\/\.well-known.*/, "")}`;
    const answers = pathname.endsWith("/keys")
      ? { keys: [{ ...keys.publicKey.export({ format: "jwk" }), kid: "of-today", use: "sig" }] }
      : { issuer, jwks_uri: `${issuer}/keys`, id_token_signing_alg_values_supported: ["RS256"] };
    response.writeHead(state.isDown ? 503 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answers));
  });
  const port = await listen(server);
  const { address: proxy, asked } = await serveProxyTo(port);
  const now = () => Math.floor(Date.now() / 1000);
  return {
    state,
    /** Of its CA. */
    cert,
    port,
    proxy,
    /** What the proxy was asked for. */
    asked,
    token: (claims: object): string =>
      signed(keys.privateKey, { iat: now(), nbf: now(), exp: now() + 3600, ...claims }),
    strangersToken: (claims: object): string =>
      signed(strangers.privateKey, { iat: now(), exp: now() + 3600, ...claims }),
  };
}
