import { ResourceGroup } from "@pulumi/azure-native/resources";
import { Provider } from "@pulumi/kubernetes/provider";
import * as pulumi from "@pulumi/pulumi";
import { parse } from "yaml";

import { KubeProxy, KubeProxyArgs } from "../components/add-ons/kube-proxy";
import { leavesRules } from "../components/kube-proxy";
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
  const { configMap } = await build({ proxyMode: "ipvs", proxyScheduler: "wlc" });

  expect(parse(configMap.inputs.data["config.conf"])).toEqual({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" },
    mode: "ipvs",
    clusterCIDR: sound.podCidr,
    ipvs: { scheduler: "wlc" },
  });
  const kubeconfig = parse(configMap.inputs.data["kubeconfig.conf"]);
  expect(kubeconfig.clusters[0].cluster.server).toBe("https://api.example:6443");
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

it("has kubeadm's own configuration follow when no node mounts it any more", async () => {
  const { kubeadms, daemonSet, configMap } = await build();

  expect(kubeadms.inputs.data["config.conf"]).toBe(configMap.inputs.data["config.conf"]);
  expect(await dependenciesOf(kubeadms)).toContain(daemonSet.resource);
});

it.each([
  ["ipvs", "iptables"],
  ["iptables", "ipvs"],
] as const)(
  "has the rules of %s taken away before it starts in %s, which it does not do itself",
  async (before, now) => {
    expect((await podOf({ proxyMode: now, proxyModeBefore: before })).initContainers).toEqual([
      expect.objectContaining({ command: ["/usr/local/bin/kube-proxy", "--cleanup"] }),
    ]);
  },
);

it.each([
  ["ipvs", "nftables"],
  ["nftables", "ipvs"],
  ["nftables", "iptables"],
  ["ipvs", "ipvs"],
  [undefined, "ipvs"],
] as const)("leaves cleaning up between %s and %s to kube-proxy", async (before, now) => {
  expect(leavesRules(before, now)).toBe(false);
  expect((await podOf({ proxyMode: now, proxyModeBefore: before })).initContainers).toBeUndefined();
});

it("is given up with the group, since nothing of it outlives the cluster", async () => {
  const { recorder } = await build();

  for (const { name, opts } of await recorder.objects()) {
    expect([name, pulumi.Resource.isInstance(opts.deletedWith)]).toEqual([name, true]);
  }
});
