import { claimsOf } from "../../machines/identity-token";
import { AzureError } from "../azure-error";
import type { ResourceManager } from "../resource-manager";
import { account, type Body, keyOf, parseId, type Reference } from "../resources/resource";
import { mayDo, permissionsOf, rolesOf } from "../types/authorization/role";
import type { ResourceType, Right } from "../types/resource-type";

/**
 * What a request may do: all that roles allow the managed identity that its token is of, or the login where that
 * owns the subscription no more. Other tokens are the owner's.
 */
export class Authorization {
  private readonly principal: { readonly oid: string; readonly appid?: string } | undefined;

  constructor(
    header: string | undefined,
    private readonly arm: ResourceManager,
  ) {
    const { oid, appid } = claimsOf(header ?? "") ?? {};
    const isIdentity = arm.view
      .ofType("Microsoft.ManagedIdentity/userAssignedIdentities")
      .some(({ body }) => body["principalId"] === oid);
    const isLimited = isIdentity || (oid === account.objectId && !arm.login.isOwner);
    this.principal = oid !== undefined && isLimited ? { oid, appid } : undefined;
  }

  /** Throws unless the request itself is allowed. */
  check(method: string, path: string): void {
    const needed = rightFor(method, path);
    if (this.has(needed)) return;
    const { action, scope } = needed;
    throw new AzureError(
      403,
      "AuthorizationFailed",
      `The client '${this.principal?.appid}' with object id '${this.principal?.oid}' does not have authorization to perform action '${action}' ` +
        `over scope '${scope}' or the scope is invalid. If access was recently granted, please refresh your credentials.`,
    );
  }

  /**
   * Throws unless what a PUT refers to may be used for it, and what a machine has already: Azure looks at all of
   * it also where a PUT has data disks alone (azuredisk-csi-driver #3112).
   */
  checkLinks(path: string, type: ResourceType | undefined, body: Body): void {
    if (this.principal === undefined) return;
    const kept = type?.mergesOnPut ? (this.arm.view.find(path)?.body ?? {}) : {};
    const references = [kept, body].flatMap((one) => type?.references?.(one, path) ?? []);
    const missing = [
      ...linked(path, [...new Map(references.map((one) => [keyOf(one.to), one])).values()]),
      ...(type?.linkedRights?.(body) ?? []),
    ].filter((right) => !this.has(right));
    if (missing.length === 0) return;
    const { action, scope } = rightFor("PUT", path);
    const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(", ");
    throw new AzureError(
      403,
      "LinkedAuthorizationFailed",
      `The client '${this.principal.appid}' with object id '${this.principal.oid}' has permission to perform action '${action}' ` +
        `on scope '${scope}'; however, it does not have permission to perform action(s) ${quoted(missing.map((one) => one.action))} ` +
        `on the linked scope(s) ${quoted(missing.map((one) => one.scope))} (respectively) or the linked scope(s) are invalid.`,
    );
  }

  /** What this caller may do at a scope. */
  permissionsAt(scope: string): readonly object[] {
    const { principal, at } = this;
    const { view } = this.arm;
    if (principal === undefined) return [{ actions: ["*"] }];
    return rolesOf(principal.oid, scope, view, at).flatMap((role) => permissionsOf(role, view));
  }

  private has({ action, scope }: Right): boolean {
    const { principal, at } = this;
    return (
      principal === undefined ||
      mayDo(principal.oid, { kind: "actions", action, scope }, this.arm.view, at)
    );
  }

  private get at(): { readonly now: Date; readonly pace: number } {
    return { now: this.arm.clock.now(), pace: this.arm.durations.factor };
  }
}

const verbs: Readonly<Record<string, string>> = {
  GET: "read",
  HEAD: "read",
  PUT: "write",
  PATCH: "write",
  DELETE: "delete",
  POST: "action",
};

function rightFor(method: string, path: string): Right {
  const [, namespace, below] = /^.*\/providers\/([^/]+)(?:\/(.*))?$/i.exec(path) ?? [];
  const type =
    namespace === undefined
      ? `Microsoft.Resources/${typesIn(path.slice(1))}`
      : below === undefined
        ? "Microsoft.Resources/subscriptions/providers"
        : `${namespace}/${typesIn(below)}`;
  // These change nothing, and are a POST for their question alone.
  const isQuestion = /\/(checkPolicyRestrictions|checkNameAvailability)$/i.test(type);
  return { action: `${type}/${isQuestion ? "read" : verbs[method]}`, scope: path };
}

/** `a/1/b/2` is of the type `a/b`, and so is the list `a/1/b`. */
const typesIn = (path: string): string =>
  path
    .split("/")
    .filter((_, position) => position % 2 === 0)
    .join("/");

/** The rights to what a body refers to elsewhere: to join what is a network's, to assign an identity. */
function linked(path: string, references: readonly Reference[]): Right[] {
  return references.flatMap(({ to }) => {
    const { type = "" } = parseId(to) ?? {};
    const isOwn = keyOf(to).startsWith(`${keyOf(path)}/`);
    const [verb] = [
      ...(/^Microsoft\.Network\//i.test(type) ? ["join"] : []),
      ...(/^Microsoft\.ManagedIdentity\//i.test(type) ? ["assign"] : []),
    ];
    return isOwn || verb === undefined ? [] : [{ action: `${type}/${verb}/action`, scope: to }];
  });
}
