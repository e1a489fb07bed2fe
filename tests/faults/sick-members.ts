import { subscriptionPath } from "../../local-azure/resource-manager/ids";
import type { Case } from "./cases";
import type { Sick } from "./disturbances";
import type { Life } from "./life";
import { scenarios } from "./scenarios";

const machine = (name: string): string =>
  `${subscriptionPath}/resourceGroups/zoned-prod/providers/Microsoft.Compute/virtualMachines/zoned-prod-${name}`;

/** A machine that somebody deletes behind Pulumi's back. */
const deleted =
  (...names: readonly string[]) =>
  async (life: Life): Promise<void> => {
    for (const name of names) await life.ask("DELETE", machine(name));
  };

const sick = (key: string, title: string, disturbance: Sick): Case => ({
  scenario: scenarios.find((one) => one.key === key)!,
  kind: "sick cluster",
  title,
  disturbance,
});

/** A cluster that is not well when a change comes: how it came to that, and what has to become of the change. */
export const sickMembers: readonly Case[] = ["replacement", "resize"].flatMap((key) => [
  sick(key, "the machine of one control plane is gone", {
    setUp: deleted("cp-2"),
    refused: [/zoned-prod-cp-2/, /refresh/],
  }),
  sick(key, "the machines of two control planes are gone", {
    setUp: deleted("cp-2", "cp-3"),
    refused: [/zoned-prod-cp-[23]/, /refresh|pulumi destroy/],
  }),
  sick(key, "the machine of one worker is gone", {
    setUp: deleted("workers-1"),
    refused: [/zoned-prod-workers-1/, /refresh/],
  }),
]);
