import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer, type Socket } from "node:net";

import type { Certificate } from "./certificate";

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
