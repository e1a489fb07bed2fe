import { cloudProviderImages } from "../../versions";
import { machineMirror } from "../../settings/mirror";
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

/**
 * The cloud provider's images that their registry does not have: nothing initializes a Node without
 * them. Its tags follow Kubernetes' own, and no list of them comes with a release.
 *
 * A registry that does not answer is no problem: machines have egress of their own, or a mirror.
 */
export async function cloudProviderProblems(
  { cloudProvider, mirror, kubernetesVersion }: Settings,
  images: readonly string[] = Object.values(cloudProviderImages(kubernetesVersion)),
): Promise<string[]> {
  if (!cloudProvider || machineMirror(mirror) !== "") return [];
  const missing = await Promise.all(images.map(isMissing));
  return images
    .filter((_, index) => missing[index])
    .map(
      (image) =>
        `${image}, which Kubernetes ${kubernetesVersion} needs on Azure, is not in its registry: ` +
        "take a release of this program that names another, or a mirror that has it (pulumi config set mirror ADDRESS)",
    );
}

async function isMissing(image: string): Promise<boolean> {
  const [, registry, repository, tag] = /^([^/]+)\/(.+):([^:]+)$/.exec(image) ?? [];
  const scheme = /^127\.0\.0\.1:/.test(registry ?? "") ? "http" : "https";
  const answer = await fetch(`${scheme}://${registry}/v2/${repository}/manifests/${tag}`, {
    method: "HEAD",
    headers: { accept },
    signal: AbortSignal.timeout(secondsToWait * 1000),
  }).catch(() => undefined);
  return answer?.status === 404;
}
