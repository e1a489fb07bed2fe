import { setTimeout as wait } from "node:timers/promises";

import type { KubernetesObject } from "../../../../components/cluster/kubernetes-api";
import { etcdOf } from "../../../../components/versions";
import { current, nextPatch, previousMinor } from "../../../programs/releases";
import { drainMark } from "../../../../components/cluster/drain";
import { refused, unchanged, succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { Survivor, underLoad } from "../workloads";
import { allReady, everywhere } from "./nodes";
import { configMap, expectRestored, saveSnapshot } from "./restore";
import { expectMembers } from "./three";

/** Everything of Kubernetes on every machine is of this version, and takes pods. */
async function expectVersion(cluster: RealCluster, version: string): Promise<void> {
  const names = await cluster.names();
  await eventually(300, cluster.signal, () => allReady(cluster, names.length));
  for (const { metadata, spec, status } of await cluster.get<KubernetesObject>("nodes")) {
    const { name, annotations = {} } = metadata;
    expectSame(`kubelet of ${name}`, status?.nodeInfo?.kubeletVersion, `v${version}`);
    expectSame(`cordon of ${name}`, spec?.unschedulable ?? false, false);
    expectSame(`mark on ${name}`, annotations[drainMark] ?? "none", "none");
  }
  await everywhere(cluster, async (name) => {
    const said = await cluster.inMachine(name, "kubeadm version -o short; kubelet --version");
    expectSame(`programs of ${name}`, said.trim().split("\n"), [
      `v${version}`,
      `Kubernetes v${version}`,
    ]);
  });
  await eventually(300, cluster.signal, async () => {
    const text = await cluster.kubectl([
      ...["get", "pods", "--namespace", "kube-system"],
      "--output=jsonpath={.items[*].spec.containers[*].image}",
    ]);
    const ofKubernetes = text.split(" ").filter((image) => image.includes("/kube-"));
    const tags = ofKubernetes.map((image) => image.split(":")[1]);
    expectSame("tags of Kubernetes' images", [...new Set(tags)], [`v${version}`]);
  });
  const [controlPlane = ""] = await cluster.names("control-plane");
  const list = await cluster.inMachine(controlPlane, "kubeadm config images list 2>/dev/null");
  const [coreDns = ""] = list.split("\n").filter((image) => image.includes("/coredns"));
  const text = await cluster.kubectl([
    ...["get", "pods", "--namespace", "kube-system"],
    "--output=jsonpath={.items[*].spec.containers[*].image}",
  ]);
  const etcd = `registry.k8s.io/etcd:${etcdOf(version)}`;
  expectAll("images beside Kubernetes' own", text.split(" "), [coreDns, etcd]);
}

/** One update to this version on the same machines; returns what clients and pods saw of it. */
export async function upgrade(
  cluster: RealCluster,
  kubernetesVersion: string,
  settings: Readonly<Record<string, unknown>> = {},
) {
  const before = await cluster.generations();
  await cluster.configure({ ...settings, kubernetesVersion });
  const seen = await underLoad(cluster, async () => succeeded(await cluster.up()));
  await expectVersion(cluster, kubernetesVersion);
  expectSame("machines", await cluster.generations(), before);
  return seen;
}

export const unchangedAfter = (version: string): Claim => ({
  sentence: `after the upgrade to ${version} a second \`pulumi up\` changes nothing`,
  check: async (cluster) => unchanged(await cluster.up()),
});

/** Of the log, what the last run of the bootstrap step has written. */
const lastPart = (log: string): string => log.slice(log.lastIndexOf("bootstrap: payload: begins"));

const step = (log: string, name: string): boolean => log.includes(`bootstrap: ${name}: done after`);

interface StartedPod {
  readonly metadata: {
    readonly name: string;
    readonly ownerReferences?: readonly { readonly kind: string }[];
  };
  readonly status: { readonly startTime: string };
}

const drained: Claim = {
  sentence: "a worker is drained before its kubelet changes, and takes pods again after it",
  check: async (cluster) => {
    const [worker = ""] = await cluster.names("worker");
    const log = await cluster.inMachine(worker, "cat /var/log/zoned.log");
    for (const name of ["kubeadm upgrade", "kubelet", "uncordon"]) {
      if (!step(log, name))
        throw new Error(`${worker} did no step "${name}":\n${log.slice(-2000)}`);
    }
    const [changed = ""] = /^\S+(?= bootstrap: kubelet: done)/m.exec(lastPart(log)) ?? [];
    const there = await cluster.get<StartedPod>(
      "pods",
      "--all-namespaces",
      `--field-selector=spec.nodeName=${worker}`,
    );
    const pods = there.filter(
      ({ metadata }) => !metadata.ownerReferences?.some(({ kind }) => kind === "DaemonSet"),
    );
    expectSame("whether pods came again", pods.length > 0, true);
    const stayed = pods.filter(({ status }) => status.startTime < changed);
    expectSame(
      `pods that were there when the kubelet changed, at ${changed}`,
      stayed.map(({ metadata }) => metadata.name),
      [],
    );
  },
};

/** Kills kubeadm whenever it upgrades this machine and a command of its succeeds; returns how often. */
async function killUpgrades(
  cluster: RealCluster,
  name: string,
  over: AbortSignal,
  when = "sleep 20",
): Promise<number> {
  let killed = 0;
  const kill = "pkill --signal KILL --full '^kubeadm upgrade (apply|node)'";
  while (!over.aborted) {
    await cluster.inMachine(name, `${when} && ${kill}`).then(
      () => (killed += 1),
      () => {},
    );
    await wait(1_000);
  }
  return killed;
}

/** An update to a version in which kubeadm is killed each time, until it ends with the step. */
async function failsToUpgrade(
  cluster: RealCluster,
  settings: Readonly<Record<string, unknown>>,
  when?: string,
): Promise<number> {
  const [controlPlane = ""] = await cluster.names("control-plane");
  await cluster.configure(settings);
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, cluster.signal]);
  const [up, killed] = await Promise.all([
    cluster.up().finally(() => over.abort()),
    killUpgrades(cluster, controlPlane, signal, when),
  ]);
  expectSaid(refused(up), [controlPlane, 'step "kubeadm upgrade" failed']);
  return killed;
}

