import * as pulumi from "@pulumi/pulumi";

import { connect } from "../azure/resource-manager";
import { groupId } from "../azure/resource-names";
import { computeVersion } from "../azure/state";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import { explained } from "../azure/refusals";

/**
 * Switches a machine as `az vm deallocate` and `az vm start` do, and waits for it; not in a preview.
 * One that is already so stays so.
 *
 * A login of its own: machines change one after another, each after a drain, and the token of the plan
 * may have ended.
 *
 * @throws RunError with Azure's reason, and what it means
 */
export async function switchPower(
  action: "deallocate" | "start",
  plan: MachinePlan,
  settings: Settings,
): Promise<void> {
  if (pulumi.runtime.isDryRun()) return;
  const { arm, subscriptionId } = await connect(settings);
  void pulumi.log.info(
    action === "deallocate"
      ? `${plan.name} is deallocated, since Azure has ${plan.size} on other hardware`
      : `${plan.name} is started`,
  );
  try {
    await arm.act(
      `${groupId(settings, subscriptionId)}/providers/Microsoft.Compute/virtualMachines/${plan.name}/${action}`,
      computeVersion,
    );
  } catch (error) {
    const { message } = error as Error;
    const meaning = explained(plan, settings, [message]);
    throw new pulumi.RunError(meaning === undefined ? message : `${message}\n${meaning}`);
  }
}
