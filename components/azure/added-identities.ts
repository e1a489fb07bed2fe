import { quoted } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { type Given, identitiesOfOthers } from "./additions";
import type { AzureConnection } from "./connection";
import { askIdentity, assign } from "./existing-identity";
import { keyOf } from "./existing-network";
import { groupWord } from "./resource-names";
import { shownAs } from "./shown";
import type { AzureAnswer } from "./state";

/** Why Azure would refuse every change of these machines. */
export interface AddedIdentity {
  /** Names of machines that have the identity. */
  readonly machines: readonly string[];
  readonly problem: string;
}

/**
 * Identities that others, or their policies, have given machines, and that no request of this login may name. Each change
 * of a machine names all that it has, since Azure takes away what is left out, and Azure asks of each whether the
 * caller may assign it (aad-pod-identity#339).
 *
 * @param previous what the last update has given
 */
export async function getAddedIdentities(
  settings: Settings,
  { machines, shown }: Pick<AzureAnswer, "machines" | "shown">,
  previous: Given | undefined,
  connection: AzureConnection,
): Promise<AddedIdentity[]> {
  const checked = [settings.identityId, settings.kubeletIdentityId].map(keyOf);
  const having = new Map<string, { readonly id: string; readonly machines: string[] }>();
  for (const name of machines.keys()) {
    const vm = shown.get(shownAs("azure-native:compute:VirtualMachine", name)) ?? {};
    for (const id of identitiesOfOthers(vm, settings, previous)) {
      if (checked.includes(keyOf(id))) continue;
      const one = having.get(keyOf(id)) ?? { id, machines: [] };
      one.machines.push(name);
      having.set(keyOf(id), one);
    }
  }
  const answers = await Promise.all(
    [...having.values()].map(async ({ id, machines: names }): Promise<AddedIdentity[]> => {
      // Where Azure says neither, nothing is known.
      const answer = await askIdentity(id, assign, connection).catch(() => undefined);
      if (answer === undefined) return [];
      const { identity, isAllowed } = answer;
      if (identity !== undefined && identity !== "unreadable" && isAllowed) return [];
      const way =
        identity === undefined
          ? `that is gone: for name in ${names.join(" ")}; do az vm identity remove --resource-group ${groupWord(settings)} --name $name --identities ${quoted(id)}; done`
          : "that this login may not assign: let its owner run " +
            `az role assignment create --assignee LOGIN --role 'Managed Identity Operator' --scope ${quoted(id)}`;
      return [
        {
          machines: names,
          problem:
            `${names.join(", ")} ${names.length > 1 ? "have" : "has"} the identity ${id}, which somebody else or a policy has added. A change of a machine names ` +
            `all of its identities, and Azure refuses one ${way}`,
        },
      ];
    }),
  );
  return answers.flat();
}
