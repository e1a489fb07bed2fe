import { join } from "node:path";

import { destroyImages, makeImage } from "../../../pulumi/image-stack";
import { Progress } from "../../../shared/progress";
import { succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { allReady } from "./nodes";

const pool = (count: number) => [{ name: "workers", count, size: "Standard_B2s" }];

const optionsOf = async (cluster: RealCluster) => ({
  stack: await cluster.imageStack(),
  file: join(cluster.mirror, "..", "image.json"),
  progress: new Progress({ write: () => true }),
});

/** Seconds from power-on to the end of first boot, and to the beginning of `kubeadm join`, by the machine's own log. */
async function bootTimes(cluster: RealCluster, name: string): Promise<readonly number[]> {
  const on = "$(($(date +%s) - $(cut -d. -f1 /proc/uptime)))";
  const at = (line: string) =>
    `date -d "$(sed -n 's/ ${line}$//p' /var/log/zoned.log | tail -1)" +%s`;
  const said = await cluster.inMachine(
    name,
    `on=${on}; echo $(($(${at("first boot: done")}) - on)) $(($(${at("bootstrap: kubeadm join: begins")}) - on))`,
  );
  return said.trim().split(" ").map(Number);
}

/** An image of a real machine, and a worker of it that has no way to packages and images. */
export const imageClaims: readonly Claim[] = [
  {
    sentence: "an image is made of a real machine, which is gone afterwards",
    isGround: true,
    check: async (cluster) => {
      const { image, packages, images } = await makeImage(await optionsOf(cluster));
      await cluster.configure({ image, workerPools: pool(2) });
      const names = (await cluster.reports()).map(({ name }) => name);
      expectSame(
        "machines",
        names.filter((name) => name.startsWith("builder")),
        [],
      );
      return `${Object.keys(packages).length} packages, ${Object.keys(images).length} images`;
    },
  },
  {
    sentence:
      "a worker of it joins with neither packages nor images within reach, and no machine is replaced",
    isGround: true,
    check: async (cluster) => {
      const before = await cluster.generations();
      const [first = ""] = await cluster.names("worker");
      await cluster.without(["apt", "images"], async () => succeeded(await cluster.up()));
      const after = await cluster.generations();
      const added = Object.keys(after).filter((name) => !(name in before));
      expectSame("machines that stay", { ...after, ...before }, after);
      await eventually(60, cluster.signal, () => allReady(cluster, Object.keys(after).length));
      const [[boot, join], [ownBoot, ownJoin]] = [
        await bootTimes(cluster, first),
        await bootTimes(cluster, added[0]!),
      ];
      return `from power-on to the end of first boot ${boot} s before and ${ownBoot} s of the image, to kubeadm join ${join} s and ${ownJoin} s`;
    },
  },
  {
    sentence: "a second `pulumi up` changes nothing, also when the image is deleted",
    check: async (cluster) => {
      unchanged(await cluster.up());
      await destroyImages(await optionsOf(cluster));
      unchanged(await cluster.up());
    },
  },
];
