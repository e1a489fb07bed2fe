import { subscriptionPath } from "../../../local-azure/arm/resources/ids";
import type { Case } from "./case";
import type { Sick } from "./disturbances";
import type { Life } from "../life";
import { scenarioOf } from "./scenarios";

const nameOf = (machine: string): string => `zoned-prod-${machine}`;
const machines = `${subscriptionPath}/resourceGroups/zoned-prod/providers/Microsoft.Compute/virtualMachines`;

const sicken = (life: Life, machine: string, component: string): Promise<unknown> =>
  life.ask("POST", `/local/machines/${nameOf(machine)}/sick`, { component });

/** Somebody sees to it on the machine, as a message that names the machine asks for. */
const cure =
  (...names: readonly string[]) =>
  async (life: Life): Promise<void> => {
    for (const machine of names) {
      // One that was replaced meanwhile is well.
      await life.ask("DELETE", `/local/machines/${nameOf(machine)}/sick`).catch(() => undefined);
    }
  };

/**
 * A part of one control plane. That machine may be replaced first; without space, etcd takes no
 * writes.
 */
const oneSick = (component: string, machine: string): readonly [string, Sick] => [
  `${component} of ${machine} is sick`,
  {
    setUp: async (life) => void (await sicken(life, machine, component)),
    says: [new RegExp(nameOf(machine))],
    mayGoOn: component !== "etcd-space",
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
const deleted = (...names: readonly string[]): readonly [string, Sick] => [
  `deleted behind Pulumi's back: ${names.join(" and ")}`,
  {
    setUp: async (life) => {
      for (const name of names) await life.ask("DELETE", `${machines}/${nameOf(name)}`);
    },
    says: [new RegExp(names.map(nameOf).join("|")), /--refresh/],
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
  return [title, { ...one, says: [], mustGoOn: true }] as const;
});

const casesIn = (key: string, ones: typeof sick): Case[] =>
  ones.map(([title, disturbance]) => ({
    ...{ scenario: scenarioOf(key), kind: "sick cluster", what: title, title, disturbance },
  }));

/** Clusters that are not well when a change comes, and what has to become of the change. */
export const sickMembers: readonly Case[] = [
  ...casesIn("replacement", sick),
  ...casesIn("resize", sick),
  ...casesIn("labels", harmless),
];
