import type { Settings } from "./settings";

/** Whether this program makes an identity, roles and role assignments for the cluster. */
export const hasOwnIdentity = ({
  identityId,
  servicePrincipal,
}: Pick<Settings, "identityId" | "servicePrincipal">): boolean =>
  identityId === "" && servicePrincipal === undefined;
