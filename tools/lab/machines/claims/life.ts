import { refused, unchanged, succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { allReady, hasModules } from "./nodes";

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
