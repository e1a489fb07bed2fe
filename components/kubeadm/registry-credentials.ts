import type { Settings } from "../settings/settings";
import type { PayloadFile } from "./payload-file";

/** A kubelet looks for docker.io/team/app by that name, and then for index.docker.io alone. */
const keyOf = (host: string): string =>
  host === "docker.io" ? "index.docker.io" : host.replace(/^index\.docker\.io\//, "docker.io/");

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
  const auths = Object.fromEntries(all.map(([host, login]) => [keyOf(host), login]));
  const content = JSON.stringify({ auths });
  return [{ path: "/var/lib/kubelet/config.json", mode: "0600", content }];
}
