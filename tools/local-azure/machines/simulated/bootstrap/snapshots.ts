import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import * as fs from "node:fs";
import { readFileSync } from "node:fs";
import * as path from "node:path";
import { ProxyAgent, request } from "undici";

import type { Payload } from "../../../../../components/machine/payload";
import { etcdOf } from "../../../../../components/versions";
import { issueToken } from "../../identity-token";
import type { VirtualMachine } from "../../machines";
import type { Api } from "../api";
import type { SimulatedCluster } from "../cluster/simulated-cluster";
import { snapshotStatus } from "../control-plane/etcd";
import type { SimulatedMachine } from "../machine";
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
class Blobs {
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
interface EntraAccess {
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

const settingsFile = "/opt/zoned/etcd-snapshot.env";
const folder = "/var/lib/zoned/snapshots";
const named = /^\d{8}T\d{6}Z-\d+\.db$/;

/** What cloud-init/etcd-snapshot.sh does with the settings beside it. */
export class Snapshots {
  private constructor(
    private readonly machine: SimulatedMachine,
    private readonly settings: Readonly<Record<string, string>>,
    private readonly entra: () => EntraAccess,
  ) {}

  /**
   * As the machine's last payload has them; undefined where it brought none.
   *
   * @param entra for a machine without an identity
   */
  static on(machine: SimulatedMachine, entra: () => EntraAccess): Snapshots | undefined {
    const file = path.join(machine.root, settingsFile);
    if (!fs.existsSync(file)) return undefined;
    const lines = fs.readFileSync(file, "utf8").matchAll(/^(\w+)='(.*)'$/gm);
    return new Snapshots(
      machine,
      Object.fromEntries([...lines].map(([, key, value]) => [key, value])),
      entra,
    );
  }

  private get every(): string {
    return this.settings["EVERY"] ?? "";
  }

  /** Milliseconds between two by the timer. */
  get period(): number {
    const [, number, unit] = /^(\d+)([mh])$/.exec(this.every) ?? [];
    return Number(number) * (unit === "h" ? 60 : 1) * 60_000;
  }

  /** Saves one, and says in the cluster how that ended. */
  async save(cluster: SimulatedCluster): Promise<void> {
    const { vm } = this.machine;
    const { CONTAINER: container = "" } = this.settings;
    const report = (part: string, data: Readonly<Record<string, string>>) =>
      applyReport(cluster.superAdmin(), part, data);
    try {
      const saved = await this.take(cluster);
      await report("result", {
        ...saved,
        where: container || `folder ${folder} on ${vm.name}`,
        machine: vm.name,
        every: this.every,
        time: seconds(new Date()),
      });
      await report("failure", {});
    } catch (error) {
      const { message } = error as Error;
      await report("failure", { error: `${vm.name}: ${message}`, failed: seconds(new Date()) });
      throw error;
    }
  }

  private async take(cluster: SimulatedCluster) {
    const { vm, root } = this.machine;
    const { gitVersion } = await cluster.superAdmin().get("/version");
    const draft = path.join(root, "var/lib/etcd/zoned-snapshot.db");
    fs.mkdirSync(path.dirname(draft), { recursive: true });
    fs.rmSync(draft, { force: true });
    const { revision } = await cluster.etcd.save(draft);
    const etcd = cluster.etcdVersionOf(vm);
    const name = `${seconds(new Date()).replace(/[-:]/g, "")}-${revision}.db`;
    const bytes = fs.statSync(draft).size;
    const file = path.join(root, folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.renameSync(draft, file);
    if (this.settings["CONTAINER"]) {
      const blobs = await this.blobs();
      await blobs.put(this.blobNamed(name), fs.readFileSync(file), {
        cluster: this.settings["ORIGIN"] ?? "",
        kubernetes: `${gitVersion}`.slice(1),
        etcd,
        machine: vm.name,
      });
    }
    const files = fs.readdirSync(path.dirname(file)).sort();
    const keep = this.settings["CONTAINER"] ? 0 : 5;
    files
      .slice(0, Math.max(files.length - keep, 0))
      .forEach((old) => fs.rmSync(path.join(path.dirname(file), old)));
    return { name, bytes: `${bytes}`, revision: `${revision}`, etcd };
  }

  /** Brings a snapshot to this machine, and verifies it; returns its file. */
  async fetch(wanted: string, payload: Payload, etcdutl: string): Promise<string> {
    const { CLUSTER_NAME: cluster = "", CONTAINER: container = "" } = this.settings;
    const blobs = await this.blobs();
    const names = async () =>
      (await blobs.list(`${cluster}/`))
        .map((name) => name.slice(cluster.length + 1))
        .filter((name) => named.test(name))
        .sort();
    const name = wanted === "latest" ? (await names()).at(-1) : wanted;
    if (name === undefined) {
      throw new Error(
        `there is no snapshot of cluster ${cluster} in ${container}: look for its blobs (${cluster}/<time>-<revision>.db), ` +
          "or initialize a new, empty cluster (pulumi config set reinitialize)",
      );
    }
    const blob = await blobs.get(this.blobNamed(name));
    if (blob === undefined) {
      throw new Error(
        `there is no snapshot ${cluster}/${name} in ${container}; the newest are: ${(await names()).slice(-5).join(" ") || "none"}. ` +
          "Name one of them: pulumi config set restoreFrom",
      );
    }
    const { content, metadata } = blob;
    checkOrigin(name, this.settings, metadata, payload);
    const whole = content.subarray(0, -32);
    if (!createHash("sha256").update(whole).digest().equals(content.subarray(-32))) {
      throw new Error(
        `snapshot ${name} is damaged or not whole (${content.length} bytes): name an older one (pulumi config set restoreFrom)`,
      );
    }
    const file = path.join(this.machine.root, "run/zoned/snapshot.db");
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content, { mode: 0o600 });
    await snapshotStatus(etcdutl, file);
    return file;
  }

