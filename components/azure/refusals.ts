import * as pulumi from "@pulumi/pulumi";

import { explained } from "./machine-refusal";
import type { Settings } from "../settings/settings";
import { machinesOf } from "../settings/topology";
import { explainedPolicy } from "./policy-refusal";

/**
 * Says beside Azure's refusal of a resource what it means for this stack; nothing is tried again.
 *
 * One hook for all resources, since the engine looks for it by its name when it deletes one that has
 * left the program. A `pulumi destroy`, which runs no program, shows Azure's error alone.
 */
export async function explainRefusals(settings: Settings): Promise<void> {
  const hook = new pulumi.ErrorHook("explain-refusal", ({ name, type, newInputs, errors }) => {
    const machine = machinesOf(settings).find((one) => one.name === newInputs?.["vmName"]);
    const text =
      explainedPolicy(`${type} ${name}`, errors) ??
      (machine && explained(machine, settings, errors));
    // Not on the resource: this program learns its URN only when it has been made.
    if (text !== undefined) void pulumi.log.error(text);
    return false;
  });
  if (!(await isSupported(hook))) return;
  pulumi.runtime.registerStackTransformation(({ type, props, opts }) =>
    type.startsWith("azure-native:")
      ? { props, opts: { ...opts, hooks: { onError: [hook] } } }
      : undefined,
  );
}

/**
 * Language hosts that are older than their engine hand no hooks on, and a resource with one could
 * not be made.
 */
const isSupported = (hook: pulumi.ErrorHook): Promise<boolean> =>
  (hook as unknown as { __registered: Promise<void> }).__registered.then(
    () => true,
    () => false,
  );
