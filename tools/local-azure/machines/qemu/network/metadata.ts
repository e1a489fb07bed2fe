import {
  createServer,
  type IncomingMessage,
  request as ask,
  type Server,
  type ServerResponse,
} from "node:http";
import { text } from "node:stream/consumers";

import type { ScheduledEvents } from "../../../arm/scheduled-events";
import { issueToken, type MachineIdentity } from "../../identity-token";

/** A machine as its metadata service describes it, by its address. */
export interface MachineMetadata {
  readonly address: string;
  readonly subnet: { readonly address: string; readonly prefix: string };
  readonly mac: string;
  readonly compute: Readonly<Record<string, unknown>>;
  readonly identities: readonly MachineIdentity[];
  /** Rules of load balancers that lead to it. */
  readonly inboundRules: readonly InboundRule[];
}

interface InboundRule {
  readonly frontendIpAddress: string;
  readonly protocol: string;
  readonly frontendPort: number;
  readonly backendPort: number;
  readonly privateIpAddress: string;
}

const versions = [
  "2017-04-02",
  "2018-02-01",
  "2019-06-01",
  "2020-09-01",
  "2020-10-01",
  "2021-01-01",
  "2021-02-01",
  "2021-10-01",
  "2021-12-13",
];

const instanceOf = ({ address, subnet, mac, compute }: MachineMetadata) => ({
  compute,
  network: {
    interface: [
      {
        ipv4: {
          ipAddress: [{ privateIpAddress: address, publicIpAddress: "" }],
          subnet: [subnet],
        },
        ipv6: { ipAddress: [] },
        macAddress: mac.replaceAll(":", "").toUpperCase(),
      },
    ],
  },
});

interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly isText?: boolean;
}

const refuse = (status: number, error: string): Reply => ({ status, body: { error } });

/** What the service answers one machine, in Azure's own words where it refuses. */
export function describe(
  url: URL,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  machine: MachineMetadata | undefined,
): Reply {
  const path = url.pathname.replace(/\/+$/, "");
  if (String(headers["metadata"]).toLowerCase() !== "true") {
    return refuse(400, "Bad request. Required metadata header not specified");
  }
  if (headers["x-forwarded-for"] !== undefined) {
    return refuse(400, "Bad request. X-Forwarded-For header is not allowed");
  }
  if (path === "/metadata/versions") return { status: 200, body: { apiVersions: versions } };
  if (path === "/metadata/identity/oauth2/token") {
    return issueToken(url.searchParams, machine?.identities ?? []);
  }
  const isBalancer = path === "/metadata/loadbalancer";
  if (machine === undefined || !(isBalancer || /^\/metadata\/instance(\/|$)/.test(path))) {
    return refuse(404, "Not found");
  }
  if (!versions.includes(url.searchParams.get("api-version") ?? "")) {
    return {
      status: 400,
      body: {
        error: "Bad request. api-version is invalid or was not specified in the request.",
        "newest-versions": versions.slice(-3).reverse(),
      },
    };
  }
  if (isBalancer) return balancerOf(machine);
  const found = path
    .split("/")
    .slice(3)
    .reduce<unknown>(
      (node, key) => (node as Record<string, unknown> | undefined)?.[key],
      instanceOf(machine),
    );
  if (found === undefined) return refuse(404, "Not found");
  if (typeof found === "object") return { status: 200, body: found };
  if (url.searchParams.get("format") !== "text") {
    return refuse(404, "API is not supported for leaf nodes without format=text");
  }
  return { status: 200, body: found, isText: true };
}

/** What leads to a machine from outside. None has a public address of its own. */
function balancerOf({ inboundRules }: MachineMetadata): Reply {
  if (inboundRules.length > 0) {
    return {
      status: 200,
      body: { loadbalancer: { publicIpAddresses: [], inboundRules, outboundRules: [] } },
    };
  }
  return refuse(
    404,
    "No load balancer metadata is found. Please check if your VM is using any non-basic SKU load balancer and retry later.",
  );
}

const eventsPath = "/metadata/scheduledevents";

/**
 * Answers a process of this machine.
 *
 * @param events of the process that has them, or the socket of Resource Manager, which has them
 */
export async function answerMetadata(
  request: IncomingMessage,
  response: ServerResponse,
  machine: MachineMetadata | undefined,
  events: ScheduledEvents | string | undefined,
): Promise<void> {
  const { method = "GET", headers } = request;
  const url = new URL(request.url ?? "/", "http://metadata");
  // The header is demanded before all else.
  const isAdmitted = describe(url, headers, undefined).status !== 400;
  const asked = url.pathname === eventsPath && isAdmitted ? events : undefined;
  if (typeof asked === "string" && machine !== undefined) {
    return pass(request, response, machine, asked);
  }
  const { status, body, isText } =
    typeof asked === "object" && machine !== undefined
      ? {
          ...asked.answer(String(machine.compute["name"]), {
            ...{ method, version: url.searchParams.get("api-version") },
            text: await text(request),
          }),
          isText: false,
        }
      : describe(url, headers, machine);
  const type = isText ? "text/plain" : "application/json; charset=utf-8";
  response.writeHead(status, { "content-type": type });
  response.end(isText ? String(body) : JSON.stringify(body));
}

/** To Resource Manager, as a process that stands for one on the machine asks it: see metadata-proxy.ts. */
function pass(
  request: IncomingMessage,
  response: ServerResponse,
  { compute }: MachineMetadata,
  socketPath: string,
): void {
  const { method, headers } = request;
  const authorization = Buffer.from(`${String(compute["name"])}:`).toString("base64");
  const passed = ask(
    {
      ...{ socketPath, method },
      path: `http://169.254.169.254${request.url}`,
      headers: { ...headers, "proxy-authorization": `Basic ${authorization}` },
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 500, {
        "content-type": answer.headers["content-type"],
      });
      answer.pipe(response);
    },
  );
  passed.on("error", () => response.destroy());
  request.pipe(passed);
}

const listen = (server: Server, port: number, address: string): Promise<Server> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, () => resolve(server));
  });

/** The instance metadata service. */
export const serveMetadata = (
  { address, port = 80 }: { readonly address: string; readonly port?: number },
  machineAt: (address: string) => MachineMetadata | undefined,
  resourceManager?: string,
): Promise<Server> =>
  listen(
    createServer(
      (request, response) =>
        void answerMetadata(
          request,
          response,
          machineAt(request.socket.remoteAddress ?? ""),
          resourceManager,
        ),
    ),
    port,
    address,
  );

/** The ports that Azure's agent talks to; what they would answer is not simulated. */
export const serveWire = (address: string): Promise<Server[]> =>
  Promise.all(
    [80, 32526].map((port) =>
      listen(
        createServer((_, response) =>
          response
            .writeHead(200, { "content-type": "text/xml" })
            .end("<Versions><Preferred><Version>2015-04-05</Version></Preferred></Versions>"),
        ),
        port,
        address,
      ),
    ),
  );
