import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { listen } from "../../../../tests/support/listen";

/** What a command in the pod says: its output, or the status with which it fails. */
export type Says = string | { readonly failure: string };

export interface FakeCluster {
  readonly kubeconfig: string;
  /** How many commands ran at once, at most. */
  readonly mostAtOnce: number;
  close(): Promise<void>;
}

const pod = {
  metadata: { name: "kube-proxy-x", namespace: "kube-system" },
  spec: { hostNetwork: true },
  status: { phase: "Running" },
};

/** What taking dumps needs of a Kubernetes API: a node, its kube-proxy, a Service, exec. */
export async function fakeCluster(commands: Readonly<Record<string, Says>>): Promise<FakeCluster> {
  const objects: Readonly<Record<string, object>> = {
    "/api/v1/nodes": { items: [{ metadata: { name: "worker-1" } }] },
    "/api/v1/nodes/worker-1": {
      metadata: { name: "worker-1" },
      status: { addresses: [{ type: "InternalIP", address: "172.16.2.4" }] },
    },
    "/api/v1/namespaces/kube-system/pods": { items: [pod] },
    "/api/v1/namespaces/default/services/web": {
      metadata: { namespace: "default", name: "web" },
      spec: { clusterIPs: ["10.96.0.41"], ports: [{ name: "http", port: 80, protocol: "TCP" }] },
    },
  };
  const server = createServer((request, response) => {
    const object = objects[new URL(request.url ?? "", "http://api").pathname];
    response.writeHead(object === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(object ?? { message: "not found" }));
  });
  const sockets = new Set<Duplex>();
  let [running, mostAtOnce] = [0, 0];
  server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
    const words = new URL(request.url ?? "", "http://api").searchParams.getAll("command");
    accept(request, socket);
    const says = commands[words.join(" ")] ?? {
      failure: `exec: "${words[0]}": executable file not found in $PATH`,
    };
    running += 1;
    mostAtOnce = Math.max(mostAtOnce, running);
    setTimeout(() => {
      running -= 1;
      if (typeof says === "string") socket.write(frame(1, says));
      const status =
        typeof says === "string"
          ? { status: "Success" }
          : { status: "Failure", message: says.failure };
      socket.write(frame(3, JSON.stringify(status)));
    }, 30);
    socket.on("close", () => sockets.delete(socket));
    sockets.add(socket);
  });
  const port = await listen(server);
  return {
    get mostAtOnce() {
      return mostAtOnce;
    },
    kubeconfig: JSON.stringify({
      "current-context": "fake",
      contexts: [{ name: "fake", context: { cluster: "fake", user: "fake" } }],
      clusters: [
        {
          name: "fake",
          cluster: { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true },
        },
      ],
      users: [{ name: "fake", user: {} }],
    }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** RFC 6455's handshake. */
function accept({ headers }: IncomingMessage, socket: Duplex): void {
  const key = `${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const answer = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${createHash("sha1").update(key).digest("base64")}`,
    "Sec-WebSocket-Protocol: v4.channel.k8s.io",
  ];
  socket.write(`${answer.join("\r\n")}\r\n\r\n`);
}

/** One message on a channel: 1 is standard output, 3 is how the command ended. */
function frame(channel: number, text: string): Buffer {
  const payload = Buffer.concat([Buffer.from([channel]), Buffer.from(text)]);
  const head = Buffer.alloc(10);
  head[0] = 0x82;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(payload.length), 2);
  return Buffer.concat([head, payload]);
}
