import type { Settings } from "../settings/settings";
import type { PayloadFile } from "./payload-file";

/** By which a kubelet knows Docker Hub, whatever images call it. */
const dockerHub = "index.docker.io";

/**
 * What a kubelet logs in to registries with, in the folder where it looks by itself, every five minutes.
 *
 * @see https://kubernetes.io/docs/concepts/containers/images/#configuring-nodes-to-authenticate-to-a-private-registry
 */
export function registryCredentialFiles({
  registryCredentials,
}: Pick<Settings, "registryCredentials">): PayloadFile[] {
  const all = Object.entries(registryCredentials);
  if (all.length === 0) return [];
  const auths = Object.fromEntries(
    all.map(([host, login]) => [host.replace(/^docker\.io(?=\/|$)/, dockerHub), login]),
  );
  const content = JSON.stringify({ auths });
  return [{ path: "/var/lib/kubelet/config.json", mode: "0600", content }];
}
