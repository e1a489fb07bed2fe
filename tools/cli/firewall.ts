import { writeFileSync } from "node:fs";
import { join } from "node:path";

import {
  kuredImage,
  cloudProviderImages,
  manifests,
  metricsServerImage,
  versions,
} from "../../components/versions";
import { checkout } from "../shared/checkout";

/** What somebody behind a firewall asks of another host; HTTPS where no port is named. */
interface Host {
  readonly host: string;
  /** @default 443 */
  readonly port?: number;
  readonly why: string;
  /** The settings without which it is not asked; empty for always. */
  readonly when?: string;
}

/**
 * Where a registry's images come from besides its own address, as upstream documents or redirects to.
 *
 * @see https://github.com/kubernetes/registry.k8s.io#using-registryk8sio
 * @see https://learn.microsoft.com/azure/aks/outbound-rules-control-egress
 * @see https://docs.docker.com/desktop/setup/allow-list/
 */
const registries: Readonly<Record<string, readonly string[]>> = {
  "registry.k8s.io": ["registry.k8s.io", "*.pkg.dev", "*.amazonaws.com"],
  "mcr.microsoft.com": ["mcr.microsoft.com", "*.data.mcr.microsoft.com"],
  "quay.io": ["quay.io", "*.quay.io"],
  "docker.io": [
    ...["registry-1.docker.io", "auth.docker.io"],
    // Which one it leads to is Docker's choice.
    ...["production.cloudfront.docker.com", "production.cloudflare.docker.com"],
    "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
  ],
  "ghcr.io": ["ghcr.io", "pkg-containers.githubusercontent.com"],
};

export const registryOf = (image: string): string => image.split("/")[0] ?? "";

const images = (why: string, when: string, ...all: readonly string[]): Host[] =>
  [...new Set(all.map(registryOf))].flatMap((registry) =>
    (registries[registry] ?? [registry]).map((host) => ({ host, why, when })),
  );

const hostsOfManifests = (all: readonly { readonly url: string }[]): string[] => [
  ...new Set(all.map(({ url }) => new URL(url).hostname)),
];

/** Of machines, while they are made and upgraded, and of what runs on them. */
export const machineHosts: readonly Host[] = [
  {
    host: "azure.archive.ubuntu.com",
    port: 80,
    why: "Ubuntu's packages, as Azure's image names them",
  },
  { host: "archive.ubuntu.com", port: 80, why: "Ubuntu's packages, where that mirror is left" },
  { host: "security.ubuntu.com", port: 80, why: "Ubuntu's security updates" },
  ...["azure.ports.ubuntu.com", "ports.ubuntu.com"].map((host) => ({
    ...{ host, port: 80, when: "a size with Arm processors" },
    why: "Ubuntu's packages for arm64, by the one that the image names",
  })),
  { host: "the API's name", port: 6443, why: "workers, by the API's public address" },
  { host: "pkgs.k8s.io", why: "kubeadm, kubelet, kubectl" },
  { host: "prod-cdn.packages.k8s.io", why: "kubeadm, kubelet, kubectl: where pkgs.k8s.io leads" },
  ...images("images of Kubernetes, CoreDNS and etcd", "", "registry.k8s.io/pause"),
  ...images("Canal's images", "cni canal", "quay.io/calico/node", "docker.io/flannel/flannel"),
  ...images("flannel's image", "cni flannel", "ghcr.io/flannel-io/flannel"),
  ...images(
    "the cloud provider's images",
    "cloudProvider",
    ...Object.values(cloudProviderImages(versions.kubernetes)),
  ),
  ...images("the disk driver's images", "diskDriver", "mcr.microsoft.com/oss/v2/kubernetes-csi"),
  ...images("metrics-server's image", "metricsServer", metricsServerImage),
  ...images("kured's image", "reboots", kuredImage),
  { host: "github.com", why: "cri-dockerd", when: "containerRuntime cri-dockerd" },
  {
    host: "release-assets.githubusercontent.com",
    why: "cri-dockerd: where github.com leads",
    when: "containerRuntime cri-dockerd",
  },
  {
    host: "packages.aks.azure.com",
    why: "Azure's credential provider, by which kubelets log in to registries",
    when: "registries",
  },
  ...["NAME.azurecr.io", "NAME.REGION.data.azurecr.io", "*.blob.core.windows.net"].map((host) => ({
    ...{ host, when: "registries" },
    why: "each registry, and where it leads for layers: one of the two others",
  })),
  {
    host: "SERVER",
    why: "each of them, and where it leads for layers",
    when: "registryCredentials",
  },
  {
    host: "management.azure.com",
    why: "the cloud provider, the disk driver and repairs, on control planes",
    when: "cloudProvider, diskDriver, autoRepair",
  },
  {
    host: "login.microsoftonline.com",
    why: "the same, as a service principal",
    when: "servicePrincipalClientId",
  },
  {
    host: "login.microsoftonline.com",
    why: "the same and etcd's snapshots, by tokens of service accounts",
    when: "machineIdentity false",
  },
  {
    host: "login.microsoftonline.com",
    why: "pods that log in to Azure, from every machine",
    when: "workloadIdentities",
  },
  {
    host: "login.microsoftonline.com",
    why: "API servers, for the keys of the tenant whose people log in, or the host of entra.issuer in its place",
    when: "entra",
  },
  {
    host: "ACCOUNT.blob.core.windows.net",
    why: "snapshots of etcd",
    when: "etcdBackups.container",
  },
];

