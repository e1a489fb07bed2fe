import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { stringify } from "yaml";

import { renderKubeconfig } from "../../components/kubeconfig";
import { encryptionAlgorithm } from "../../components/key-algorithm";
import { versions } from "../../components/versions";
import { Api, type ApiUser, kubeconfigOf } from "../../tools/local-azure/machines/simulated/api";
import { freePort } from "./listen";
import { testFolder } from "./test-folder";
import { built, output } from "./tools";

type Flags = Readonly<Record<string, string>>;

const running: ChildProcess[] = [];

afterAll(() => Promise.all(running.map(ended)));

/** Starts a program of the control plane, which writes into a log, until the test file has ended. */
export function spawned(
  program: string,
  flags: Flags,
  log: string,
  variables: Readonly<Record<string, string>> = {},
): ChildProcess {
  const out = openSync(log, "a");
  const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(built(program), words, {
    stdio: ["ignore", out, out],
    env: { ...process.env, ...variables },
  });
  closeSync(out);
  running.push(child);
  return child;
}

export async function ended(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exit;
}

/** A real etcd of one member, whose files are in a folder; where it answers. */
export async function startEtcd(folder: string): Promise<string> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const flags = {
    "data-dir": join(folder, "data"),
    "listen-client-urls": url,
    "advertise-client-urls": url,
    "listen-peer-urls": `http://127.0.0.1:${await freePort()}`,
    "unsafe-no-fsync": "true",
  };
  spawned("etcd", flags, join(folder, "etcd.log"));
  return url;
}

/** For keys whose algorithm no claim is about: kubeadm takes a tenth of a second for each of RSA. */
export const quickAlgorithm = "ECDSA-P256";

/**
 * Certificates of an API server at this address, in `pki` of a folder, and super-admin.conf beside it, by the real
 * kubeadm; returns its configuration's file.
 *
 * @param more that kubeadm is to make after these
 */
export function makeCertificates(
  folder: string,
  port: number,
  address = "127.0.0.1",
  more: readonly string[] = [],
): string {
  const pki = join(folder, "pki");
  mkdirSync(pki, { recursive: true });
  const config = join(folder, "init.yaml");
  const phase = (algorithm: string, ...words: string[]) => {
    writeFileSync(
      config,
      stringify({
        apiVersion: "kubeadm.k8s.io/v1beta4",
        kind: "ClusterConfiguration",
        kubernetesVersion: `v${versions.kubernetes}`,
        controlPlaneEndpoint: `${address}:${port}`,
        certificatesDir: pki,
        encryptionAlgorithm: algorithm,
        apiServer: { certSANs: [address] },
      }),
    );
    output(built("kubeadm"), ["init", "phase", ...words, "--config", config]);
  };
  phase(encryptionAlgorithm, "certs", "sa");
  for (const what of ["ca", "apiserver", ...more]) phase(quickAlgorithm, "certs", what);
  phase(quickAlgorithm, "kubeconfig", "super-admin", "--kubeconfig-dir", folder);
  return config;
}

/** What an API server of kubeadm's certificates is started with here. */
export const apiServerFlags = (etcd: string, port: number, pki: string): Flags => ({
  "etcd-servers": etcd,
  "bind-address": "127.0.0.1",
  "secure-port": `${port}`,
  "service-cluster-ip-range": "10.96.0.0/24",
  "endpoint-reconciler-type": "none",
  "authorization-mode": "RBAC",
  "client-ca-file": `${pki}/ca.crt`,
  "tls-cert-file": `${pki}/apiserver.crt`,
  "tls-private-key-file": `${pki}/apiserver.key`,
  "service-account-issuer": "https://kubernetes.default.svc",
  "service-account-key-file": `${pki}/sa.pub`,
  "service-account-signing-key-file": `${pki}/sa.key`,
});

/** Done when the API server answers; an error with the end of its log when it has ended, or does not. */
export async function apiIsReady(
  server: ChildProcess,
  isReady: () => Promise<boolean>,
  log: string,
): Promise<void> {
  for (let tries = 0; !(await isReady()); tries++) {
    if (tries > 400 || server.exitCode !== null) {
      throw new Error(readFileSync(log, "utf8").slice(-4000));
    }
    await wait(200);
  }
}

/** A real API server with certificates of kubeadm, which may be started anew. */
export class RealApiServer {
  readonly pki: string;
  private server: ChildProcess | undefined;

  private constructor(
    /** Where its certificates, super-admin.conf and its log are. */
    readonly folder: string,
    readonly port: number,
    private readonly etcd: string,
    /** kubeadm's configuration. */
    readonly configuration: string,
  ) {
    this.pki = join(folder, "pki");
  }

  /**
   * Its certificates.
   *
   * @param like one that has the same CAs and keys
   */
  static async prepare(folder: string, etcd: string, like?: RealApiServer): Promise<RealApiServer> {
    const port = await freePort();
    if (like) cpSync(like.pki, join(folder, "pki"), { recursive: true });
    return new RealApiServer(folder, port, etcd, makeCertificates(folder, port));
  }

  async start(flags: Flags = {}, variables: Readonly<Record<string, string>> = {}): Promise<void> {
    const log = join(this.folder, "api.log");
    const all = { ...apiServerFlags(this.etcd, this.port, this.pki), ...flags };
    await ended(this.server);
    this.server = spawned("kube-apiserver", all, log, variables);
    await apiIsReady(this.server, () => this.api.isReady(), log);
  }

  private get admin() {
    return kubeconfigOf(readFileSync(join(this.folder, "super-admin.conf"), "utf8"));
  }

  of(user: ApiUser): Api {
    const { ca } = this.admin;
    return new Api({ host: "127.0.0.1", port: this.port, serverName: "kubernetes", ca }, user);
  }

  /** Of who may do everything. */
  get api(): Api {
    return this.of(this.admin.user);
  }

  /** The same as the stack's output has it. */
  get kubeconfig(): string {
    const { ca, user } = this.admin;
    return renderKubeconfig({
      ...{ clusterName: "demo", server: `https://127.0.0.1:${this.port}`, caCert: ca },
      ...{ clientCert: user.cert!, clientKey: user.key! },
    });
  }
}

/** One with an etcd of its own. */
export async function startApiServer(flags: Flags = {}): Promise<RealApiServer> {
  const folder = testFolder();
  const server = await RealApiServer.prepare(folder, await startEtcd(folder));
  await server.start(flags);
  return server;
}
