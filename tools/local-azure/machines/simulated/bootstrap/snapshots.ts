import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";

import type { Payload } from "../../../../../components/machine/payload";
import { etcdOf } from "../../../../../components/versions";
import { issueToken } from "../../identity-token";
import type { VirtualMachine } from "../../machines";
import type { Api } from "../api";
import type { SimulatedCluster } from "../cluster/simulated-cluster";
import { snapshotStatus } from "../control-plane/etcd";
import type { SimulatedMachine } from "../machine";
import { Blobs, type EntraAccess, loginByKey } from "./storage";

const settingsFile = "/opt/zoned/etcd-snapshot.env";
const folder = "/var/lib/zoned/snapshots";
const named = /^\d{8}T\d{6}Z-\d+\.db$/;
const keep = 5;

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
      fs.rmSync(file);
    }
    const files = fs.readdirSync(path.dirname(file)).sort();
    files.slice(0, -keep).forEach((old) => fs.rmSync(path.join(path.dirname(file), old)));
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
