import { webcrypto } from "node:crypto";
import * as https from "node:https";

import "reflect-metadata";
import * as x509 from "@peculiar/x509";

import { listen } from "../../../../../tests/support/listen";
import { Access, Resolve } from "../../../plugins/kubernetes/api";
import { Properties } from "../../../plugins/protocol/values";

const apiHost = "zoned.westeurope.cloudapp.azure.com";

/** What a test sees of a request. */
interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly body?: Properties;
}

/** An API server that keeps objects by path and knows no other rule than existence. */
export class FakeApi {
  readonly objects = new Map<string, Properties>();
  readonly seen: Seen[] = [];
  /** Answers a request otherwise, as `[status, body]`. */
  answer: (seen: Seen) => readonly [number, Properties] | undefined = () => undefined;

  private constructor(
    readonly access: Access,
    readonly kubeconfig: string,
    private readonly server: https.Server,
    private readonly port: number,
  ) {}

  /** Listens on loopback with a certificate for `certifiedHost`. */
  static async start(certifiedHost = apiHost): Promise<FakeApi> {
    const { key, cert } = await serverCertificate(certifiedHost);
    const server = https.createServer({ key, cert });
    const access = {
      server: new URL(`https://${apiHost}:6443`),
      tls: { ca: cert },
    };
    const data = (pem: string) => Buffer.from(pem).toString("base64");
    const cluster = { server: access.server.href, "certificate-authority-data": data(cert) };
    const user = { "client-certificate-data": data(cert), "client-key-data": data(key) };
    const kubeconfig = JSON.stringify({ clusters: [{ cluster }], users: [{ user }] });
    const api = new FakeApi(access, kubeconfig, server, await listen(server));
    server.on("request", (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const [code, body] = api.respond(request, Buffer.concat(chunks).toString());
        response.writeHead(code, { "content-type": "application/json" });
        response.end(JSON.stringify(body));
      });
    });
    return api;
  }

  readonly redirect: Resolve = (host) =>
    host === apiHost ? { host: "127.0.0.1", port: this.port } : undefined;

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private respond(
    { url = "", method = "" }: { url?: string; method?: string },
    text: string,
  ): readonly [number, Properties] {
    const { pathname: path, searchParams } = new URL(url, this.access.server);
    const seen = {
      method,
      path,
      query: Object.fromEntries(searchParams),
      ...(text && { body: JSON.parse(text) as Properties }),
    };
    this.seen.push(seen);
    return this.answer(seen) ?? this.stored(seen);
  }

  private stored({ method, path, query, body }: Seen): readonly [number, Properties] {
    if (path === "/version" || path === "/openapi/v3") {
      return [200, {}];
    }
    const found = this.objects.get(path);
    if (method === "PATCH" && Array.isArray(body)) {
      return [200, found!];
    }
    if (method === "PATCH") {
      const made = { ...found, ...body, status: found?.status };
      if (query.dryRun === undefined) {
        this.objects.set(path, made);
      }
      return [found ? 200 : 201, made];
    }
    if (!found) {
      return [404, { reason: "NotFound", message: `${path} not found` }];
    }
    if (method === "DELETE") {
      this.objects.delete(path);
    }
    return [200, found];
  }
}

/** A key and a certificate for a TLS server or client of a test; the certificate is its own authority. */
export async function serverCertificate(
  dnsName: string,
  commonName = "api",
  validHours = 1,
): Promise<{ readonly key: string; readonly cert: string }> {
  const crypto = webcrypto as Crypto;
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { digitalSignature, keyCertSign } = x509.KeyUsageFlags;
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${commonName}`,
      keys,
      signingAlgorithm: algorithm,
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + validHours * 3_600_000),
      extensions: [
        new x509.KeyUsagesExtension(digitalSignature | keyCertSign, true),
        new x509.ExtendedKeyUsageExtension([serverAuth, clientAuth]),
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: dnsName }]),
      ],
    },
    crypto,
  );
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    key: x509.PemConverter.encode(pkcs8, "PRIVATE KEY"),
    cert: certificate.toString("pem"),
  };
}
