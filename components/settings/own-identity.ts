import type { Settings } from "./settings";

/** Whether this program makes an identity, roles and role assignments for the cluster. */
export const hasOwnIdentity = ({
  identityId,
  servicePrincipal,
}: Pick<Settings, "identityId" | "servicePrincipal">): boolean =>
  identityId === "" && servicePrincipal === undefined;

/** Whether this program makes an identity by which kubelets pull images. */
export const hasOwnKubeletIdentity = ({
  registries,
  kubeletIdentityId,
}: Pick<Settings, "registries" | "kubeletIdentityId">): boolean =>
  registries.length > 0 && kubeletIdentityId === "";
