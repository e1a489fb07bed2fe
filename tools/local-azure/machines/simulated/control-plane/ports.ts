import * as net from "node:net";

/** Where the processes of one cluster listen, all on 127.0.0.1. */
export interface Ports {
  readonly api: number;
  readonly etcdClient: number;
  readonly etcdPeer: number;
  readonly etcdMetrics: number;
  readonly controllerManager: number;
  readonly scheduler: number;
}

/** Below the range from which a host takes ports for outgoing connections. */
const firstPort = 20_000;
const lastPort = 32_000;

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

/** A port that no process has now; at random, so that two rehearsals started together differ. */
export async function freePort(taken: ReadonlySet<number> = new Set()): Promise<number> {
  const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
  return taken.has(port) || !(await isFree(port)) ? freePort(taken) : port;
}

export async function freePorts(): Promise<Ports> {
  const taken = new Set<number>();
  const next = async (): Promise<number> => {
    const port = await freePort(taken);
    taken.add(port);
    return port;
  };
  return {
    api: await next(),
    etcdClient: await next(),
    etcdPeer: await next(),
    etcdMetrics: await next(),
    controllerManager: await next(),
    scheduler: await next(),
  };
}
