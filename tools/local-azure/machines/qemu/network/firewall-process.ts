import { appendFileSync } from "node:fs";
import { join } from "node:path";
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";

import { type Authority, authorityIn } from "../../../authority";
import { mirrorAddress } from "./namespaces";
import { firewall } from "./ruleset";
import type { Address } from "../../../daemon/attachment";

/** Who the proxy lets out. All that has a meaning in addresses, shells and units is in the password. */
export const firewallLogin = { user: "cluster", password: "p@ss/w:rd $1%" };

const authority = "firewall-ca.crt";

/** The certificate by which the firewall answers in others' names, where networks are kept. */
export const firewallAuthority = (folder: string): string => join(folder, authority);

/** What the firewall's proxy was asked, a line of JSON each. */
export const firewallLog = (folder: string): string => join(folder, "firewall-requests.jsonl");

async function serve(folder: string): Promise<void> {
  firewallProxy({
    login: firewallLogin,
    authority: await authorityIn(folder, authority, { commonName: "company CA" }),
    mirror: { host: mirrorAddress, port: 80 },
    passed: (passage) => appendFileSync(firewallLog(folder), `${JSON.stringify(passage)}\n`),
  }).listen(firewall.proxyPort, firewall.address);
}

interface Login {
  readonly user: string;
  readonly password: string;
}

/** A request that somebody made of the internet, and what became of it. */
export interface Passage {
  readonly method: string;
  readonly url: string;
  readonly status: number;
}

interface FirewallOptions {
  readonly login: Login;
  /** By which it answers in others' names. */
  readonly authority: Authority;
  /** What is behind all that it lets out: the mirror. */
  readonly mirror: Address;
  readonly passed: (passage: Passage) => void;
}

const registries = [
  "registry.k8s.io",
  "ghcr.io",
  "quay.io",
  "mcr.microsoft.com",
  "registry-1.docker.io",
];

const challenge = 'Basic realm="firewall"';

/** Where the mirror has what is asked for at upstream; undefined for what the firewall lets nobody see. */
function inMirror({ hostname, pathname }: URL): string | undefined {
  if (registries.includes(hostname)) return pathname;
  const [, packages] = /^\/core:\/stable:\/v[\d.]+\/deb\/(.*)$/.exec(pathname) ?? [];
  return hostname === "pkgs.k8s.io" && packages !== undefined ? `/apt/${packages}` : undefined;
}

/**
 * The proxy of a company's firewall: it wants a login, opens TLS with an authority of the company's own, and lets
 * out what asks Kubernetes' package repository or a registry.
 */
export function firewallProxy({ login, authority, mirror, passed }: FirewallOptions): Server {
  const contexts = new Map<string, Promise<SecureContext>>();
  const contextOf = (host: string): Promise<SecureContext> => {
    const known = contexts.get(host);
    if (known) return known;
    const made = authority
      .issue({ commonName: host }, { dnsNames: [host] })
      .then(({ cert, key }) => createSecureContext({ cert, key }));
    contexts.set(host, made);
    return made;
  };
  const expected = `Basic ${Buffer.from(`${login.user}:${login.password}`).toString("base64")}`;
  const isAdmitted = ({ headers }: IncomingMessage): boolean =>
    headers["proxy-authorization"] === expected;

  const answer = (asked: IncomingMessage, response: ServerResponse, url: URL): void => {
    const { method = "GET", headers } = asked;
    const end = (status: number, text: string): void => {
      passed({ method, url: url.href, status });
      response.writeHead(status, { "content-type": "text/plain" }).end(`${text}\n`);
    };
    const path = inMirror(url);
    if (path === undefined) return end(403, `The firewall lets nobody out to ${url.hostname}.`);
    const { "proxy-authorization": _, host: __, ...others } = headers;
    const onward = request({ ...mirror, method, path, headers: others }, (upstream) => {
      passed({ method, url: url.href, status: upstream.statusCode ?? 0 });
      response.writeHead(upstream.statusCode ?? 502, upstream.headers);
      upstream.pipe(response);
    });
    onward.on("error", ({ message }) => end(502, message));
    asked.pipe(onward);
  };

  const opened = createServer((asked, response) => {
    const { servername } = asked.socket as TLSSocket & { servername?: string };
    answer(asked, response, new URL(asked.url ?? "/", `https://${servername ?? "unknown"}`));
  });
  const server = createServer((asked, response) => {
    if (!isAdmitted(asked)) {
      passed({ method: asked.method ?? "", url: asked.url ?? "", status: 407 });
      response.writeHead(407, { "proxy-authenticate": challenge }).end();
    } else if (URL.canParse(asked.url ?? "")) answer(asked, response, new URL(asked.url!));
    else response.writeHead(400).end();
  });
  server.on("connect", async (asked: IncomingMessage, socket: Duplex, head: Buffer) => {
    const [host = "", port] = (asked.url ?? "").split(":");
    socket.on("error", () => socket.destroy());
    const refusal = isAdmitted(asked) ? (port === "443" ? undefined : 403) : 407;
    if (refusal !== undefined) {
      passed({ method: "CONNECT", url: asked.url ?? "", status: refusal });
      const asks = refusal === 407 ? `Proxy-Authenticate: ${challenge}\r\n` : "";
      socket.end(
        `HTTP/1.1 ${refusal} Refused\r\n${asks}Content-Length: 0\r\nConnection: close\r\n\r\n`,
      );
      return;
    }
    const secureContext = await contextOf(host);
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    socket.unshift(head);
    const secure = new TLSSocket(socket as never, { isServer: true, secureContext });
    secure.on("error", () => secure.destroy());
    Object.assign(secure, { servername: host });
    opened.emit("connection", secure);
  });
  return server;
}

if (require.main === module) {
  serve(process.argv[2] ?? "").catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
}
