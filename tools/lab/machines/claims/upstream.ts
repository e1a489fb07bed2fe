import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { parse, stringify } from "yaml";

import { versions } from "../../../../components/versions";
import type { Address } from "../../../local-azure/daemon/attachment";
import { apiNameIn } from "../../../local-azure/rehearsal/cluster-view";
import { install, type InstallOptions, placesOf } from "../../../programs/installs";
import { ofModule, type Tool } from "../../../programs/tools";
import { writeWhole } from "../../../shared/files";
import { run } from "../../../shared/run";
import { Interrupted } from "../../../shared/user-error";
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
  check: async (cluster) => {
    const { progress, signal } = cluster;
    await runUpstreamTest(test, { ...(await cluster.access()), progress, signal });
  },
});

export const upstreamClaims: readonly Claim[] = tests.map((test) =>
  passes(`[sig-network] ${test} [Conformance]`),
);

/** All that a conformant cluster has to pass: a night's work where processors are emulated. */
export const conformanceClaims = async ({
  progress,
  signal,
}: RealCluster): Promise<readonly Claim[]> =>
  (await conformanceTests({ progress, signal })).map(passes);

const archive = `https://dl.k8s.io/release/v${versions.kubernetes}/kubernetes-test-linux-amd64.tar.gz`;

/** Upstream's end-to-end tests. */
const e2e: Tool = {
  ...ofModule({
    ...{ name: "e2e", folder: "kubernetes", module: "k8s.io/kubernetes", typical: "10 min" },
    binaries: ["e2e.test"],
    build: { packages: ["k8s.io/kubernetes/test/e2e"], binary: "e2e.test", isTest: true },
  }),
  downloads: [
    {
      url: archive,
      sha256: { kind: "bare", url: `${archive}.sha256` },
      members: { "e2e.test": "kubernetes/test/bin/e2e.test" },
    },
  ],
};

const program = placesOf(e2e)["e2e.test"]!;

/** What Ginkgo's JSON report has of a test. */
interface Spec {
  readonly LeafNodeType: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string };
}

interface UpstreamTestOptions extends InstallOptions {
  readonly kubectl: string;
  /** As the stack's outputs have it. */
  readonly kubeconfig: string;
  /** Where its API answers on this host. */
  readonly address: Address;
  /** For what is written while it runs, and gone afterwards. */
  readonly folder: string;
}

/** The names of all tests that a conformant cluster passes. */
async function conformanceTests(options: InstallOptions): Promise<string[]> {
  await install([e2e], options);
  const list = await run([program, "--list-conformance-tests"], options);
  return (parse(list) as { readonly codename: string }[]).map(({ codename }) => codename);
}

/**
 * Runs the one of upstream's tests that has exactly this name.
 *
 * @throws Error with what the test said when it failed, or was not run
 */
async function runUpstreamTest(name: string, options: UpstreamTestOptions): Promise<void> {
  const { kubectl, signal } = options;
  await install([e2e], options);
  // The kubeconfig in it is the administrator's.
  const folder = mkdtempSync(join(options.folder, "e2e-"));
  try {
    const { kubeconfig, within } = byName({ ...options, folder });
    const report = join(folder, "report.json");
    const flags = [
      ...["--provider=skeleton", `--kubeconfig=${kubeconfig}`, `--kubectl-path=${kubectl}`],
      ...["--dump-logs-on-failure=false", "--ginkgo.no-color", `--ginkgo.json-report=${report}`],
      `--ginkgo.focus=${name.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)}$`,
    ];
    const command = [...within, program, ...flags];
    const ended = await run(command, { signal }).catch((error: unknown) => error);
    if (ended instanceof Interrupted) throw ended;
    expectPassed(specsIn(report, ended));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fails unless one test was run, and passed, and nothing around it failed. */
export function expectPassed(specs: readonly Spec[]): void {
  const bad = specs.find(({ State }) => !["passed", "skipped"].includes(State));
  if (bad) throw new Error(`it ${bad.State}: ${bad.Failure?.Message ?? ""}`);
  const passed = specs.filter((one) => one.LeafNodeType === "It" && one.State === "passed");
  if (passed.length !== 1) throw new Error(`got ${passed.length} tests that passed, expected one`);
}

/**
 * The API under its own name, and where that name leads to it: upstream's tests pass over a
 * kubeconfig's tls-server-name, and its certificate is for no address of this host.
 */
export function byName({
  kubeconfig,
  address: { host, port },
  folder,
}: Pick<UpstreamTestOptions, "kubeconfig" | "address" | "folder">) {
  const name = apiNameIn(kubeconfig);
  const config = parse(kubeconfig);
  config.clusters[0].cluster.server = `https://${name}:${port}`;
  const files = { kubeconfig: join(folder, "kubeconfig"), hosts: join(folder, "hosts") };
  writeWhole(files.kubeconfig, stringify(config));
  writeWhole(files.hosts, `${host} localhost ${name}\n`);
  const script = 'mount --bind "$1" /etc/hosts; shift; exec "$@"';
  const within = ["unshare", "--mount", "sh", "-ec", script, "sh", files.hosts];
  return { kubeconfig: files.kubeconfig, within };
}

/** All that was run; `ended` is what the program said where it wrote no report. */
function specsIn(report: string, ended: unknown): readonly Spec[] {
  try {
    const suites = JSON.parse(readFileSync(report, "utf8")) as readonly { SpecReports: Spec[] }[];
    return suites.flatMap(({ SpecReports }) => SpecReports);
  } catch {
    throw ended instanceof Error ? ended : new Error(`it wrote no report, and said: ${ended}`);
  }
}
