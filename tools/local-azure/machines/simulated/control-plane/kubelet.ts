import { randomUUID, X509Certificate } from "node:crypto";
import * as fs from "node:fs";
import { createServer as createProxy } from "node:http";
import { createServer, type Server } from "node:https";
import type { Duplex } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";

import { stringify } from "yaml";

import { certificateRequest, newPrivateKey, selfSigned, signingKey } from "../../../x509";
import { type Api, ApiError, type ApiUser, type Body } from "../api";

const kubeletPort = 10_250;

/** By address, what the kubelet of a machine proves itself by. */
export type KubeletCertificates = (address: string) => {
  /** To those who ask it; undefined where it was given nothing. */
  readonly serving?: KeyPair;
  /** To the API; undefined before it has joined. */
  readonly client?: string;
};

/**
 * The API server's way to kubelets, whose addresses exist only on Azure, and what a kubelet serves
 * there: the logs of containers, and until when its own certificate is valid.
 */
export class KubeletServer {
  /** By namespace, pod and container, as the path of a request names them. */
  private readonly logs = new Map<string, string>();
  private readonly kubelets = new Map<string, { cert: string; server: Server }>();
  private close_: (() => void) | undefined;

  constructor(private readonly certificates: KubeletCertificates) {}

  keepLog(pod: Body, container: string, text: string): void {
    const { namespace, name } = pod.metadata;
    this.logs.set(`${namespace}/${name}/${container}`, text);
  }

  /** Listens, and writes the file that leads an API server here. */
  async listen(egressFile: string): Promise<void> {
    if (this.close_) return;
    // A kubelet without one makes its own, which no client can verify.
    const own = await ownCertificate();
    const proxy = createProxy().on("connect", ({ url = "" }, socket: Duplex) => {
      socket.on("error", () => socket.destroy());
      if (!url.endsWith(`:${kubeletPort}`)) {
        return void socket.end("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n");
      }
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      const address = url.slice(0, -`:${kubeletPort}`.length);
      this.kubeletAt(address, this.certificates(address).serving ?? own).emit("connection", socket);
    });
    // An abstract one, which is no file that would have to go; over TCP an API server wants TLS here.
    const socketName = `zoned-kubelets-${randomUUID()}`;
    await new Promise<void>((listening, reject) => {
      proxy.once("error", reject);
      proxy.listen(`\0${socketName}`, listening);
    });
    proxy.unref();
    this.close_ = () => {
      proxy.close();
      proxy.closeAllConnections();
    };
    fs.writeFileSync(egressFile, egressTo(`@${socketName}`));
  }

  /** Another certificate is taken by itself, as by a kubelet. */
  private kubeletAt(address: string, { cert, key }: KeyPair): Server {
    const known = this.kubelets.get(address);
    if (known?.cert === cert) return known.server;
    const server = createServer({ cert, key }, ({ url = "" }, response) => {
      const [, container] = /^\/containerLogs\/([^?]+)/.exec(url) ?? [];
      const { client } = this.certificates(address);
      const text = url === "/metrics" ? metricsOf(client) : this.logs.get(container ?? "");
      response.writeHead(text === undefined ? 404 : 200, { "content-type": "text/plain" });
      response.end(text ?? `container ${container} not found\n`);
    });
    this.kubelets.set(address, { cert, server });
    return server;
  }

  close(): void {
    this.close_?.();
    this.close_ = undefined;
  }
}

const metricsOf = (client: string | undefined): string => {
  const end = client && Date.parse(new X509Certificate(client).validTo);
  const seconds = end ? Math.trunc((end - Date.now()) / 1000) : "+Inf";
  return `kubelet_certificate_manager_client_ttl_seconds ${seconds}\n`;
};

const egressTo = (udsName: string): string =>
  stringify({
    apiVersion: "apiserver.k8s.io/v1beta1",
    kind: "EgressSelectorConfiguration",
    egressSelections: [
      {
        name: "cluster",
        connection: { proxyProtocol: "HTTPConnect", transport: { uds: { udsName } } },
      },
    ],
  });

const certificateWithinMs = 60_000;

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** What a kubelet makes itself where its configuration names no certificate. */
async function ownCertificate(): Promise<KeyPair> {
  const { privateKeyPem: key } = await newPrivateKey();
  const { certPem: cert } = await selfSigned(
    await signingKey(key, "its key"),
    { commonName: "kubelet" },
    {
      allowedUses: ["digital_signature", "server_auth"],
      validityPeriodHours: 365 * 24,
      isCaCertificate: false,
      setSubjectKeyId: false,
    },
  );
  return { cert, key };
}

/** Whether the first of these CAs has signed a certificate, and not one that is only still trusted. */
export const isSignedBy = (authorities: string, certificate: string | undefined): boolean =>
  certificate !== undefined &&
  new X509Certificate(certificate).verify(new X509Certificate(authorities).publicKey);

/** A kubelet's certificate, got with a bootstrap credential as a kubelet gets it. */
export async function kubeletCertificate(api: Api, node: string): Promise<ApiUser> {
  const { privateKeyPem: key } = await newPrivateKey();
  const subject = { organization: "system:nodes", commonName: `system:node:${node}` };
  const request = await certificateRequest(await signingKey(key, "its key"), subject);
  const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const { metadata } = await api.post(requests, {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { generateName: "node-csr-" },
    spec: {
      request: Buffer.from(request).toString("base64"),
      signerName: "kubernetes.io/kube-apiserver-client-kubelet",
      usages: ["digital signature", "client auth"],
    },
  });
  for (const until = Date.now() + certificateWithinMs; Date.now() < until; await wait(200)) {
    const { status = {} } = await api.get(`${requests}/${metadata.name}`);
    const denied = status.conditions?.find(({ type }: { type: string }) => type !== "Approved");
    if (denied) {
      throw new ApiError(
        403,
        `certificate request ${metadata.name}: ${denied.type}, ${denied.message}`,
      );
    }
    if (status.certificate) {
      return { cert: Buffer.from(status.certificate, "base64").toString("utf8"), key };
    }
  }
  throw new Error(
    `certificate request ${metadata.name} for ${node} was not approved and signed within ` +
      `${certificateWithinMs / 1000} s: is the credential in group system:bootstrappers:kubeadm:default-node-token?`,
  );
}
