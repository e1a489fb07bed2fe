import { renameSync } from "node:fs";
import { join } from "node:path";

import { type Claim, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../cluster";
import { eventually } from "../eventually";
import { refused, unchanged, well } from "../../e2e/local-cloud";
import { allReady } from "./nodes";

/** What of the machines' mirror is taken away, and given back. */
const hide = ({ mirror }: RealCluster, part: string): void =>
  renameSync(join(mirror, part), join(mirror, `${part}.gone`));
const giveBack = ({ mirror }: RealCluster, part: string): void =>
  renameSync(join(mirror, `${part}.gone`), join(mirror, part));

const lost = async (cluster: RealCluster): Promise<string> =>
  (await cluster.names("worker")).at(-1)!;

const logged = "--- end of /var/log/zoned.log on";

/** kubeadm as it was, but for what it says that it is. */
const impostor = `#!/bin/sh
case "$*" in "version --output short") echo v1.0.0 ;; *) exec /usr/bin/kubeadm.real "$@" ;; esac
`;

/** One worker is lost; the one that takes its place meets one failure after the other, and joins in the end. */
export const lostWorkerClaims: readonly Claim[] = [
  {
    sentence: "with the package source gone, the machine that replaces a deleted worker names it",
    isGround: true,
    check: async (cluster) => {
      const name = await lost(cluster);
      hide(cluster, "apt");
      try {
        await cluster.inGroup("DELETE", `/Microsoft.Compute/virtualMachines/${name}`);
        const said = refused(await cluster.up("--refresh"));
        expectSaid(said, [name, "package source", "exit code", 'step "first boot"', logged, "404"]);
      } finally {
        giveBack(cluster, "apt");
      }
    },
  },
  {
    sentence: "with the registry gone, that machine names the images",
    check: async (cluster) => {
      const name = await lost(cluster);
      hide(cluster, "images");
      try {
        expectSaid(refused(await cluster.up()), [
          name,
          "images",
          "exit code",
          'step "first boot"',
          logged,
        ]);
      } finally {
        giveBack(cluster, "images");
      }
    },
  },
  {
    sentence: "with a kubeadm of another version on it, that machine names both versions",
    check: async (cluster) => {
      const name = await lost(cluster);
      const quoted = `'${impostor.replaceAll("'", `'\\''`)}'`;
      await cluster.inMachine(
        name,
        `mv /usr/bin/kubeadm /usr/bin/kubeadm.real; printf %s ${quoted} >/usr/bin/kubeadm; chmod 755 /usr/bin/kubeadm`,
      );
      try {
        expectSaid(refused(await cluster.up()), [
          name,
          'step "machine"',
          "v1.0.0",
          "exit code",
          logged,
        ]);
      } finally {
        await cluster.inMachine(name, "mv /usr/bin/kubeadm.real /usr/bin/kubeadm");
      }
    },
  },
  {
    sentence: "with no space left for its configuration, that machine says so",
    check: async (cluster) => {
      const name = await lost(cluster);
      await cluster.inMachine(name, "mount -t tmpfs -o size=4k,nr_inodes=3 full /etc/zoned");
      try {
        expectSaid(refused(await cluster.up()), [
          name,
          'step "',
          "No space left on device",
          "exit code",
          logged,
        ]);
      } finally {
        await cluster.inMachine(name, "umount /etc/zoned");
      }
    },
  },
  {
    sentence: "with all of it mended `pulumi up` has that machine join, and no machine is replaced",
    check: async (cluster) => {
      const before = await cluster.generations();
      well(await cluster.up());
      expectSame("machines", await cluster.generations(), before);
      const names = await cluster.names();
      await eventually(60, cluster.signal, () => allReady(cluster, names.length));
      unchanged(await cluster.up());
    },
  },
];
