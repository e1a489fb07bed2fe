import { parse } from "yaml";

import { coreDnsPatch } from "../../../components/kubeadm/core-dns";
import { validSettings } from "../../support/sample";

const pool = { ...validSettings.workerPools[0]!, taints: [], zones: ["1"], count: 1 };
const constraints = (settings: Partial<typeof validSettings>) => {
  const patch = coreDnsPatch({
    ...validSettings,
    controlPlaneCount: 1,
    schedulableControlPlanes: false,
    workerPools: [pool],
    ...settings,
  });
  const { topologySpreadConstraints = [] } =
    patch === undefined ? {} : parse(patch).spec.template.spec;
  return topologySpreadConstraints as { topologyKey: string; minDomains: number }[];
};
const spread = (settings: Partial<typeof validSettings>) =>
  constraints(settings).map(({ topologyKey, minDomains }) => `${minDomains} ${topologyKey}`);
const zones = "2 topology.kubernetes.io/zone";
const hosts = "2 kubernetes.io/hostname";

describe("CoreDNS", () => {
  it("runs in two zones where control planes or workers are in several", () => {
    expect(spread({ controlPlaneCount: 3 })).toEqual([zones, hosts]);
    expect(spread({ workerPools: [{ ...pool, count: 2, zones: ["1", "2"] }] })).toEqual([
      zones,
      hosts,
    ]);
  });

  it("has each pod of a revision wait for a zone that has none, among those that it may run in", () => {
    const each = expect.objectContaining({
      maxSkew: 1,
      whenUnsatisfiable: "DoNotSchedule",
      nodeTaintsPolicy: "Honor",
      labelSelector: { matchLabels: { "k8s-app": "kube-dns" } },
      matchLabelKeys: ["pod-template-hash"],
    });
    expect(constraints({ controlPlaneCount: 3 })).toEqual([each, each]);
  });

  it("runs on two machines where all are in one zone", () => {
    expect(spread({ zones: ["1"] })).toEqual([hosts]);
  });

  it("waits for no second machine where there is none that it may run on", () => {
    const taints = [{ key: "dedicated", value: "yes", effect: "NoSchedule" as const }];
    expect(spread({ workerPools: [] })).toEqual([]);
    expect(spread({ workerPools: [{ ...pool, taints }] })).toEqual([]);
  });
});
