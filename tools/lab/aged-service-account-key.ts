import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { PreviousOutputs } from "../../components/plan/machine-changes";
import type { Rehearsal } from "../local-azure/rehearsal/rehearsal";

interface State {
  readonly deployment: {
    readonly resources: readonly { type: string; outputs: { cluster: PreviousOutputs } }[];
  };
}

/** Changes a stack's state as if so many hours had gone by since its new key began to sign. */
export async function ageServiceAccountKey(stack: Rehearsal, hours: number): Promise<void> {
  const state = (await stack.stackExport()) as State;
  const { outputs } = state.deployment.resources.find(
    ({ type }) => type === "pulumi:pulumi:Stack",
  )!;
  const keys = outputs.cluster.serviceAccountKeys!;
  const signingSince = new Date(Date.parse(keys.signingSince!) - hours * 3_600_000);
  Object.assign(keys, { signingSince: signingSince.toISOString() });
  const folder = mkdtempSync(join(tmpdir(), "zoned-aged-"));
  try {
    const file = join(folder, "state.json");
    writeFileSync(file, JSON.stringify(state), { mode: 0o600 });
    const { code, stderr } = await stack.command("stack", "import", "--file", file);
    if (code !== 0) throw new Error(stderr);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
