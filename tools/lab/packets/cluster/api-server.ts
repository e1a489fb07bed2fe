import { generateKeyPairSync, randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";

import { folder, start } from "../task";

const port = 6443;

const address = `https://127.0.0.1:${port}`;

const token = randomUUID();

/** Many requests at a time on connections that stay: a lab makes ten thousand objects. */
const agent = new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false });

export const kubeconfig = join(folder, "kubeconfig");

export interface ControlPlane {
  readonly etcd: string;
  readonly "kube-apiserver": string;
}

/** Ranges of the Services, and the node's address, that the Service `kubernetes` leads to. */
export interface Ranges {
  readonly services: string;
  readonly node: string;
}

/** An etcd and an API server on loopback, without controllers; done when the API is ready. */
export async function startApiServer(
  binaries: ControlPlane,
  { services, node }: Ranges,
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  writeKeys();
  start("etcd", binaries.etcd, [
    `--data-dir=${join(folder, "etcd")}`,
    "--unsafe-no-fsync",
    "--log-level=error",
    "--listen-client-urls=http://127.0.0.1:2379",
    "--advertise-client-urls=http://127.0.0.1:2379",
    "--listen-peer-urls=http://127.0.0.1:2380",
  ]);
  const server = start("kube-apiserver", binaries["kube-apiserver"], [
    "--etcd-servers=http://127.0.0.1:2379",
    `--service-cluster-ip-range=${services}`,
    `--advertise-address=${node}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    `--cert-dir=${folder}`,
    `--token-auth-file=${join(folder, "tokens.csv")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${join(folder, "sa.pub")}`,
    `--service-account-signing-key-file=${join(folder, "sa.key")}`,
    "--authorization-mode=AlwaysAllow",
  ]);
  await server.until("the API is ready", 120, async () => (await send("GET", "/readyz")) === "ok");
}

function writeKeys(): void {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const write = (name: string, text: string | Buffer): void =>
    writeFileSync(join(folder, name), text, { mode: 0o600 });
  write("sa.pub", publicKey.export({ type: "spki", format: "pem" }));
  write("sa.key", privateKey.export({ type: "pkcs8", format: "pem" }));
  write("tokens.csv", `${token},lab,lab,system:masters\n`);
  write(
    "kubeconfig",
    JSON.stringify({
      clusters: [{ name: "lab", cluster: { server: address, "insecure-skip-tls-verify": true } }],
      users: [{ name: "lab", user: { token } }],
      contexts: [{ name: "lab", context: { cluster: "lab", user: "lab" } }],
      "current-context": "lab",
    }),
  );
}

/** What the API answers, as text; an error with its words when it is no success. */
export function send(method: string, path: string, body?: object): Promise<string> {
  const type = method === "PATCH" ? "application/merge-patch+json" : body && "application/json";
  const headers = { authorization: `Bearer ${token}`, ...(type && { "content-type": type }) };
  return new Promise((resolve, reject) => {
    const sent = request(`${address}${path}`, { method, agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("error", reject);
      response.on("end", () => {
        if ((response.statusCode ?? 500) < 300) resolve(text);
        else reject(new Error(`${method} ${path}: ${text}`));
      });
    });
    sent.on("error", reject);
    sent.end(body && JSON.stringify(body));
  });
}