  private blobNamed = (name: string): string => `${this.settings["CLUSTER_NAME"]}/${name}`;

  private async blobs(): Promise<Blobs> {
    const { CONTAINER: container = "", CLIENT_ID: clientId = "", ISSUER: issuer } = this.settings;
    const { vm, root } = this.machine;
    const token =
      issuer === undefined
        ? tokenOf(vm, clientId)
        : await loginByKey(
            path.join(root, "etc/kubernetes/pki/sa.key"),
            this.settings,
            this.entra(),
          );
    return new Blobs(container, token);
  }
}

/** To the second, as the script's `date` has it. */
const seconds = (time: Date): string => time.toISOString().replace(/\.\d+/, "");

/** What the metadata service would give a process of this machine. */
function tokenOf({ identities }: VirtualMachine, clientId: string): string {
  const query = new URLSearchParams({
    "api-version": "2018-02-01",
    resource: "https://storage.azure.com/",
    client_id: clientId,
  });
  const { status, body } = issueToken(query, identities);
  if (status === 200) return (body as { access_token: string }).access_token;
  throw new Error(
    "this machine gets no token for Azure storage from the metadata service: look at its identity (az vm identity show)",
  );
}

export const minorOf = (version: string): number => Number(version.split(".")[1]);

function checkOrigin(
  snapshot: string,
  { CLUSTER_NAME: name, ORIGIN: origin }: Readonly<Record<string, string>>,
  { cluster, kubernetes, etcd }: Readonly<Record<string, string>>,
  payload: Payload,
): void {
  if (cluster !== undefined && cluster !== origin) {
    throw new Error(
      `snapshot ${snapshot} is of another cluster named ${name}, one whose Secrets are encrypted by other keys: ` +
        "name one of this stack's own (pulumi config set restoreFrom), or use the state of the stack that it is of",
    );
  }
  const own = payload.kubernetesVersion;
  if (kubernetes !== undefined && minorOf(kubernetes) > minorOf(own)) {
    throw new Error(
      `snapshot ${snapshot} is of Kubernetes ${kubernetes}, newer than this cluster's ${own}, which cannot read it: ` +
        `pulumi config set kubernetesVersion ${kubernetes}, or name an older snapshot (pulumi config set restoreFrom)`,
    );
  }
  const ownEtcd = etcdOf(own);
  if (etcd !== undefined && minorOf(etcd) > minorOf(ownEtcd)) {
    throw new Error(
      `snapshot ${snapshot} is of etcd ${etcd}, newer than the ${ownEtcd} of this cluster's Kubernetes ${own}, which cannot read it: ` +
        "set kubernetesVersion to what the cluster ran then, or name an older snapshot (pulumi config set restoreFrom)",
    );
  }
}

const applyReport = (
  api: Api,
  part: string,
  data: Readonly<Record<string, string>>,
): Promise<unknown> =>
  api.patch(
    "/api/v1/namespaces/kube-system/configmaps/zoned-etcd-snapshot" +
      `?fieldManager=zoned-etcd-snapshot-${part}&force=true`,
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "zoned-etcd-snapshot", namespace: "kube-system" },
      data,
    },
    "application/apply-patch+yaml",
  );
