import { refused, unchanged, succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { allReady, hasModules } from "./nodes";
import { apiRule } from "./pods";

/** A scheduler whose module the test takes away; nothing else uses it. */
const scheduler = "lblc";
const fileOfModule = `$(modinfo -n ip_vs_${scheduler})`;

/** Another after each boot. */
export const bootOf = (cluster: RealCluster, machine: string): Promise<string> =>
  cluster.inMachine(machine, "cat /proc/sys/kernel/random/boot_id");

export const lifeClaims: readonly Claim[] = [
  {
    sentence: "a worker that is restarted comes back Ready by itself, with every module of IPVS",
    check: async (cluster) => {
      const [worker = ""] = await cluster.names("worker");
      const before = await bootOf(cluster, worker);
      const since = Date.now();
      await cluster.ask("POST", worker, "restart");
      if ((await bootOf(cluster, worker)) === before)
        throw new Error(`${worker} was not restarted`);
      await eventually(600, cluster.signal, async () => {
        const lease = await cluster.kubectl([
          ...["get", "lease", worker, "--namespace", "kube-node-lease"],
          ...["--output", "jsonpath={.spec.renewTime}"],
        ]);
        if (Date.parse(lease) < since) throw new Error(`the kubelet last reported at ${lease}`);
        await allReady(cluster, (await cluster.names()).length);
        await hasModules(cluster, worker);
        const table = await cluster.inMachine(worker, "ipvsadm -Ln");
        expectAll("IPVS after the restart", table.split(/\s+/), ["10.96.0.1:443", "10.96.0.10:53"]);
      });
      return `${Math.round((Date.now() - since) / 1000)} s from the request`;
    },
  },
  {
    sentence:
      "a kernel module that kube-proxy's new scheduler needs and a machine lacks is named; with it there `pulumi up` succeeds",
    check: async (cluster) => {
      const [worker = ""] = await cluster.names("worker");
      const before = await cluster.generations();
      await cluster.inMachine(
        worker,
        `path=${fileOfModule}; rmmod ip_vs_${scheduler} || true; mv $path /root/; echo $path >/root/module.path`,
      );
      try {
        await cluster.configure({ proxyScheduler: scheduler });
        const said = refused(await cluster.up());
        expectSaid(said, [worker, 'step "kernel modules"', `ip_vs_${scheduler}`, "exit code"]);
      } finally {
        await cluster.inMachine(
          worker,
          "mv /root/ip_vs_*.ko* $(dirname $(cat /root/module.path))/",
        );
      }
      succeeded(await cluster.up());
      expectSame("machines", await cluster.generations(), before);
      await eventually(240, cluster.signal, async () => {
        const table = await cluster.inMachine(worker, "ipvsadm -Ln");
        expectAll("scheduler", table.split(/\s+/), [scheduler]);
      });
      await cluster.configure({});
      succeeded(await cluster.up());
    },
  },
  {
    sentence: "machines outlive a local Azure that is killed, and the next one takes them over",
    check: async (cluster) => {
      const names = await cluster.names();
      const boots = () => Promise.all(names.map((name) => bootOf(cluster, name)));
      const before = await boots();
      await cluster.crash();
      expectSame("boots", await boots(), before);
      await eventually(120, cluster.signal, () => allReady(cluster, names.length));
    },
  },
  {
    sentence: "after all of this, `pulumi up` with a refresh changes nothing",
    check: async (cluster) => unchanged(await cluster.up("--refresh")),
  },
];

/** The worker that is lost, and the one that takes its place. */
const lost = async (cluster: RealCluster): Promise<string> =>
  (await cluster.names("worker")).at(-1)!;

/** What an error quotes of the machine's own log. */
const logged = "--- end of /var/log/zoned.log on";

/** Has `pulumi up` fail on what this script does to a machine, and undoes it; returns what the engine said. */
async function brokenBy(
  cluster: RealCluster,
  [machine, script, undoing]: readonly [machine: string, script: string, undoing: string],
  ...flags: readonly string[]
): Promise<string> {
  await cluster.inMachine(machine, script);
  try {
    return refused(await cluster.up(...flags));
  } finally {
    await cluster.inMachine(machine, undoing);
  }
}

/** The same by a script in the place of a program, which it may call as `<path>.real`. */
const withImpostor = (
  cluster: RealCluster,
  machine: string,
  path: string,
  script: string,
  ...flags: readonly string[]
): Promise<string> => {
  const written = `echo ${Buffer.from(script).toString("base64")} | base64 -d >${path}`;
  const replaced = `mv ${path} ${path}.real; ${written}; chmod 755 ${path}`;
  return brokenBy(cluster, [machine, replaced, `mv ${path}.real ${path}`], ...flags);
};

/**
 * Leaves too little for an image that is not there any more; the last twentieth of a disk is
 * root's.
 */
const fillDisk = `
image=$(ctr --namespace k8s.io images list | awk '/kube-proxy:/ { print $3; exit }')
ctr --namespace k8s.io images list | awk -v image="$image" '$3 == image { print $1 }' |
  xargs ctr --namespace k8s.io images remove --sync
fallocate --length $(($(stat --file-system --format '%f * %S' /) - 32 * 1024 * 1024)) /full
`;

const otherVersion = `#!/bin/sh
case "$*" in "version --output short") echo v1.0.0 ;; *) exec /usr/bin/kubeadm.real "$@" ;; esac
`;

const oldConfiguration = `#!/bin/sh
case "$1" in join) sed -i s,kubeadm.k8s.io/v1beta4,kubeadm.k8s.io/v1beta1, /etc/zoned/kubeadm-join.yaml ;; esac
exec /usr/bin/kubeadm.real "$@"
`;

/** The search for the API takes twenty minutes of time before it gives up; here it is one. */
const impatient = `#!/bin/bash
[[ $* == *await_api ]] && set -- "$1" 60 "\${@:3}"
exec /usr/bin/timeout.real "$@"
`;

/**
 * One worker is lost; the one that takes its place meets one failure after the other, and joins in
 * the end.
 */
export const lostWorkerClaims: readonly Claim[] = [
  {
    sentence: "with the package source gone, the machine that replaces a deleted worker names it",
    isGround: true,
    check: async (cluster) => {
      const name = await lost(cluster);
      await cluster.ask("DELETE", name);
      const said = refused(await cluster.without(["apt"], () => cluster.up("--refresh")));
      expectSaid(said, [name, "package source", "exit code", 'step "first boot"', logged, "404"]);
    },
  },
  {
    sentence: "with the registry gone, that machine names the images",
    check: async (cluster) => {
      const said = refused(await cluster.without(["images"], () => cluster.up()));
      expectSaid(said, [await lost(cluster), "images", "exit code", 'step "first boot"', logged]);
    },
  },
  {
    sentence: "with a disk too full for an image, that machine says so",
    check: async (cluster) => {
      const name = await lost(cluster);
      const said = await brokenBy(cluster, [name, fillDisk, "rm /full"]);
      const words = ["images", "no space left on device", "exit code", 'step "first boot"', logged];
      expectSaid(said, [name, ...words]);
    },
  },
  {
    sentence: "with a kubeadm of another version on it, that machine names both versions",
    check: async (cluster) => {
      const name = await lost(cluster);
      const said = await withImpostor(cluster, name, "/usr/bin/kubeadm", otherVersion);
      expectSaid(said, [name, 'step "packages"', "v1.0.0", "exit code", logged]);
    },
  },
  {
    sentence: "with no space left for its configuration, that machine says so",
    check: async (cluster) => {
      const name = await lost(cluster);
      const full = "mount -t tmpfs -o size=4k,nr_inodes=3 full /etc/zoned";
      const said = await brokenBy(cluster, [name, full, "umount /etc/zoned"]);
      expectSaid(said, [name, 'step "', "No space left on device", "exit code", logged]);
    },
  },
  {
    sentence:
      "without the rule that admits machines to the API, that machine names the search for it (given one minute of its twenty)",
    check: async (cluster) => {
      const name = await lost(cluster);
      await cluster.inGroup("DELETE", apiRule);
      const said = await withImpostor(cluster, name, "/usr/bin/timeout", impatient);
      expectSaid(said, [name, 'step "search for the API"', "exit code", logged]);
    },
  },
  {
    sentence:
      "with the rule back by a refresh and a configuration that kubeadm refuses, that machine quotes kubeadm",
    check: async (cluster) => {
      const name = await lost(cluster);
      const said = await withImpostor(
        cluster,
        name,
        "/usr/bin/kubeadm",
        oldConfiguration,
        "--refresh",
      );
      expectSaid(said, [name, 'step "kubeadm join"', "v1beta1", "exit code", logged]);
    },
  },
  {
    sentence:
      "with all of it repaired `pulumi up` has that machine join, and no machine is replaced",
    check: async (cluster) => {
      const before = await cluster.generations();
      succeeded(await cluster.up());
      expectSame("machines", await cluster.generations(), before);
      const names = await cluster.names();
      await eventually(60, cluster.signal, () => allReady(cluster, names.length));
      unchanged(await cluster.up());
    },
  },
];
