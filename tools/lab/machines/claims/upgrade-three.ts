import { current, previousMinor } from "../../../programs/releases";
import { refused, succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { whileWriting } from "../writer";
import { allReady } from "./nodes";
import { expectMembers } from "./three";
import { manifest, unchangedAfter, upgrade } from "./upgrade";

/**
 * Azure's balancer leaves a server that has ended out after two probes, 5 s apart. Where processors are
 * emulated each probe waits up to 20 s for its answer, and a client that has begun to connect waits
 * for another 30.
 */
const mostSilence = 90;

/** One API server of three is silent: until then one new connection of three is not answered. */
async function untilLeftOut(cluster: RealCluster): Promise<void> {
  for (let connections = 0; connections < 10; connections++) {
    await cluster.kubectl(["get", "--raw", "/readyz", "--request-timeout", "5s"]);
  }
}

export const upgradeThreeClaims: readonly Claim[] = [
  {
    sentence: "while one member's etcd does not run, an upgrade is refused in the preview already",
    check: async (cluster) => {
      const [first = "", , last = ""] = await cluster.names();
      await cluster.inMachine(last, `mv ${manifest} /root/`);
      try {
        await eventually(300, cluster.signal, () =>
          cluster.inMachine(last, "! pgrep --exact etcd"),
        );
        await eventually(300, cluster.signal, () => untilLeftOut(cluster));
        await cluster.configure({ kubernetesVersion: current.version });
        const said = refused(await cluster.stack.preview());
        if (!new RegExp(`- ${last}: .*\\betcd\\b`).test(said)) {
          throw new Error(`${last} and its etcd are not named as the reason: ${said}`);
        }
      } finally {
        await cluster.inMachine(last, `mv /root/etcd.yaml ${manifest}`);
        await cluster.configure({});
      }
      await eventually(600, cluster.signal, () => expectMembers(cluster, first));
    },
  },
  {
    sentence: `one \`pulumi up\` upgrades three control planes from ${previousMinor.version} to ${current.version}, and the API is silent for no longer than ${mostSilence} s`,
    isGround: true,
    check: async (cluster) => {
      const { said, silence } = await upgrade(cluster, current.version);
      await expectMembers(cluster, (await cluster.names())[0]!);
      if (silence > mostSilence) throw new Error(`it was silent for ${silence} s: ${said}`);
      return said;
    },
  },
  unchangedAfter(current.version),
  {
    sentence: "from three control planes to one: two leave etcd in order, and no write is lost",
    isGround: true,
    check: async (cluster) => {
      const settings = { kubernetesVersion: current.version, controlPlaneCount: 1 };
      await cluster.configure(settings);
      const { written } = await whileWriting(cluster, async () => succeeded(await cluster.up()));
      const names = await cluster.names();
      expectSame("control planes", names.length, 1);
      await expectMembers(cluster, names[0]!);
      await eventually(120, cluster.signal, () => allReady(cluster, 1));
      return `${written.acknowledged.length} writes acknowledged, at most ${written.silence} s without one`;
    },
  },
  {
    sentence: "after that a second `pulumi up` changes nothing",
    check: async (cluster) => unchanged(await cluster.up()),
  },
];
