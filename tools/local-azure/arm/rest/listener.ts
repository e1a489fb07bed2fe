import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";

import { authorityIn } from "../../authority";
import { loginHost } from "../resources/resource";
import { registryDomain } from "../types/containerregistry/registry";
import { blobDomain } from "../types/storage";

export interface Served {
  readonly port: number;
  close(): Promise<void>;
}

/** The first byte of a TLS connection. */
const handshake = 0x16;

/**
 * Longer than a client pauses: a request that is sent just as an idle connection is closed gets no answer. Node closes
 * them after 5 s.
 */
const keepAliveTimeout = 120_000;

/**
 * Serves HTTP on 127.0.0.1 and, with a certificate, HTTPS on the same port: official SDKs send no
 * token without TLS, and the program of a rehearsal is not to need a certificate authority. Where
 * an answer fails, its connection ends without one.
 */
export async function serveBoth(
  port: number,
  answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  certificate?: Certificate,
): Promise<Served> {
  const listen: RequestListener = (request, response) =>
    void answer(request, response).catch(() => response.destroy());
  const plain = createHttpServer({ keepAliveTimeout }, listen);
  const secure = certificate && createHttpsServer({ ...certificate, keepAliveTimeout }, listen);
  const listener = createServer((socket: Socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", (first) => {
      socket.pause();
      socket.unshift(first);
      const isSecure = secure !== undefined && first[0] === handshake;
      (isSecure ? secure : plain).emit("connection", socket);
      process.nextTick(() => socket.resume());
    });
  });
  const sockets = new Set<Socket>();
  listener.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(port, "127.0.0.1", resolve);
  });
  return {
    port: (listener.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** What the REST API identifies itself with over TLS. */
export interface Certificate {
  /** For clients: the authority that they have to trust. */
  readonly authority: string;
  readonly cert: string;
  readonly key: string;
}

const file = "azure-ca.crt";

/** The file that clients are given, as in NODE_EXTRA_CA_CERTS or SSL_CERT_FILE. */
export const authorityFile = (folder: string): string => join(folder, file);

/** A certificate of this start, from the authority in the folder, which clients keep trusting. */
export async function certificateIn(folder: string): Promise<Certificate> {
  const authority = await authorityIn(folder, file, { commonName: "local Azure CA" });
  const names = {
    dnsNames: ["localhost", loginHost, `*.${blobDomain}`, `*.${registryDomain}`],
    ipAddresses: ["127.0.0.1"],
  };
  const issued = await authority.issue({ commonName: "local Azure" }, names);
  return { authority: authority.certificate, ...issued };
}
