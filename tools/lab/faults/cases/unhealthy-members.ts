import { subscriptionPath } from "../../../local-azure/arm/resources/ids";
import type { Case } from "./case";
import type { UnhealthyCluster } from "./disturbances";
import type { Life } from "../life";
import { scenarioOf } from "./scenarios";

const nameOf = (machine: string): string => `zoned-prod-${machine}`;
const machines = `${subscriptionPath}/resourceGroups/zoned-prod/providers/Microsoft.Compute/virtualMachines`;

const injectFailure = (life: Life, machine: string, component: string): Promise<unknown> =>
  life.send("POST", `/local/machines/${nameOf(machine)}/failures`, { component });

/** Somebody sees to it on the machine, as a message that names the machine asks for. */
const clearFailures =
  (...names: readonly string[]) =>
  async (life: Life): Promise<void> => {
    for (const machine of names) {
      // One that was replaced meanwhile is healthy.
      await life
        .send("DELETE", `/local/machines/${nameOf(machine)}/failures`)
        .catch(() => undefined);
    }
  };

/**
 * A component of one control plane. That machine may be replaced first; without space, etcd takes no
 * writes.
 */
const oneUnhealthy = (component: string, machine: string): readonly [string, UnhealthyCluster] => [
  `${component} of ${machine} is unhealthy`,
  {
    setUp: async (life) => void (await injectFailure(life, machine, component)),
    says: [new RegExp(nameOf(machine))],
    mayGoOn: component !== "etcd-space",
    repair: clearFailures(machine),
  },
];

/** Etcd has no majority then, and nobody answers. */
const majorityLost: readonly [string, UnhealthyCluster] = [
  "etcd of two control planes is unhealthy",
  {
    setUp: async (life) => {
      for (const machine of ["cp-2", "cp-3"]) await injectFailure(life, machine, "etcd");
    },
    says: [/etcd|API/],
    mayGoOn: false,
    repair: clearFailures("cp-2", "cp-3"),
  },
];

/** Somebody deletes machines behind Pulumi's back; a refresh sees it. */
const deleted = (...names: readonly string[]): readonly [string, UnhealthyCluster] => [
  `deleted behind Pulumi's back: ${names.join(" and ")}`,
  {
    setUp: async (life) => {
      for (const name of names) await life.send("DELETE", `${machines}/${nameOf(name)}`);
    },
    says: [new RegExp(names.map(nameOf).join("|")), /--refresh/],
    mayGoOn: true,
    repair: async (life, scenario) => void (await life.command("refresh", scenario.settings)),
  },
];

const unhealthy: readonly (readonly [string, UnhealthyCluster])[] = [
  ...[
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "etcd-space",
  ].flatMap((component) => [oneUnhealthy(component, "cp-1"), oneUnhealthy(component, "cp-2")]),
  majorityLost,
  deleted("cp-1"),
  deleted("cp-2"),
  deleted("workers-1"),
];

/** What a change that touches no machine is not held up by. */
const harmless: readonly (readonly [string, UnhealthyCluster])[] = [
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
].map((component) => {
  const [title, one] = oneUnhealthy(component, "cp-2");
  return [title, { ...one, says: [], mustGoOn: true }] as const;
});

const casesIn = (key: string, ones: typeof unhealthy): Case[] =>
  ones.map(([title, disturbance]) => ({
    ...{ scenario: scenarioOf(key), kind: "unhealthy cluster", what: title, title, disturbance },
  }));

/** Clusters that are unhealthy when a change comes, and what has to become of the change. */
export const unhealthyMembers: readonly Case[] = [
  ...casesIn("replacement", unhealthy),
  ...casesIn("resize", unhealthy),
  ...casesIn("labels", harmless),
];
