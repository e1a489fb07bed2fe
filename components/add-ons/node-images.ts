import type { Settings } from "../settings/settings";
import { cloudProviderImages, flannelImage, kuredImage } from "../versions";
import { manifestsFor } from "./manifests/manifests";
import { parseObjects, type Workload } from "./objects";

/**
 * Images of the add-ons that run on every machine. kubeadm pulls its own.
 *
 * @param manifests text of upstream's files by path
 */
export function nodeImages(
  settings: Pick<
    Settings,
    "cni" | "cloudProvider" | "diskDriver" | "reboots" | "kubernetesVersion"
  >,
  manifests: ReadonlyMap<string, string>,
): string[] {
  const all = manifestsFor(settings).flatMap(({ path }) =>
    parseObjects(path, manifests.get(path) ?? "")
      .filter(({ kind }) => kind === "DaemonSet")
      .flatMap((daemonSet) => imagesOf(daemonSet as unknown as Workload)),
  );
  if (settings.cni === "flannel") all.push(flannelImage);
  if (settings.cloudProvider) {
    all.push(cloudProviderImages(settings.kubernetesVersion).nodeManager);
  }
  if (settings.reboots) all.push(kuredImage);
  return [...new Set(all)];
}

function imagesOf({ spec }: Workload): string[] {
  const { initContainers = [], containers } = spec.template.spec;
  return [...initContainers, ...containers].map(({ image }) => image);
}
