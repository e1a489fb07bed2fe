import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ResourceGroup } from "@pulumi/azure-native/resources";
import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";
import { parse } from "yaml";

import { KubeProxy, KubeProxyArgs } from "../components/add-ons/kube-proxy";
import { takeOldRulesAway } from "../components/kube-proxy";
import { dependenciesOf, Recorder } from "./record";
import { sound } from "./sample";

type Change = Partial<typeof sound> & Pick<KubeProxyArgs, "proxyModeBefore">;

async function build({ proxyModeBefore, ...change }: Change = {}) {
  const recorder = await Recorder.start();
  const provider = new Provider("kubernetes", { kubeconfig: "{}" });
  new KubeProxy(
    "kube-proxy",
    {
      resourceGroup: new ResourceGroup("cluster"),
      settings: { ...sound, ...change },
      apiServer: { name: "api.example", port: 6443 },
      proxyModeBefore,
    },
    { provider, transformations: [recorder.watch] },
  );
  const one = (kind: string) => recorder.only(`kubernetes:${kind}`);
  return {
    recorder,
    configMap: await one("core/v1:ConfigMap"),
    daemonSet: await one("apps/v1:DaemonSetPatch"),
    kubeadms: await one("core/v1:ConfigMapPatch"),
  };
}

const podOf = async (change: Change) => (await build(change)).daemonSet.inputs.spec.template.spec;

it("gives kube-proxy all that it is started with", async () => {
  const { configMap } = await build({
    proxyMode: "ipvs",
    proxyScheduler: "wlc",
    proxySyncPeriod: "15m",
  });

  expect(parse(configMap.inputs.data["config.conf"])).toEqual({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" },
    mode: "ipvs",
    clusterCIDR: sound.podCidr,
    ipvs: { scheduler: "wlc", syncPeriod: "15m" },
  });
  const kubeconfig = parse(configMap.inputs.data["kubeconfig.conf"]);
  expect(kubeconfig.clusters[0].cluster.server).toBe("https://api.example:6443");
});

it("leaves the time between two looks at all rules to kube-proxy unless it is set", async () => {
  const { configMap } = await build({ proxyMode: "ipvs", proxySyncPeriod: "" });

  expect(parse(configMap.inputs.data["config.conf"]).ipvs).toEqual({ scheduler: "rr" });
});

it("never changes a configuration that is mounted, since kube-proxy would end on all nodes at once", async () => {
  const [before, after] = [
    await build({ proxyMode: "ipvs" }),
    await build({ proxyMode: "nftables" }),
  ];

  const name = ({ configMap }: typeof before) => configMap.inputs.metadata.name;
  expect(name(after)).not.toBe(name(before));
  expect(after.configMap.inputs.immutable).toBe(true);
  const { volumes } = after.daemonSet.inputs.spec.template.spec;
  expect(volumes).toEqual([{ name: "kube-proxy", configMap: { name: name(after) } }]);
  expect(await dependenciesOf(after.daemonSet)).toContain(after.configMap.resource);
});

it("goes from node to node, and not on from one whose kube-proxy ends", async () => {
  const { spec } = (await build()).daemonSet.inputs;

  expect(spec.updateStrategy).toEqual({
    type: "RollingUpdate",
    rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
  });
  expect(spec.minReadySeconds).toBeGreaterThan(0);
});

const modes = ["ipvs", "iptables", "nftables"] as const;
type Mode = (typeof modes)[number];

/** Runs a script in kube-proxy's pod, which has these programs; returns its exit code and all that it called. */
function inPod(script: string, programs: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "zoned-rules-"));
  for (const [name, body] of Object.entries(programs)) {
    const text = `#!/bin/sh\necho "${name} $*" >>${folder}/calls\n${body}\n`;
    writeFileSync(join(folder, name), text, { mode: 0o755 });
  }
  const env = { PATH: `${folder}:/usr/bin:/bin` };
  const { status } = spawnSync("sh", ["-c", script], { cwd: folder, env });
  const calls = readFileSync(join(folder, "calls"), "utf8").trim().split("\n");
  rmSync(folder, { recursive: true });
  return { status, calls };
}

/** Whether the mode's probe says yes on a node of which there is the dump of a real kube-proxy in `kernel`. */
async function probed(proxyMode: Mode, kernel: Mode): Promise<boolean> {
  const [{ name, startupProbe }] = (await podOf({ proxyMode })).containers;
  expect(name).toBe("kube-proxy");
  const [shell, flag, script] = startupProbe.exec.command;
  expect([shell, flag]).toEqual(["sh", "-c"]);
  const golden = join(__dirname, "..", "kube-proxy", "golden", kernel);
  const { status } = inPod(script, {
    iptables: `grep -s -- "^-A $4 " ${golden}/iptables-save.txt`,
    nft: `grep -s "table $3 $4 {" ${golden}/nft.txt && grep -s "chain $5 {" ${golden}/nft.txt`,
    sleep: "kill $PPID",
  });
  return status === 0;
}

it.each(modes)(
  "counts as started in %s once its rules are in the kernel, and not by those of another mode",
  async (mode) => {
    const answers = await Promise.all(modes.map((kernel) => probed(mode, kernel)));

    expect(modes.filter((_, index) => answers[index])).toEqual([mode]);
  },
);

it("gives kube-proxy ten minutes for its first rules", async () => {
  const [{ startupProbe }] = (await podOf({})).containers;

  expect(startupProbe.timeoutSeconds * startupProbe.failureThreshold).toBe(600);
});

it("is a burstable pod, since the kernel gives a best-effort one the least of a busy node", async () => {
  const [{ resources }] = (await podOf({})).containers;

  expect(parseFloat(resources.requests.cpu)).toBeGreaterThan(0);
  expect(resources.limits).toBeUndefined();
});

it("has kubeadm's own configuration follow when no node mounts it any more", async () => {
  const { kubeadms, daemonSet, configMap } = await build();

  expect(kubeadms.inputs.data["config.conf"]).toBe(configMap.inputs.data["config.conf"]);
  expect(await dependenciesOf(kubeadms)).toContain(daemonSet.resource);
});

it.each([
  ["ipvs", "iptables"],
  ["ipvs", "nftables"],
  ["iptables", "ipvs"],
] as const)(
  "has what is left of %s taken away before it starts in %s, which it does not do itself",
  async (before, now) => {
    const script = takeOldRulesAway(before, now);

    expect(script).toBeDefined();
    expect((await podOf({ proxyMode: now, proxyModeBefore: before })).initContainers).toEqual([
      expect.objectContaining({ command: ["sh", "-c", script] }),
    ]);
  },
);

/** What the script that takes old rules away calls to change the node, and its exit code. */
function takenAway(sets: string, failures: number, before: "ipvs" | "iptables" = "ipvs") {
  const script = takeOldRulesAway(before, before === "ipvs" ? "nftables" : "ipvs")!;
  const { status, calls } = inPod(script, {
    ipset: `[ "$1" = destroy ] || printf '${sets}'`,
    "iptables-save": "echo ':KUBE-FIREWALL - [0:0]'",
    "kube-proxy": `echo >>tries; [ $(wc -l <tries) -gt ${failures} ]`,
  });
  return { status, calls: calls.filter((call) => !/list|save/.test(call)) };
}

it("tries again after kube-proxy's first clean-up has failed, and takes away its sets and no others", () => {
  expect(takenAway("KUBE-6-CLUSTER-IP\\ncali60s:nets\\nKUBE-6-LOOP-BACK\\n", 1)).toEqual({
    status: 0,
    calls: [
      "kube-proxy --cleanup",
      "kube-proxy --cleanup",
      "ipset destroy KUBE-6-CLUSTER-IP",
      "ipset destroy KUBE-6-LOOP-BACK",
    ],
  });
});

it("stops where kube-proxy's clean-up goes on failing", () => {
  expect(takenAway("KUBE-CLUSTER-IP\\n", 9).status).toBe(1);
});

it.each(["ipvs", "iptables"] as const)(
  "leaves the rules in force alone where nothing of %s is left",
  (before) => {
    expect(takenAway("cali60s:nets\\n", 0, before)).toEqual({ status: 0, calls: [] });
  },
);

it.each([
  ["iptables", "nftables"],
  ["nftables", "ipvs"],
  ["nftables", "iptables"],
  ["ipvs", "ipvs"],
  [undefined, "ipvs"],
] as const)("leaves cleaning up between %s and %s to kube-proxy", async (before, now) => {
  expect(takeOldRulesAway(before, now)).toBeUndefined();
  expect((await podOf({ proxyMode: now, proxyModeBefore: before })).initContainers).toBeUndefined();
});

it("is given up with the group, since nothing of it outlives the cluster", async () => {
  const { recorder } = await build();

  for (const { name, opts } of await recorder.objects()) {
    expect([name, pulumi.Resource.isInstance(opts.deletedWith)]).toEqual([name, true]);
  }
});
