import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Provider } from "@pulumi/kubernetes/provider";
import { parse } from "yaml";

import { KubeProxy } from "../../../components/add-ons/kube-proxy";
import { cleanupScript } from "../../../components/kubeadm/kube-proxy";
import { Settings } from "../../../components/settings/settings";
import { checkout } from "../../../tools/shared/checkout";
import { dependenciesOf, Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";

async function build(change: Partial<Settings> = {}, id = "1-then") {
  const recorder = await Recorder.start();
  const provider = new Provider("kubernetes", { kubeconfig: "{}" });
  new KubeProxy(
    "kube-proxy",
    {
      settings: { ...validSettings, ...change },
      initialization: { id },
      apiServer: { name: "api.example", port: 6443 },
      kubeconfig: "k",
    },
    { provider, transformations: [recorder.watch] },
  );
  const one = (kind: string) => recorder.only(`kubernetes:${kind}`);
  return {
    recorder,
    configMap: await one("core/v1:ConfigMap"),
    daemonSet: await one("apps/v1:DaemonSetPatch"),
    kubeadms: await one("core/v1:ConfigMapPatch"),
    rollOut: await recorder.only("pulumi-nodejs:dynamic/zoned:RollOut"),
  };
}

const podOf = async (change: Partial<Settings>) =>
  (await build(change)).daemonSet.inputs.spec.template.spec;

it("gives kube-proxy all that it is started with", async () => {
  const { configMap } = await build({
    proxyMode: "ipvs",
    proxyScheduler: "wlc",
    kubeProxy: { oomScoreAdj: -998, ipvs: { syncPeriod: "15m", tcpTimeout: "3h" } },
  });

  expect(parse(configMap.inputs.data["config.conf"])).toEqual({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" },
    mode: "ipvs",
    clusterCIDR: validSettings.podCidr,
    oomScoreAdj: -998,
    ipvs: { scheduler: "wlc", syncPeriod: "15m", tcpTimeout: "3h" },
  });
  const kubeconfig = parse(configMap.inputs.data["kubeconfig.conf"]);
  expect(kubeconfig.clusters[0].cluster.server).toBe("https://api.example:6443");
});

it("has IPVS keep idle connections until TCP's keepalive or Azure's balancer has asked after them", async () => {
  const { configMap } = await build({ proxyMode: "ipvs" });

  const { ipvs } = parse(configMap.inputs.data["config.conf"]);
  const [, hours, minutes] = /^(\d+)h(\d+)m$/.exec(ipvs.tcpTimeout)!;
  const seconds = Number(hours) * 3600 + Number(minutes) * 60;
  // Linux: net.ipv4.tcp_keepalive_time, _probes and _intvl. Azure: an idle timeout of at most 100 minutes.
  expect(seconds).toBeGreaterThan(Math.max(7200 + 9 * 75, 100 * 60));
});

it("leaves everything else to kube-proxy unless it is set", async () => {
  const { configMap } = await build({ proxyMode: "ipvs" });

  const { ipvs } = parse(configMap.inputs.data["config.conf"]);
  expect(ipvs).toEqual({ scheduler: "rr", tcpTimeout: expect.anything() });
});

it.each(["nftables", "iptables"] as const)("sets nothing of IPVS in mode %s", async (proxyMode) => {
  const { configMap } = await build({ proxyMode });

  expect(parse(configMap.inputs.data["config.conf"])).not.toHaveProperty("ipvs");
});

it("takes kubeadm's objects over by force, since the plugin has another name in every create", async () => {
  const { daemonSet, kubeadms } = await build();

  for (const { inputs } of [daemonSet, kubeadms]) {
    expect(inputs.metadata.annotations).toMatchObject({ "pulumi.com/patchForce": "true" });
  }
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

it("leaves the configuration of before in the cluster, since a node may still mount it and a change be taken back", async () => {
  const { configMap } = await build();

  expect(configMap.opts.retainOnDelete).toBe(true);
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

/**
 * Runs a script in kube-proxy's pod, which has these programs; returns its exit code and all that
 * it called.
 */
function inPod(script: string, programs: Readonly<Record<string, string>>) {
  const folder = testFolder();
  for (const [name, body] of Object.entries(programs)) {
    const text = `#!/bin/sh\necho "${name} $*" >>${folder}/calls\n${body}\n`;
    writeFileSync(join(folder, name), text, { mode: 0o755 });
  }
  const env = { PATH: `${folder}:/usr/bin:/bin` };
  const { status } = spawnSync("sh", ["-c", script], { cwd: folder, env });
  const calls = readFileSync(join(folder, "calls"), "utf8").trim().split("\n");
  return { status, calls };
}

/**
 * Whether the mode's probe says yes on a node of which there is the dump of a real kube-proxy in
 * `kernel`.
 */
async function probed(proxyMode: Mode, kernel: Mode): Promise<boolean> {
  const [{ name, startupProbe }] = (await podOf({ proxyMode })).containers;
  expect(name).toBe("kube-proxy");
  const [shell, flag, script] = startupProbe.exec.command;
  expect([shell, flag]).toEqual(["sh", "-c"]);
  const golden = join(checkout, "tools/trace/tests/support/kube-proxy/golden", `${kernel}.txt`);
  const { status } = inPod(script, {
    iptables: `grep -- "^-A $4 " ${golden}`,
    nft: `grep "table $3 $4 {" ${golden} && grep "chain $5 {" ${golden}`,
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
  const { kubeadms, rollOut, daemonSet, configMap } = await build();

  expect(kubeadms.inputs.data["config.conf"]).toBe(configMap.inputs.data["config.conf"]);
  expect(await dependenciesOf(kubeadms)).toEqual([rollOut.resource]);
  expect(await dependenciesOf(rollOut)).toEqual([daemonSet.resource]);
  // Another initialization's nodes are others.
  const { rollOut: other } = await build({}, "2-now");
  expect(other.inputs["awaitedFor"]).not.toBe(rollOut.inputs["awaitedFor"]);
});

it.each(modes)("looks for what other modes have left before it starts in %s", async (mode) => {
  const { initContainers } = await podOf({ proxyMode: mode });

  expect(initContainers).toEqual([
    expect.objectContaining({
      image: `registry.k8s.io/kube-proxy:v${validSettings.kubernetesVersion}`,
      command: ["sh", "-c", cleanupScript(mode)],
      securityContext: { privileged: true },
    }),
  ]);
  // Where the image has kube-proxy, and ipset and iptables-save.
  const [path] = initContainers[0].env;
  expect(path.value.split(":")).toEqual(expect.arrayContaining(["/usr/local/bin", "/usr/sbin"]));
});

/** What a mode leaves in the kernel, by a real kube-proxy's dump. */
const leftBy = (kernel: Mode): Readonly<Record<string, string>> => {
  const golden = join(checkout, "tools/trace/tests/support/kube-proxy/golden", `${kernel}.txt`);
  return {
    ipset: `[ "$1" = destroy ] || sed -n 's/^create \\([^ ]*\\).*/\\1/p' ${golden}`,
    "iptables-save": `sed -n '/^\\$ iptables-save/,/^\\$ ip6tables-save/p' ${golden} | sed -n '/^\\*nat/,/^COMMIT/p'`,
  };
};

/** What the clean-up calls to change the node, and its exit code. */
function cleanUp(mode: Mode, programs: Readonly<Record<string, string>>, failures = 0) {
  const { status, calls } = inPod(cleanupScript(mode), {
    ...programs,
    "kube-proxy": `echo >>tries; [ $(wc -l <tries) -gt ${failures} ]`,
  });
  return { status, calls: calls.filter((call) => !/list|save/.test(call)) };
}

it.each([
  ["iptables", "ipvs"],
  ["ipvs", "iptables"],
  ["ipvs", "nftables"],
] as const)("cleans up what %s has left before it starts in %s", (before, now) => {
  const { status, calls } = cleanUp(now, leftBy(before));

  expect(status).toBe(0);
  expect(calls[0]).toBe("kube-proxy --cleanup");
});

it.each([
  ["iptables", "nftables"],
  ["nftables", "ipvs"],
  ["nftables", "iptables"],
] as const)("leaves cleaning up between %s and %s to kube-proxy", (before, now) => {
  expect(cleanUp(now, leftBy(before))).toEqual({ status: 0, calls: [] });
});

it.each(modes)("leaves the rules in force alone when it starts in %s again", (mode) => {
  expect(cleanUp(mode, leftBy(mode))).toEqual({ status: 0, calls: [] });
});

const sets = (...names: string[]) => ({
  ipset: `[ "$1" = destroy ] || printf '%s\\n' ${names.join(" ")}`,
});

it("tries again after kube-proxy's first clean-up has failed, and destroys its sets and no others", () => {
  const left = sets("KUBE-6-CLUSTER-IP", "cali60s:nets", "KUBE-6-LOOP-BACK");

  expect(cleanUp("nftables", left, 1)).toEqual({
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
  expect(cleanUp("nftables", sets("KUBE-CLUSTER-IP"), 9).status).toBe(1);
});

it("leaves the sets of others alone", () => {
  expect(cleanUp("nftables", sets("cali60s:nets"))).toEqual({ status: 0, calls: [] });
});
