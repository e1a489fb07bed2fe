import { renameSync } from "node:fs";
import { join } from "node:path";

import type { Run } from "../../../local-azure/rehearsal/rehearsal";
import { refused, succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { apiRule } from "./pods";
import { allReady } from "./nodes";

const lost = async (cluster: RealCluster): Promise<string> =>
  (await cluster.names("worker")).at(-1)!;

/** What an error quotes of the machine's own log. */
const logged = "--- end of /var/log/zoned.log on";

/**
 * Does something to the cluster, has `pulumi up` fail on it, and repairs it; returns what the engine
 * said.
 */
async function brokenBy(
  disturb: () => Promise<unknown> | void,
  undoing: () => Promise<unknown> | void,
  up: () => Promise<Run>,
): Promise<string> {
  await disturb();
  try {
    return refused(await up());
  } finally {
    await undoing();
  }
}

/** With a part of the machines' mirror taken away. */
const without = (
  { mirror }: RealCluster,
  part: string,
  up: () => Promise<Run>,
): Promise<string> => {
  const [here, gone] = [join(mirror, part), join(mirror, `${part}.gone`)];
  return brokenBy(
    () => renameSync(here, gone),
    () => renameSync(gone, here),
    up,
  );
};

/**
 * With a program of the machine's replaced by a script, which may call the real one as
 * `<path>.real`.
 */
const withImpostor = (
  cluster: RealCluster,
  machine: string,
  path: string,
  script: string,
  flags: readonly string[] = [],
): Promise<string> =>
  brokenBy(
    () =>
      cluster.inMachine(
        machine,
        `mv ${path} ${path}.real; echo ${Buffer.from(script).toString("base64")} | base64 -d >${path}; chmod 755 ${path}`,
      ),
    () => cluster.inMachine(machine, `mv ${path}.real ${path}`),
    () => cluster.up(...flags),
  );

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
      const said = await without(cluster, "apt", () => cluster.up("--refresh"));
      expectSaid(said, [name, "package source", "exit code", 'step "first boot"', logged, "404"]);
    },
  },
  {
    sentence: "with the registry gone, that machine names the images",
    check: async (cluster) => {
      const said = await without(cluster, "images", () => cluster.up());
      expectSaid(said, [await lost(cluster), "images", "exit code", 'step "first boot"', logged]);
    },
  },
  {
    sentence: "with a disk too full for an image, that machine says so",
    check: async (cluster) => {
      const name = await lost(cluster);
      const said = await brokenBy(
        () => cluster.inMachine(name, fillDisk),
        () => cluster.inMachine(name, "rm /full"),
        () => cluster.up(),
      );
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
      const said = await brokenBy(
        () => cluster.inMachine(name, "mount -t tmpfs -o size=4k,nr_inodes=3 full /etc/zoned"),
        () => cluster.inMachine(name, "umount /etc/zoned"),
        () => cluster.up(),
      );
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
      const said = await withImpostor(cluster, name, "/usr/bin/kubeadm", oldConfiguration, [
        "--refresh",
      ]);
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
