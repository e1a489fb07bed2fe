import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../../../shared/files";
import type { VirtualMachine } from "../../machines";
import { Supervisor } from "../../supervisor";
import type { Api, ApiServer, Body } from "../api";
import { freePort } from "../control-plane/ports";

const name = "cloud-controller-manager";

/** As a kubelet asks for it, and renewed as early. */
const tokenSeconds = 3607;
const renewedAfterMs = 30 * 60_000;

export interface ControllerManagerOptions {
  /** Azure's own program. */
  readonly program: string;
  /** File of the authority that the local Azure identifies itself by. */
  readonly authority: string;
  /** For what its pod would have, and for its log. */
  readonly folder: string;
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  readonly log: (message: string) => void;
}

/**
 * Azure's own cloud controller manager, as a process of this host in place of a pod that KWOK only
 * pretends to run: with the pod's arguments, its azure.json, the token of its ServiceAccount, and
 * the managed identity of its machine.
 */
export class ControllerManager {
  private readonly supervisor: Supervisor;
  private uid: string | undefined;
  private isPaused = false;
  private last: Promise<unknown> = Promise.resolve();
  private renewed = 0;

  constructor(private readonly options: ControllerManagerOptions) {
    this.supervisor = new Supervisor(options.folder, options.log);
  }

  /** Runs it while a pod of it runs; of several that one is enough, since the others only wait. */
  follow(api: Api, server: ApiServer): Promise<void> {
    const result = this.last.then(() => (this.isPaused ? undefined : this.look(api, server)));
    this.last = result.catch(() => undefined);
    return result;
  }

  resume(): void {
    this.isPaused = false;
  }

  /** Ends it until it is resumed. */
  async pause(): Promise<void> {
    this.isPaused = true;
    await this.last;
    await this.stop();
  }

  private async look(api: Api, server: ApiServer): Promise<void> {
    const { items } = await api.get("/api/v1/pods?fieldSelector=status.phase%3DRunning");
    const pods = (items as Body[]).filter(
      ({ metadata, spec }) =>
        metadata.deletionTimestamp === undefined &&
        this.options.vmOf(spec.nodeName) !== undefined &&
        containerOf(spec) !== undefined,
    );
    const pod = pods.find(({ metadata }) => metadata.uid === this.uid) ?? pods[0];
    if (pod?.metadata.uid !== this.uid) await this.stop();
    if (pod === undefined) return;
    if (Date.now() - this.renewed > renewedAfterMs) await this.renew(pod, api);
    if (this.uid === undefined) await this.start(pod, api, server);
  }

  endOrphans = (): Promise<void> => this.supervisor.endOrphans();

  private async stop(): Promise<void> {
    this.uid = undefined;
    this.renewed = 0;
    await this.supervisor.stop(name);
  }

  close = (): void => this.supervisor.close();

  private async renew({ metadata, spec }: Body, api: Api): Promise<void> {
    const { namespace } = metadata;
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${spec.serviceAccountName}`;
    const { status } = await api.post(`${account}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        expirationSeconds: tokenSeconds,
        boundObjectRef: {
          apiVersion: "v1",
          kind: "Pod",
          name: metadata.name,
          uid: metadata.uid,
        },
      },
    });
    mkdirSync(this.options.folder, { recursive: true, mode: 0o700 });
    writeWhole(this.file("token"), status.token as string);
    this.renewed = Date.now();
  }

  private async start(pod: Body, api: Api, server: ApiServer): Promise<void> {
    const { metadata, spec } = pod;
    const core = `/api/v1/namespaces/${metadata.namespace}`;
    const { data } = await api.get(`${core}/configmaps/kube-root-ca.crt`);
    const kubeconfig = this.file("kubeconfig");
    writeWhole(
      kubeconfig,
      kubeconfigText({ ...server, ca: data["ca.crt"] as string }, this.file("token")),
    );
    const mounts = await this.mountSecrets(pod, api);
    const args = (containerOf(spec)?.args as string[]).map((arg) =>
      mounts.reduce((text, { path, folder }) => text.replace(`=${path}/`, `=${folder}/`), arg),
    );
    const origin = mounts.map(({ azure }) => azure).find((one) => one !== undefined);
    this.supervisor.start({
      name,
      command: [
        this.options.program,
        ...args.filter((arg) => !arg.startsWith("--secure-port=")),
        `--kubeconfig=${kubeconfig}`,
        // Clusters share this host.
        `--secure-port=${await freePort()}`,
      ],
      env: {
        SSL_CERT_FILE: this.options.authority,
        // The metadata service's address can be none of this host's. Azure's SDKs ask here instead.
        IDENTITY_ENDPOINT: `${origin}/local/machines/${spec.nodeName}/token`,
        IDENTITY_HEADER: "local",
      },
    });
    this.uid = metadata.uid;
    this.options.log(`runs ${this.options.program} in place of pod ${metadata.name}`);
  }

  /** Puts the Secrets that the pod mounts below the folder. */
  private async mountSecrets(
    { metadata, spec }: Body,
    api: Api,
  ): Promise<{ path: string; folder: string; azure?: string }[]> {
    const secrets = (spec.volumes as Body[]).filter(({ secret }) => secret !== undefined);
    return Promise.all(
      secrets.map(async (volume) => {
        const { secretName } = volume.secret;
        const { data } = await api.get(
          `/api/v1/namespaces/${metadata.namespace}/secrets/${secretName}`,
        );
        const folder = this.file(volume.name);
        rmSync(folder, { recursive: true, force: true });
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        let azure: string | undefined;
        for (const [key, value] of Object.entries(data as Record<string, string>)) {
          const text = Buffer.from(value, "base64").toString("utf8");
          const [origin] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
          azure ??= origin;
          writeWhole(join(folder, key), origin === undefined ? text : onThisHost(text));
        }
        const { mountPath } = (containerOf(spec)?.volumeMounts as Body[]).find(
          (mount) => mount.name === volume.name,
        ) as { mountPath: string };
        return { path: mountPath, folder, azure };
      }),
    );
  }

  private file = (name: string): string => join(this.options.folder, name);
}

/**
 * azure.json as this host needs it: Azure's SDKs send a token over TLS only, which the local Azure
 * speaks on the same port, and nothing serves a machine's metadata here.
 */
function onThisHost(text: string): string {
  const { resourceManagerEndpoint, ...others } = JSON.parse(text) as Record<string, string>;
  return JSON.stringify({
    ...others,
    resourceManagerEndpoint: resourceManagerEndpoint?.replace("http:", "https:"),
    useInstanceMetadata: false,
  });
}

const containerOf = (spec: Body): Body | undefined =>
  (spec.containers as Body[]).find(({ image }) => image?.includes(name));

const kubeconfigText = ({ host, port, serverName, ca }: ApiServer, tokenFile: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name,
        cluster: {
          server: `https://${host}:${port}`,
          "tls-server-name": serverName,
          "certificate-authority-data": Buffer.from(ca).toString("base64"),
        },
      },
    ],
    users: [{ name, user: { tokenFile } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });
