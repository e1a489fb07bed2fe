import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { stringify } from "yaml";

import { encryptionAlgorithm } from "../../components/key-algorithm";
import { versions } from "../../components/versions";
import { Api, kubeconfigOf } from "../../tools/local-azure/machines/simulated/api";
import { freePort } from "./listen";
import { testFolder } from "./test-folder";
import { built, output } from "./tools";

type Flags = Readonly<Record<string, string>>;

/** Starts a program of the control plane, which writes into a log. */
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
  return child;
}

export async function ended(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exit;
}

/** A real etcd of one member, whose files are in a folder; and where it answers. */
export async function startEtcd(folder: string): Promise<{ etcd: ChildProcess; url: string }> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const flags = {
    "data-dir": join(folder, "data"),
    "listen-client-urls": url,
    "advertise-client-urls": url,
    "listen-peer-urls": `http://127.0.0.1:${await freePort()}`,
    "unsafe-no-fsync": "true",
  };
  return { etcd: spawned("etcd", flags, join(folder, "etcd.log")), url };
}

/** For keys whose algorithm no claim is about: kubeadm takes a tenth of a second for each of RSA. */
export const quickAlgorithm = "ECDSA-P256";

/**
 * Certificates of an API server at 127.0.0.1, in `pki` of a folder, and super-admin.conf beside it, by the real
 * kubeadm; returns its configuration's file.
 */
export function makeCertificates(folder: string, port: number): string {
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
        controlPlaneEndpoint: `127.0.0.1:${port}`,
        certificatesDir: pki,
        encryptionAlgorithm: algorithm,
        apiServer: { certSANs: ["127.0.0.1"] },
      }),
    );
    output(built("kubeadm"), ["init", "phase", ...words, "--config", config]);
  };
  phase(encryptionAlgorithm, "certs", "sa");
  for (const what of ["ca", "apiserver"]) phase(quickAlgorithm, "certs", what);
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

/**
 * A real API server with an etcd and certificates of its own, in a folder that goes with it, and the client of who may
 * do everything.
 */
export async function startApiServer(flags: Flags = {}) {
  const folder = testFolder();
  const pki = join(folder, "pki");
  const log = join(folder, "api.log");
  const port = await freePort();
  const config = makeCertificates(folder, port);
  const { etcd, url } = await startEtcd(folder);
  const all = { ...apiServerFlags(url, port, pki), ...flags };
  const server = spawned("kube-apiserver", all, log);
  const { ca, user } = kubeconfigOf(readFileSync(join(folder, "super-admin.conf"), "utf8"));
  const place = { host: "127.0.0.1", port, serverName: "kubernetes", ca };
  const api = new Api(place, user);
  const stop = async () => {
    await ended(server);
    await ended(etcd);
  };
  try {
    await apiIsReady(server, () => api.isReady(), log);
  } catch (error) {
    await stop();
    throw error;
  }
  return { api, place, user, folder, pki, config, stop };
}
