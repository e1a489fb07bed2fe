import { lookup } from "node:dns/promises";

import { isToBeAskedAgain } from "../../components/cluster/cluster-health";
import { ApiError, KubernetesApi, NoAnswer } from "../../components/cluster/kubernetes-api";
import {
  certificateAuthorities,
  certificates,
  encryptionKeyGeneration,
  kubeletCertificates,
  login,
  renewals,
  serviceAccountKey,
} from "./credentials";
import { type Check, controlPlanesOf, type Expected } from "./check";
import {
  etcdMembers,
  etcdSize,
  etcdVersions,
  etcdWrite,
  snapshots,
  staticPods,
} from "./control-planes";
import { type ClusterState, getClusterState } from "./cluster-state";
import { cordons, kernels, nodes, pressure, runtimes, startOff, versions } from "./nodes";
import { pendingPods, rollOuts } from "./workloads";
import { controlPlaneSpread, diskZones, dnsSpread, nodeZones } from "./zones";

export interface Cluster extends Expected {
  readonly kubeconfig: string;
  /** Where the API's name does not resolve: a rehearsal's. */
  readonly proxy?: string;
}

export interface Report {
  readonly server: string;
  /** When, as ISO 8601. */
  readonly time: string;
  /** Whether the API has answered at all. */
  readonly looked: boolean;
  readonly healthy: boolean;
  readonly checks: readonly Check[];
  readonly machines: Expected["machines"];
}

/**
 * Looks at a living cluster; all it writes is a Lease of its own. Where one API server of several may be what does not
 * answer, as while its machine reboots, it looks again.
 */
export async function checkCluster(cluster: Cluster): Promise<Report> {
  const since = Date.now();
  const { report, error } = await look(cluster);
  if (!(await isToBeAskedAgain(error, controlPlanesOf(cluster).length, since))) return report;
  return (await look(cluster)).report;
}

async function look(cluster: Cluster): Promise<{ report: Report; error?: Error }> {
  const api = new KubernetesApi(cluster.kubeconfig, cluster.proxy);
  const since = Date.now();
  const way = await wayTo(api);
  const { checks, looked, error } = await getClusterState(api)
    .then(
      (state) => ({
        looked: true,
        error: undefined,
        checks: [
          {
            name: "API",
            saw: `${way} is ready (all answers within ${Date.now() - since} ms)`,
            problems: [],
          },
          ...certificates(cluster, api),
          ...checksOf(cluster, state),
        ],
      }),
      (error: Error) => ({
        error,
        // A certificate that is refused is an answer too.
        looked: !(error instanceof NoAnswer) || error.isRefusedCertificate,
        checks: [
          {
            name: "API",
            saw: way,
            problems: [{ saw: error.message, fix: fixOf(error, cluster) }],
          },
          ...certificates(cluster, api),
        ],
      }),
    )
    .finally(() => api.close());
  const report = {
    server: api.server,
    time: new Date(api.now).toISOString(),
    looked,
    healthy: checks.every(({ problems }) => problems.length === 0),
    checks,
    machines: cluster.machines,
  };
  return { report, error };
}

/** The server, and how its name leads there. */
async function wayTo({ server, proxy }: KubernetesApi): Promise<string> {
  if (proxy !== undefined) return `${server} (by the proxy ${new URL(proxy).host})`;
  const { hostname } = new URL(server);
  return lookup(hostname).then(
    ({ address }) => `${server} (${address})`,
    ({ code }: NodeJS.ErrnoException) => `${server} (its name does not resolve: ${code})`,
  );
}

function fixOf(error: Error, { apiAddress }: Expected): string {
  if (!(error instanceof NoAnswer)) {
    return error instanceof ApiError && [401, 403].includes(error.status)
      ? "run pulumi up until it ends well, which writes the output kubeconfig anew; a certificate that has expired is named below"
      : "the text names what is not ready, most often an etcd without a majority: see if all control planes run; " +
          startOff;
  }
  if (error.code === "CERT_HAS_EXPIRED") {
    return "the API server's certificate has expired, which its machine could not renew (journalctl --unit zoned-certificates): on each control plane, kubeadm certs renew all, then restart its static pods";
  }
  if (error.isRefusedCertificate) {
    return "a proxy that inspects TLS (name the API's host in NO_PROXY), another cluster at that address, or a kubeconfig of a cluster before (pulumi up writes it anew): nothing is known of this cluster";
  }
  if (apiAddress !== undefined) {
    return (
      "the API is private: run this in the cluster's network, in one that leads there, or by an HTTP proxy that is there (pulumi config set apiProxy " +
      `http://proxy.example:3128, then pulumi up); where DNS does not know its name, a line in /etc/hosts does, with ${apiAddress} (docs/landing-zone.md, Where Pulumi runs). See if the control planes run, too; ${startOff}`
    );
  }
  if (error.code === "ENOTFOUND") {
    return "the name belongs to the public address of the load balancer: see if the resource group still exists, and which DNS server this machine asks";
  }
  // A cluster that is switched off looks, from here, as one that this network may not reach.
  return `see if apiAccessCidrs has the address of this machine, and if the control planes run; ${startOff}`;
}

/** Everything that is checked by what the API says. */
export const checksOf = (expected: Expected, state: ClusterState): Check[] =>
  [
    nodes(expected, state),
    nodeZones(expected, state),
    diskZones(expected, state),
    versions(expected, state),
    kernels(state),
    runtimes(state),
    staticPods(expected, state),
    renewals(expected, state),
    kubeletCertificates(expected, state),
    ...(expected.issuer === undefined ? [] : [login(expected.issuer, state.issuer)]),
    encryptionKeyGeneration(expected),
    serviceAccountKey(expected),
    certificateAuthorities(expected),
    etcdWrite(state),
    etcdMembers(expected, state),
    etcdVersions(state),
    etcdSize(expected, state),
    snapshots(expected, state),
    rollOuts(expected, state),
    controlPlaneSpread(expected, state),
    dnsSpread(state),
    cordons(state),
    pressure(state),
    pendingPods(state),
  ].map((check) => (check.notAsked === undefined ? check : { ...check, problems: [] }));
