import "reflect-metadata";

import { webcrypto } from "node:crypto";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";

import * as x509 from "@peculiar/x509";

import { Api } from "./api";

async function selfSigned(name: string): Promise<{ cert: string; key: string }> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: name }])],
  });
  const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { cert: certificate.toString("pem"), key: x509.PemConverter.encode(key, "PRIVATE KEY") };
}

test("each request is a connection of its own, and only the first costs the server a signature", async () => {
  const serverName = "api.example";
  const { cert, key } = await selfSigned(serverName);
  const isResumed: boolean[] = [];
  const server = createServer({ cert, key }, (_, response) => response.end("{}"));
  server.on("secureConnection", (socket: TLSSocket) => isResumed.push(socket.isSessionReused()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

  try {
    const api = new Api({ host: "127.0.0.1", port, serverName, ca: cert }, {});
    for (let request = 0; request < 3; request += 1) await api.get("/readyz");
  } finally {
    server.close();
  }

  expect(isResumed).toEqual([false, true, true]);
});
