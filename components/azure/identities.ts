import { quoted, toRemove } from "../settings/problem";
import type { AzureConnection } from "./resource-manager";
import { isAllowed, permissionsAt } from "./rights";
import type { Settings } from "../settings/settings";
import { type Given, identitiesOfOthers } from "./additions";
import { keyOf } from "./existing-network";
import { groupWord } from "./resource-names";
import { shownAs } from "./shown";
import type { AzureAnswer } from "./state";

/** An identity that is not this stack's, as Azure has it. */
export interface ExistingIdentity {
  readonly clientId: string;
  readonly principalId: string;
}

/** What Azure says of the identity that the settings name; nothing where they name none. */
export interface IdentityAnswer {
  readonly identity?: ExistingIdentity;
  readonly problems: readonly string[];
}

/** Asks for an identity, and whether the login may do this with it. */
export async function askIdentity(id: string, action: string, { arm }: AzureConnection) {
  const [found, permissions] = await Promise.all([
    arm.getIfReadable<{ readonly properties: ExistingIdentity }>(
      id,
      { "api-version": "2023-01-31" },
      { properties: { clientId: "", principalId: "" } },
    ),
    permissionsAt(arm, id),
  ]);
  return {
    identity: found === "unreadable" ? found : found?.properties,
    isAllowed: isAllowed(permissions, action),
  };
}

/** @param role one that reads it */
export const unreadableIdentity = (id: string, role: string): string =>
  `the login may not read the identity ${id}: let its owner run ` +
  `az role assignment create --assignee LOGIN --role '${role}' --scope ${quoted(id)}`;

/** What Azure asks for of who gives an identity to a machine. */
const assign = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action";

/**
 * Asks for an existing identity, and whether the login may give it to machines. Its region does not matter.
 *
 * @param setting the one that names it
 */
export async function getExistingIdentity(
  setting: "identityId" | "kubeletIdentityId",
  id: string,
  connection: AzureConnection,
): Promise<IdentityAnswer> {
  if (id === "") return { problems: [] };
  const { identity, isAllowed: mayGive } = await askIdentity(id, assign, connection);
  if (identity === undefined) {
    return {
      problems: [
        `${setting} is ${id}, expected an identity that Azure has: see az identity list --query '[].id', ` +
          `or let this program make one (${toRemove(setting)})`,
      ],
    };
  }
  if (identity === "unreadable") {
    return { problems: [unreadableIdentity(id, "Managed Identity Operator")] };
  }
  return {
    identity,
    problems: mayGive
      ? []
      : [
          `the login may not give the identity ${id} to machines: let its owner run ` +
            `az role assignment create --assignee LOGIN --role 'Managed Identity Operator' --scope ${quoted(id)}`,
        ],
  };
}

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
