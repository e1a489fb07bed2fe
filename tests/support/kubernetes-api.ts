import type { RequestListener } from "node:http";
import { createServer } from "node:https";

import { listen } from "./listen";
import { serverCertificate } from "../../tools/local-azure/tests/support/plugins/fake-api";

/**
 * An API server on this machine, with the kubeconfig of its administrator, whose certificate is the
 * server's too.
 */
export async function serveKubernetesApi(answer: RequestListener, validHours?: number) {
  const { key, cert } = await serverCertificate("localhost", "the-administrator", validHours);
  const tls = { key, cert, requestCert: true, rejectUnauthorized: false };
  const server = createServer(tls, answer);
  const data = (pem: string) => Buffer.from(pem).toString("base64");
  const cluster = {
    server: `https://localhost:${await listen(server)}`,
    "certificate-authority-data": data(cert),
  };
  const user = { "client-certificate-data": data(cert), "client-key-data": data(key) };
  return JSON.stringify({ clusters: [{ cluster }], users: [{ user }] });
}
