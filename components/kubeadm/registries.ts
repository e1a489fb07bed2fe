import { stringify } from "yaml";

import { cloudFields } from "../azure/clouds";
import { digest } from "../digest";
import { lookedUpAs } from "../settings/rules/registries";
import type { Settings } from "../settings/settings";
import type { PayloadFile } from "./payload-file";

const login = "/etc/zoned/registries.json";

/**
 * What has a kubelet log in to registries: its flags, and the file that they name. Nothing where there are none,
 * since a kubelet whose program is missing does not start.
 *
 * Only these registries are asked: a pod that names another one must not have its machine show it a token.
 *
 * @param servers where the registries are reached, such as images.azurecr.io
 * @see https://kubernetes.io/docs/tasks/administer-cluster/kubelet-credential-provider/
 */
export function credentialProvider(servers: readonly string[]): {
  readonly flags: Readonly<Record<string, string>>;
  readonly files: readonly PayloadFile[];
} {
  if (servers.length === 0) return { flags: {}, files: [] };
  const content = stringify({
    apiVersion: "kubelet.config.k8s.io/v1",
    kind: "CredentialProviderConfig",
    providers: [
      {
        name: "acr-credential-provider",
        apiVersion: "credentialprovider.kubelet.k8s.io/v1",
        matchImages: [...servers].sort(),
        // Of answers that name no time; those of this program do.
        defaultCacheDuration: "10m",
        args: [login],
      },
    ],
  });
  // By what is in it: a kubelet reads it at its start only, and gets another start with other flags.
  const path = `/etc/zoned/credential-providers-${digest(content).slice(0, 8)}.yaml`;
  return {
    flags: {
      "image-credential-provider-config": path,
      "image-credential-provider-bin-dir": "/opt/zoned/credential-providers",
    },
    files: [{ path, mode: "0600", content }],
  };
}

interface LoginArgs {
  readonly tenantId: string;
  /** Of the identity by which kubelets pull. */
  readonly clientId: string;
  readonly resourceManagerEndpoint: string;
}

/**
 * Whom the program logs in as, read each time that it is asked.
 *
 * @see https://cloud-provider-azure.sigs.k8s.io/topics/credential-provider/
 */
export function registryLogin({
  tenantId,
  clientId,
  resourceManagerEndpoint,
}: LoginArgs): PayloadFile {
  const content = {
    ...cloudFields(resourceManagerEndpoint),
    ...{ tenantId, useManagedIdentityExtension: true, userAssignedIdentityID: clientId },
  };
  return { path: login, mode: "0600", content: JSON.stringify(content) };
}

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
  const auths = Object.fromEntries(all.map(([host, login]) => [lookedUpAs(host), login]));
  const content = JSON.stringify({ auths });
  return [{ path: "/var/lib/kubelet/config.json", mode: "0600", content }];
}

/** The server of each of registryCredentials, some of which are repositories. */
export const serversWithCredentials = ({
  registryCredentials,
}: Pick<Settings, "registryCredentials">): string[] =>
  Object.keys(registryCredentials).map((key) =>
    key.split("/")[0]!.replace(/^index\.docker\.io$/, "docker.io"),
  );

/**
 * Keeps what kubelets log in to these servers with from the mirror: containerd would show it to the mirror where that
 * asks, and asks no mirror for a server that has a file of its own. An empty one has it go there as it does by itself.
 *
 * @param servers those of Azure's registries
 * @see https://github.com/containerd/containerd/blob/main/docs/hosts.md
 */
export function registryHostFiles(
  settings: Pick<Settings, "mirror" | "registryCredentials">,
  servers: readonly string[],
): PayloadFile[] {
  if (settings.mirror === "") return [];
  return [...new Set([...servers, ...serversWithCredentials(settings)])].sort().map((server) => ({
    path: `/etc/containerd/certs.d/${server}/hosts.toml`,
    mode: "0644",
    content: "",
  }));
}
