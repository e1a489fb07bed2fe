import { idOfCreated, isInAzure, unknown } from "./azure";
import {
  type Created,
  currentOf,
  type Deployment,
  isSameId,
  type Recorded,
  referencesOf,
} from "./deployment";

/** What `pulumi preview --json` prints, as far as it is needed. */
export interface Preview {
  readonly steps?: readonly { readonly op: string; readonly newState?: Recorded }[];
  readonly diagnostics?: readonly { readonly severity?: string; readonly message?: string }[];
}

/** How a preview shows a value that it must not show. */
const masked = "[secret]";

/** What a preview would create in Azure. */
export const plannedIn = ({ steps = [] }: Preview): Recorded[] =>
  steps.flatMap(({ op, newState }) =>
    newState !== undefined && isInAzure(newState) && /^create/.test(op) ? [newState] : [],
  );

/**
 * What a preview would create and what Azure may have already: a PUT was accepted, and the answer
 * got lost.
 *
 * All that such a resource refers to is in the state, since it was not ordered before; so all that
 * its id is made of is known.
 */
export function maybeCreated(
  planned: readonly Recorded[],
  deployment: Deployment,
  subscriptionId: string,
): Created[] {
  return planned.flatMap((one) => {
    const id = idOfCreated(one, subscriptionId);
    const current = currentOf(deployment, one.urn);
    const isThere = current && !current.pendingReplacement && isSameId(current.id, id ?? "");
    const stands = referencesOf(one).every((urn) => currentOf(deployment, urn) !== undefined);
    if (id === undefined || isThere || !stands || one.provider?.endsWith(`::${unknown}`)) return [];
    return [{ ...one, id, inputs: known(one.inputs ?? {}) as Created["inputs"] }];
  });
}

/** The values that a preview has and may show. */
function known(value: unknown): unknown {
  if (value === unknown || value === masked) return undefined;
  if (Array.isArray(value)) return value.map(known).filter((part) => part !== undefined);
  if (typeof value !== "object" || value === null) return value;
  const parts = Object.entries(value).map(([key, part]) => [key, known(part)] as const);
  return Object.fromEntries(parts.filter(([, part]) => part !== undefined));
}

/** Why a preview was refused. */
export const refusalOf = ({ diagnostics = [] }: Preview): string =>
  diagnostics
    .filter(({ severity }) => severity === "error")
    .map(({ message = "" }) => message.trim())
    .join("\n");
