import { setTimeout as wait } from "node:timers/promises";

import { testImage } from "../../../mirror/images/wanted-images";
import { current, nextPatch, previousMinor } from "../../../programs/releases";
import { refused, unchanged, succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { whileWriting } from "../writer";
import { allReady, everywhere } from "./nodes";
import { expectMembers } from "./three";

const namespace = "zoned-budget";
const app = { app: "budget" };
const replicas = 3;
const atLeast = 2;

/** Three pods anywhere, of which two have to be there. */
const budgeted = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "budget", namespace },
    spec: {
      replicas,
      selector: { matchLabels: app },
      template: {
        metadata: { labels: app },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: "sleep", image: testImage, command: ["sleep", "infinity"] }],
        },
      },
    },
  },
  {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "budget", namespace },
    spec: { minAvailable: atLeast, selector: { matchLabels: app } },
  },
];

const available = async (cluster: RealCluster): Promise<number> => {
  const deployment = ["get", "deployment", "budget", "--namespace", namespace];
  const path = "--output=jsonpath={.status.availableReplicas}";
  return Number((await cluster.kubectl([...deployment, path])) || "0");
};

/** The fewest pods that were available while this work was done, as often as the API answered. */
async function fewestDuring<T>(
  cluster: RealCluster,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly fewest: number }> {
  await cluster.apply(...budgeted);
  await eventually(600, cluster.signal, async () =>
    expectSame("available pods", await available(cluster), replicas),
  );
  let isOver = false;
  let fewest = replicas;
  const look = async (): Promise<void> => {
    while (!isOver) {
      fewest = Math.min(fewest, await available(cluster).catch(() => replicas));
      await wait(2_000);
    }
  };
  const looking = look();
  const result = await work().finally(() => (isOver = true));
  await looking;
  return { result, fewest };
}

interface Node {
  readonly metadata: { readonly name: string; readonly annotations: Record<string, string> };
  readonly spec: { readonly unschedulable?: true };
  readonly status: { readonly nodeInfo: { readonly kubeletVersion: string } };
}