/** Of the machine that runs `pulumi up`. */
export const operatorHosts: readonly Host[] = [
  { host: "management.azure.com", why: "Azure Resource Manager" },
  { host: "login.microsoftonline.com", why: "Azure's logins" },
  { host: "the API's name", port: 6443, why: "the Kubernetes API" },
  {
    host: "mcr.microsoft.com",
    why: "whether the cloud provider's images are there",
    when: "cloudProvider",
  },
  {
    host: "packages.aks.azure.com",
    why: "whether Azure's credential provider is there",
    when: "registries",
  },
  ...hostsOfManifests(manifests.canal).map((host) => ({
    host,
    why: "Canal's manifest",
    when: "cni canal",
  })),
  ...hostsOfManifests(manifests.diskDriver).map((host) => ({
    host,
    why: "the disk driver's manifests",
    when: "diskDriver",
  })),
  {
    host: "oidcHASH.blob.core.windows.net",
    why: "the issuer's documents, which the update writes",
    when: "workloadIdentities, machineIdentity false",
  },
  {
    host: "ACCOUNT.blob.core.windows.net",
    why: "whether a snapshot is there",
    when: "restoreFrom",
  },
  { host: "api.pulumi.com", why: "the stack's state, where it is kept there" },
  {
    host: "ACCOUNT.blob.core.windows.net",
    why: "the stack's state, where it is kept in a storage account",
    when: "pulumi login azblob://",
  },
  {
    host: "VAULT.vault.azure.net",
    why: "the key of the stack's secrets, where a key vault has it",
    when: "--secrets-provider azurekeyvault://",
  },
  // Where a firewall drops packets, Pulumi waits for each of them in turn.
  { host: "github.com", why: "Pulumi's plugins" },
  { host: "release-assets.githubusercontent.com", why: "Pulumi's plugins: where github.com leads" },
  { host: "api.github.com", why: "Pulumi's plugins, where github.com has not answered" },
  { host: "get.pulumi.com", why: "Pulumi's plugins, where neither has answered" },
  { host: "registry.npmjs.org", why: "npm ci" },
];

const table = (hosts: readonly Host[]): string =>
  [
    "| host | port | what for | only with |",
    "|---|---|---|---|",
    ...merged(hosts).map(
      ({ host, port = 443, why, when = "" }) => `| \`${host}\` | ${port} | ${why} | ${when} |`,
    ),
  ].join("\n");

/** A host that several need stands once, and is always needed where one of them always needs it. */
function merged(hosts: readonly Host[]): Host[] {
  const keyOf = ({ host, port = 443 }: Host) => `${host}:${port}`;
  return [...new Map(hosts.map((one) => [keyOf(one), one])).entries()].map(([key, first]) => {
    const same = hosts.filter((one) => keyOf(one) === key);
    const isAlways = same.some(({ when = "" }) => when === "");
    return {
      ...first,
      why: [...new Set(same.map(({ why }) => why))].join("; "),
      when: isAlways ? "" : [...new Set(same.map(({ when }) => when))].join(", "),
    };
  });
}

/** The whole of docs/firewall.md. */
export const firewallPage = (): string => `# What a firewall has to let out

<!-- Written by npm run firewall from components/versions.ts and tools/cli/firewall.ts: edit those. -->

All of it is TCP, but for DNS: where the network has DNS servers of its own, machines ask them by UDP 53, and by TCP 53 for long answers. Time is not among it: Ubuntu's image takes its host's clock (chrony, by \`/dev/ptp_hyperv\`), and \`ntp.ubuntu.com\` (UDP 123) may stay closed. Nothing has to be let in from the internet but what \`apiAccessCidrs\` and \`sshAccessCidrs\` admit. Machines also reach
\`168.63.129.16\` (Azure's DNS, agent and probes) and \`169.254.169.254\` (the metadata service), which no firewall is asked for.
With \`mirror\`, machines ask the mirror in place of every package and image here, but for images of \`registries\` and \`registryCredentials\`: [those servers they ask themselves](mirror.md#trust). With \`httpProxy\`, the proxy asks.
Azure Government and Azure China have other names for Azure's own hosts.

## Machines

${table(machineHosts)}

## Where \`pulumi up\` runs

${table(operatorHosts)}
`;

if (require.main === module) {
  writeFileSync(join(checkout, "docs/firewall.md"), firewallPage());
}
