import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import { text } from "node:stream/consumers";

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

export interface ApiRequest {
  readonly method: string;
  /** With its query. */
  readonly url: string;
  readonly pathname: string;
  readonly contentType?: string;
  /** Undefined where it has none. */
  readonly body: any;
}

/** A status and an object, or a text that is sent as it is. */
export type ApiAnswer = readonly [status: number, answer: unknown];

/** The same, which has read each request before it is answered. */
export const serveKubernetesObjects = (answer: (request: ApiRequest) => ApiAnswer) =>
  serveKubernetesApi(async (request, response) => {
    const { method = "", url = "", headers } = request;
    const { pathname } = new URL(url, "https://localhost");
    const body = await text(request);
    const [status, answered] = answer({
      ...{ method, url, pathname, contentType: headers["content-type"] },
      body: body === "" ? undefined : JSON.parse(body),
    });
    const isText = typeof answered === "string";
    response.writeHead(status).end(isText ? answered : JSON.stringify(answered));
  });

/**
 * What the API says of pods whose kubelet runs etcdctl at once, and of etcd's own.
 *
 * @param printed by etcdctl; undefined where it has failed
 */
export function etcdctlPod({ pathname }: ApiRequest, printed: string | undefined): ApiAnswer {
  if (pathname.endsWith("/log")) return [200, printed];
  const failed = [{ state: { terminated: { exitCode: 1, message: "silence" } } }];
  const status =
    printed === undefined ? { phase: "Failed", containerStatuses: failed } : { phase: "Succeeded" };
  return [200, { items: [], spec: { containers: [{ name: "etcd", image: "etcd" }] }, status }];
}
