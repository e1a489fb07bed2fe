import { cloudProviderImages, credentialProviderArchive } from "../../versions";
import { machineMirror } from "../../settings/sources";
import type { Settings } from "../../settings/settings";
import { fetch } from "../../settings/shell-proxy";

const secondsToWait = 5;

/** An image of several platforms is a list. */
const accept = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

const sourcesOf = (kubernetesVersion: string) => ({
  images: Object.values(cloudProviderImages(kubernetesVersion)) as readonly string[],
  archive: credentialProviderArchive(kubernetesVersion),
});

/**
 * What machines need of the cloud provider's release and its servers do not have: nothing initializes a Node
 * without the images, and a first boot ends without the archive. Its tags follow Kubernetes' own, and no list of
 * them comes with a release.
 *
 * A server that does not answer is no problem: machines have egress of their own, or a mirror.
 */
export async function cloudProviderProblems(
  { cloudProvider, registries, mirror, kubernetesVersion }: Settings,
  { images, archive } = sourcesOf(kubernetesVersion),
): Promise<string[]> {
  if (machineMirror(mirror) !== "") return [];
  const wanted = [
    ...(cloudProvider ? images : []).map((image) => ({
      url: manifestOf(image),
      problem: `${image}, which Kubernetes ${kubernetesVersion} needs on Azure, is not in its registry`,
    })),
    ...(registries.length > 0 ? [archive] : []).map((url) => ({
      url,
      problem: `${url}, by which kubelets of ${kubernetesVersion} log in to registries, is not there`,
    })),
  ];
  const missing = await Promise.all(wanted.map(({ url }) => isMissing(url)));
  return wanted
    .filter((_, index) => missing[index])
    .map(
      ({ problem }) =>
        `${problem}: take a release of this program that names another, or a mirror that has it ` +
        "(pulumi config set mirror ADDRESS)",
    );
}

function manifestOf(image: string): string {
  const [, registry, repository, tag] = /^([^/]+)\/(.+):([^:]+)$/.exec(image) ?? [];
  const scheme = /^127\.0\.0\.1:/.test(registry ?? "") ? "http" : "https";
  return `${scheme}://${registry}/v2/${repository}/manifests/${tag}`;
}

async function isMissing(url: string): Promise<boolean> {
  const answer = await fetch(url, {
    method: "HEAD",
    headers: { accept },
    signal: AbortSignal.timeout(secondsToWait * 1000),
  }).catch(() => undefined);
  return answer?.status === 404;
}
