import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { ProxyAgent, request } from "undici";

import { keyId } from "../../../../../components/token-issuer";

const version = "2024-11-04";

interface Blob {
  readonly content: Buffer;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Metadata is text by name, in headers of this beginning. */
const metadataHeader = "x-ms-meta-";

/**
 * A blob container as cloud-init/etcd-snapshot.sh speaks to it. Microsoft's client sends no token
 * over plain HTTP, by which a rehearsal is reached.
 */
export class Blobs {
  /** @param address of the container, without a slash at its end */
  constructor(
    private readonly address: string,
    private readonly token: string,
  ) {}

  async put(
    name: string,
    content: Buffer,
    metadata: Readonly<Record<string, string>>,
  ): Promise<void> {
    // The script sends as many blocks as it needs; what is here is never larger than one.
    const id = Buffer.from("000000").toString("base64");
    await this.send("PUT", `/${name}?comp=block&blockid=${id}`, { body: content });
    const body = `<BlockList><Latest>${id}</Latest></BlockList>`;
    const headers = Object.fromEntries(
      Object.entries(metadata).map(([key, value]) => [`${metadataHeader}${key}`, value]),
    );
    await this.send("PUT", `/${name}?comp=blocklist`, {
      body: Buffer.from(body),
      headers: { ...headers, "content-type": "application/xml" },
    });
  }

  /** Undefined where there is none. */
  async get(name: string): Promise<Blob | undefined> {
    const answer = await this.send("GET", `/${name}`, { mayLack: true });
    if (answer.status === 404) return undefined;
    const metadata = [...answer.headers]
      .filter(([key]) => key.startsWith(metadataHeader))
      .map(([key, value]) => [key.slice(metadataHeader.length), value]);
    return {
      content: Buffer.from(await answer.arrayBuffer()),
      metadata: Object.fromEntries(metadata) as Record<string, string>,
    };
  }

  async list(prefix: string): Promise<string[]> {
    const names: string[] = [];
    let marker = "";
    do {
      const query = new URLSearchParams({ restype: "container", comp: "list", prefix, marker });
      const text = await (await this.send("GET", `?${query}`)).text();
      names.push(...[...text.matchAll(/<Name>([^<]+)<\/Name>/g)].map(([, name]) => name!));
      marker = /<NextMarker>([^<]+)<\/NextMarker>/.exec(text)?.[1] ?? "";
    } while (marker !== "");
    return names;
  }

  private async send(
    method: string,
    path: string,
    {
      body,
      headers,
      mayLack = false,
    }: { body?: Buffer; headers?: Record<string, string>; mayLack?: boolean } = {},
  ): Promise<Response> {
    const answer = await fetch(`${this.address}${path}`, {
      method,
      ...(body && { body: new Uint8Array(body) }),
      headers: { authorization: `Bearer ${this.token}`, "x-ms-version": version, ...headers },
    }).catch((error: Error) => {
      throw new Error(
        `${this.address} does not answer: look at its name, and at the account's network rules and private endpoints`,
        { cause: error },
      );
    });
    if (answer.ok || (mayLack && answer.status === 404)) return answer;
    const { status } = answer;
    if (status === 404) {
      throw new Error(
        `there is no container ${this.address}: make it, or name another (zoned:etcdBackups)`,
      );
    }
    if (status === 401 || status === 403) {
      throw new Error(
        `${this.address} refuses this machine's identity (${status}): it needs the role Storage Blob Data Contributor ` +
          "on the container, which takes minutes to take effect, and the account's network rules must admit it",
      );
    }
    const detail = (await answer.text()).slice(0, 300);
    throw new Error(`${this.address} answers ${method} with ${status}: ${detail}`);
  }
}

/** How this host reaches the stand-in for Entra. */
export interface EntraAccess {
  /** Port of the proxy by which its name is reached. */
  readonly proxy: number;
  /** File of the authority that the local Azure identifies itself by. */
  readonly authority: string;
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/**
 * A token for Azure storage, as cloud-init/etcd-snapshot.sh gets it on a machine without an identity: by a token of
 * its service account that it has signed itself.
 *
 * @param keyFile the key of service accounts' tokens
 * @param settings what the script has beside it
 */
export async function loginByKey(
  keyFile: string,
  settings: Readonly<Record<string, string>>,
  { proxy, authority }: EntraAccess,
): Promise<string> {
  const { ISSUER: iss, SUBJECT: sub, AUDIENCE: aud, LOGIN: url = "", CLIENT_ID = "" } = settings;
  const key = createPrivateKey(readFileSync(keyFile));
  const kid = keyId(createPublicKey(key));
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss, sub, aud: [aud], iat: now, nbf: now, exp: now + 600 };
  const text = `${part({ alg: "RS256", typ: "JWT", kid })}.${part(claims)}`;
  const form = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: CLIENT_ID,
    scope: "https://storage.azure.com/.default",
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`,
  });
  const dispatcher = new ProxyAgent({
    uri: `http://127.0.0.1:${proxy}`,
    requestTls: { ca: readFileSync(authority, "utf8") },
  });
  try {
    const { statusCode, body } = await request(url, {
      ...{ method: "POST", dispatcher, body: form.toString() },
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    const said = (await body.json()) as { access_token?: string; error_description?: string };
    if (said.access_token !== undefined) return said.access_token;
    throw new Error(
      `Entra ID does not take ${sub} for the cluster's identity (${statusCode}): look at its federated credentials, which take ` +
        `minutes to take effect. ${said.error_description}`,
    );
  } finally {
    await dispatcher.close();
  }
}