/** Everything of Kubernetes on every machine is of this version, and takes pods. */
async function expectVersion(cluster: RealCluster, version: string): Promise<void> {
  const names = await cluster.names();
  await eventually(300, cluster.signal, () => allReady(cluster, names.length));
  for (const { metadata, spec, status } of await cluster.get<Node>("nodes")) {
    const { name, annotations } = metadata;
    expectSame(`kubelet of ${name}`, status.nodeInfo.kubeletVersion, `v${version}`);
    expectSame(`cordon of ${name}`, spec.unschedulable ?? false, false);
    expectSame(`mark on ${name}`, annotations["zoned/cordoned-for-upgrade"] ?? "none", "none");
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
  const text = await cluster.kubectl([
    ...["get", "pods", "--namespace", "kube-system"],
    "--output=jsonpath={.items[*].spec.containers[*].image}",
  ]);
  const others = list.split("\n").filter((image) => /etcd|coredns/.test(image));
  expectAll("images beside Kubernetes' own", text.split(" "), others);
}

/** Changes these settings by one update, and returns what clients and pods saw of it. */
async function change(
  cluster: RealCluster,
  settings: Readonly<Record<string, unknown>>,
): Promise<{ readonly said: string; readonly silence: number }> {
  await cluster.configure(settings);
  const since = Date.now();
  const { result, written } = await whileWriting(cluster, () =>
    fewestDuring(cluster, async () => succeeded(await cluster.up())),
  );
  const minutes = Math.round((Date.now() - since) / 60_000);
  if (result.fewest < atLeast) {
    throw new Error(`${result.fewest} pods were available, and the budget is ${atLeast}`);
  }
  const said =
    `${minutes} min; ${written.acknowledged.length} writes acknowledged, all there, ${written.refused} refused, ` +
    `at most ${written.silence} s without one; never fewer than ${result.fewest} of ${replicas} pods`;
  return { said, silence: written.silence };
}

async function upgrade(cluster: RealCluster, kubernetesVersion: string) {
  const before = await cluster.generations();
  const seen = await change(cluster, { kubernetesVersion });
  await expectVersion(cluster, kubernetesVersion);
  expectSame("machines", await cluster.generations(), before);
  return seen;
}

/** One update to a version, with what clients and pods saw of it. */
const upgradesTo = (version: string): Claim => ({
  sentence: `one \`pulumi up\` upgrades every machine to ${version} in place; no acknowledged write is lost, and no budget broken`,
  isGround: true,
  check: async (cluster) => (await upgrade(cluster, version)).said,
});

const unchangedAfter = (version: string): Claim => ({
  sentence: `after the upgrade to ${version} a second \`pulumi up\` changes nothing`,
  check: async (cluster) => unchanged(await cluster.up()),
});

const step = (log: string, name: string): boolean => log.includes(`bootstrap: ${name}: done after`);

const drained: Claim = {
  sentence: "a worker is drained before its kubelet changes, and takes pods again after it",
  check: async (cluster) => {
    const [worker = ""] = await cluster.names("worker");
    const log = await cluster.inMachine(worker, "cat /var/log/zoned.log");
    for (const name of ["drain", "kubeadm upgrade", "kubelet", "uncordon"]) {
      if (!step(log, name))
        throw new Error(`${worker} did no step "${name}":\n${log.slice(-2000)}`);
    }
    expectSaid(log, [`${namespace}/budget`, "is being evicted"]);
    expectSame(
      "order",
      log.indexOf("bootstrap: drain:") < log.indexOf("bootstrap: kubelet:"),
      true,
    );
  },
};

/** Kills kubeadm whenever it upgrades this machine, until this signal; returns how often. */
async function killUpgrades(
  cluster: RealCluster,
  name: string,
  over: AbortSignal,
): Promise<number> {
  let killed = 0;
  const kill = "pkill --signal KILL --full '^kubeadm upgrade (apply|node)'";
  while (!over.aborted) {
    await cluster.inMachine(name, `sleep 20; ${kill}`).then(
      () => (killed += 1),
      () => {},
    );
    await wait(1_000);
  }
  return killed;
}

export const upgradeClaims: readonly Claim[] = [
  {
    sentence: "the cluster begins with the minor before this one",
    isGround: true,
    check: (cluster) => expectVersion(cluster, previousMinor.version),
  },
  upgradesTo(current.version),
  unchangedAfter(current.version),
  drained,
  {
    sentence:
      "when kubeadm is killed in every try to upgrade a machine, `pulumi up` ends with the machine and the step; the next one goes on and succeeds",
    isGround: true,
    check: async (cluster) => {
      const [controlPlane = ""] = await cluster.names("control-plane");
      await cluster.configure({ kubernetesVersion: nextPatch.version });
      const over = new AbortController();
      const [up, killed] = await Promise.all([
        cluster.up().finally(() => over.abort()),
        killUpgrades(cluster, controlPlane, AbortSignal.any([over.signal, cluster.signal])),
      ]);
      expectSaid(refused(up), [controlPlane, 'step "kubeadm upgrade" failed']);
      const { said } = await upgrade(cluster, nextPatch.version);
      return `killed ${killed} times; then ${said}`;
    },
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

const manifest = "/etc/kubernetes/manifests/etcd.yaml";

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
        await cluster.configure({ kubernetesVersion: nextPatch.version });
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
    sentence: `one \`pulumi up\` upgrades three control planes to the next patch, and the API is silent for no longer than ${mostSilence} s`,
    isGround: true,
    check: async (cluster) => {
      const { said, silence } = await upgrade(cluster, nextPatch.version);
      await expectMembers(cluster, (await cluster.names())[0]!);
      if (silence > mostSilence) throw new Error(`it was silent for ${silence} s: ${said}`);
      return said;
    },
  },
  unchangedAfter(nextPatch.version),
  {
    sentence: "from three control planes to one: two leave etcd in order, and no write is lost",
    isGround: true,
    check: async (cluster) => {
      const settings = { kubernetesVersion: nextPatch.version, controlPlaneCount: 1 };
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
