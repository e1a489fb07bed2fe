import type { Claim } from "../claim";
import type { RealCluster } from "../real-cluster";

/** Conformance tests that ask what this program sets up: kube-proxy, the pod network, CoreDNS. */
const tests = [
  "Services should serve a basic endpoint from pods",
  "Services should serve multiport endpoints from pods",
  "Services should serve endpoints on same port and different protocols",
  "Services should be able to create a functioning NodePort service",
  "Services should be able to change the type from ExternalName to ClusterIP",
  "Services should have session affinity work for service with type clusterIP [LinuxOnly]",
  "Services should have session affinity work for NodePort service [LinuxOnly]",
  "DNS should provide DNS for the cluster",
  "DNS should provide DNS for services",
  "DNS should resolve DNS of partial qualified names for services [LinuxOnly]",
  "DNS should provide DNS for pods for Hostname",
  "DNS should provide DNS for ExternalName services",
  "DNS should support configurable pod DNS nameservers",
];

const passes = (test: string): Claim => ({
  sentence: `upstream's conformance test passes: ${test}`,
  check: (cluster) => cluster.upstreamTest(test),
});

export const upstreamClaims: readonly Claim[] = tests.map((test) =>
  passes(`[sig-network] ${test} [Conformance]`),
);

/** All that a conformant cluster has to pass: a night's work where processors are emulated. */
export const conformanceClaims = async (cluster: RealCluster): Promise<readonly Claim[]> =>
  (await cluster.conformanceTests()).map(passes);