const account = "snapshots";
const manifest = "/etc/kubernetes/manifests/etcd.yaml";
const etcdNow = etcdOf(current.version).split("-")[0];
const etcdBefore = etcdOf(previousMinor.version).split("-")[0]!;
/** Of as many letters, and too old for the next minor. */
const tooOld = "3.6.10";

/** Has etcd of a control plane run by a copy of its program that says it is older. */
const pretendOlder = (cluster: RealCluster, name: string): Promise<string> =>
  cluster.inMachine(
    name,
    [
      "set -e",
      "program=$(find /var/lib/containerd -path '*/usr/local/bin/etcd' -type f | head -1)",
      `sed 's/${etcdBefore.replaceAll(".", "\\.")}/${tooOld}/g' "$program" >/root/etcd-older`,
      "chmod +x /root/etcd-older",
      `sed -i -e 's|^    volumeMounts:$|&\\n    - {mountPath: /usr/local/bin/etcd, name: older}|' ` +
        `-e 's|^  volumes:$|&\\n  - {hostPath: {path: /root/etcd-older, type: File}, name: older}|' ${manifest}`,
    ].join("\n"),
  );

export const upgradeClaims: readonly Claim[] = (() => {
  /** What the cluster keeps beside its version. */
  let kept: Readonly<Record<string, unknown>>;
  let before: string;
  let survivor: Survivor;
  const goesTo = (version: string) => ({ ...kept, kubernetesVersion: version });
  return [
    {
      sentence: "the cluster begins with the minor before this one",
      isGround: true,
      check: (cluster) => expectVersion(cluster, previousMinor.version),
    },
    {
      sentence: `while etcd reports ${tooOld}, an upgrade to ${current.version} is refused in the preview, with the command`,
      check: async (cluster) => {
        const [controlPlane = ""] = await cluster.names("control-plane");
        await pretendOlder(cluster, controlPlane);
        await cluster.configure(goesTo(current.version));
        await eventually(600, cluster.signal, async () =>
          expectSaid(refused(await cluster.stack.preview()), [
            `${controlPlane} reports ${tooOld}`,
            `pulumi config set kubernetesVersion ${previousMinor.version}, pulumi up`,
          ]),
        );
      },
    },
    {
      sentence: `one update of ${previousMinor.version} that configures etcd anew brings it to ${etcdBefore}, and a snapshot says so`,
      isGround: true,
      check: async (cluster) => {
        const container = await cluster.container(account);
        kept = {
          etcdBackups: { container, endpoint: `http://${account}.blob.core.windows.net` },
          kubeadm: { etcdExtraArgs: { "heartbeat-interval": "200" } },
        };
        await cluster.configure(goesTo(previousMinor.version));
        succeeded(await cluster.up());
        survivor = await Survivor.start(cluster);
        await cluster.apply(configMap("before"));
        const { name = "", etcd } = await saveSnapshot(cluster);
        expectSame("etcd's version", etcd, etcdBefore);
        before = name;
        return name;
      },
    },
    {
      sentence: `once kubeadm is killed with etcd ${etcdNow} started, the upgrade cannot be taken back: the preview refuses, and names the way on`,
      check: async (cluster) => {
        const when = `grep --quiet etcd:${etcdNow} ${manifest}`;
        const killed = await failsToUpgrade(cluster, goesTo(current.version), when);
        await cluster.configure(goesTo(previousMinor.version));
        await eventually(300, cluster.signal, async () =>
          expectSaid(refused(await cluster.stack.preview()), [
            `reports ${etcdNow}: there is no way back`,
            `pulumi config set kubernetesVersion ${current.version}, pulumi up`,
          ]),
        );
        return `killed ${killed} times`;
      },
    },
    {
      sentence: `one \`pulumi up\` upgrades every machine to ${current.version} in place; no acknowledged write is lost, and no budget broken`,
      isGround: true,
      check: async (cluster) => (await upgrade(cluster, current.version, kept)).said,
    },
    unchangedAfter(current.version),
    drained,
    {
      sentence: `a snapshot of etcd ${etcdNow} is refused for ${previousMinor.version}, and no machine is deleted`,
      isGround: true,
      check: async (cluster) => {
        await cluster.apply(configMap("after"));
        const { etcd } = await saveSnapshot(cluster);
        expectSame("etcd's version", etcd, etcdNow);
        const { cluster: outputs } = await cluster.stack.outputs();
        const { initialization } = outputs as { initialization: string };
        await cluster.configure({
          ...goesTo(previousMinor.version),
          restoreFrom: "latest",
          reinitialize: initialization,
        });
        const generations = await cluster.generations();
        expectSaid(refused(await cluster.up()), [`is of etcd ${etcdNow}`]);
        expectSame("machines", await cluster.generations(), generations);
      },
    },
    {
      sentence: `with the control plane lost, a snapshot of etcd ${etcdBefore} is restored by ${current.version}, with nothing later, and a Deployment of then scales`,
      isGround: true,
      check: async (cluster) => {
        const [controlPlane = ""] = await cluster.names("control-plane");
        await cluster.ask("DELETE", controlPlane);
        await cluster.configure({ ...goesTo(current.version), restoreFrom: before });
        succeeded(await cluster.up());
        await expectRestored(cluster, ["before"], "after");
        await survivor.scale(cluster, 2);
        // As the update itself says: the snapshot has the kube-proxy of then.
        await cluster.configure(goesTo(current.version));
        succeeded(await cluster.up("--refresh"));
        await expectVersion(cluster, current.version);
        unchanged(await cluster.up());
      },
    },
  ];
})();

/** To a patch, which shares etcd with the one before, so that there is a way back. */
export const patchClaims: readonly Claim[] = [
  {
    sentence:
      "when kubeadm is killed in every try to upgrade a machine to a patch, `pulumi up` ends with the machine and the step; taken back, the next one puts it back",
    isGround: true,
    check: async (cluster) => {
      const killed = await failsToUpgrade(cluster, { kubernetesVersion: nextPatch.version });
      await cluster.configure({});
      succeeded(await cluster.up());
      await expectVersion(cluster, current.version);
      return `killed ${killed} times`;
    },
  },
  {
    sentence: `one \`pulumi up\` upgrades every machine to ${nextPatch.version} after that`,
    isGround: true,
    check: async (cluster) => (await upgrade(cluster, nextPatch.version)).said,
  },
  unchangedAfter(nextPatch.version),
];

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
];
