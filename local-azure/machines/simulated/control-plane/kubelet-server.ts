import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import { createServer as createProxy } from "node:http";
import { createServer } from "node:https";
import * as path from "node:path";
import type { Duplex } from "node:stream";

import { stringify } from "yaml";

import type { Body } from "../api";

const kubeletPort = 10_250;

/**
 * The API server's way to kubelets, whose addresses exist only on Azure, and what a kubelet serves
 * there: the logs of containers.
 */
export class KubeletServer {
  /** By namespace, pod and container, as the path of a request names them. */
  private readonly logs = new Map<string, string>();
  private close_: (() => void) | undefined;

  /** @param pki folder of a certificate; nobody verifies that of a kubelet */
  constructor(private readonly pki: string) {}

  keepLog(pod: Body, container: string, text: string): void {
    const { namespace, name } = pod.metadata;
    this.logs.set(`${namespace}/${name}/${container}`, text);
  }

  /** Listens, and writes the file that leads an API server here. */
  async listen(egressFile: string): Promise<void> {
    if (this.close_) return;
    const read = (name: string): Buffer => fs.readFileSync(path.join(this.pki, name));
    const kubelet = createServer(
      { cert: read("apiserver.crt"), key: read("apiserver.key") },
      ({ url = "" }, response) => {
        const [, container = ""] = /^\/containerLogs\/([^?]+)/.exec(url) ?? [];
        const text = this.logs.get(container);
        response.writeHead(text === undefined ? 404 : 200, { "content-type": "text/plain" });
        response.end(text ?? `container ${container} not found\n`);
      },
    );
    const proxy = createProxy().on("connect", ({ url = "" }, socket: Duplex) => {
      socket.on("error", () => socket.destroy());
      if (!url.endsWith(`:${kubeletPort}`)) {
        return void socket.end("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n");
      }
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      kubelet.emit("connection", socket);
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

  close(): void {
    this.close_?.();
    this.close_ = undefined;
  }
}

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
