import { subscriptionPath } from "../../local-azure/resource-manager/ids";
import type { Case } from "./cases";
import type { Sick } from "./disturbances";
import type { Life } from "./life";
import { scenarioOf } from "./scenarios";

const nameOf = (machine: string): string => `zoned-prod-${machine}`;
const vm = (machine: string): string =>
  `${subscriptionPath}/resourceGroups/zoned-prod/providers/Microsoft.Compute/virtualMachines/${nameOf(machine)}`;

const sicken = (life: Life, machine: string, component: string): Promise<unknown> =>
  life.ask("POST", `/local/machines/${nameOf(machine)}/sick`, { component });

/** Somebody sees to it on the machine, as a message that names the machine asks for. */
const cure =
  (...machines: readonly string[]) =>
  async (life: Life): Promise<void> => {
    for (const machine of machines) {
      // One that was replaced meanwhile is well.
      await life.ask("DELETE", `/local/machines/${nameOf(machine)}/sick`).catch(() => undefined);
    }
  };

/** A part of one control plane, where the change begins and where it comes later. */
const oneSick = (component: string, machine: string): readonly [string, Sick] => [
  `${component} of ${machine} is sick`,
  {
    setUp: async (life) => void (await sicken(life, machine, component)),
    says: [new RegExp(nameOf(machine))],
    mayGoOn: false,
    heal: cure(machine),
  },
];

/** Etcd has no majority then, and nobody answers. */
const majorityLost: readonly [string, Sick] = [
  "etcd of two control planes is sick",
  {
    setUp: async (life) => {
      for (const machine of ["cp-2", "cp-3"]) await sicken(life, machine, "etcd");
    },
    says: [/etcd|API/],
    mayGoOn: false,
    heal: cure("cp-2", "cp-3"),
  },
];

/** Somebody deletes machines behind Pulumi's back; a refresh sees it. */
const deleted = (...machines: readonly string[]): readonly [string, Sick] => [
  `deleted behind Pulumi's back: ${machines.join(" and ")}`,
  {
    setUp: async (life) => {
      for (const machine of machines) await life.ask("DELETE", vm(machine));
    },
    says: [new RegExp(machines.map(nameOf).join("|")), /--refresh/],
    mayGoOn: true,
    heal: async (life, scenario) => void (await life.command("refresh", scenario.settings)),
  },
];

const sick: readonly (readonly [string, Sick])[] = [
  ...[
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "etcd-space",
  ].flatMap((component) => [oneSick(component, "cp-1"), oneSick(component, "cp-2")]),
  majorityLost,
  deleted("cp-1"),
  deleted("cp-2"),
  deleted("workers-1"),
];

/** What a change that touches no machine is not held up by. */
const harmless: readonly (readonly [string, Sick])[] = [
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
].map((component) => {
  const [title, one] = oneSick(component, "cp-2");
  return [title, { ...one, says: [], mayGoOn: true, mustGoOn: true }] as const;
});

const casesIn = (key: string, ones: typeof sick): Case[] =>
  ones.map(([title, disturbance]) => ({
    ...{ scenario: scenarioOf(key), kind: "sick cluster", title, disturbance },
  }));

/** A cluster that is not well when a change comes: how it came to that, and what has to become of the change. */
export const sickMembers: readonly Case[] = [
  ...casesIn("replacement", sick),
  ...casesIn("resize", sick),
  ...casesIn("labels", harmless),
];
