import {
  cloudProviderImages,
  flannelImage,
  kuredImage,
  metricsServerImage,
} from "../../../components/versions";

/** What an image is for; each part but the first two can be left out by a setting. */
export type Part =
  | "Kubernetes"
  | "tests"
  | "flannel"
  | "Canal"
  | "cloud provider"
  | "disk driver"
  | "metrics-server"
  | "reboots";

export interface WantedImage {
  readonly image: string;
  readonly part: Part;
}

/** Settings of a stack without a part. */
export const without: Readonly<Partial<Record<Part, string>>> = {
  flannel: "pulumi config set cni canal",
  Canal: "pulumi config set cni flannel",
  "cloud provider": "pulumi config set cloudProvider false",
  "disk driver": "pulumi config set diskDriver false",
  "metrics-server": "pulumi config set metricsServer false",
  reboots: "pulumi config rm reboots",
};

/** Something small to run in pods, to try a cluster out. */
export const testImage = "docker.io/library/busybox:1.37.0";

/**
 * What most of upstream's conformance tests run, as test/utils/image/manifest.go of Kubernetes 1.37.2
 * names it. Not here: nginx, nonroot, nonewprivs, sample-apiserver, kitten, nautilus, ipc-utils.
 */
const upstreamTestImage = (image: string): string => `registry.k8s.io/e2e-test-images/${image}`;

/** It serves its host's name and its client's address, among much else. */
export const agnhostImage = upstreamTestImage("agnhost:2.66.1");

const testImages = [
  ...[testImage, agnhostImage],
  ...["busybox:1.37.0-2", "glibc-dns-testing:2.1.1"].map(upstreamTestImage),
];

const own = (kubernetes: readonly string[]): readonly WantedImage[] => [
  { image: flannelImage, part: "flannel" },
  ...kubernetes.flatMap((version) =>
    Object.values(cloudProviderImages(version)).map((image) => ({
      image,
      part: "cloud provider" as const,
    })),
  ),
  { image: metricsServerImage, part: "metrics-server" },
  { image: kuredImage, part: "reboots" },
  ...testImages.map((image) => ({ image, part: "tests" as const })),
];

export interface ManifestText {
  readonly part: Part;
  readonly text: string;
}

/** Everything that machines may pull: what kubeadm asks for, and what the add-ons name. */
export function wantedImages(
  kubernetes: readonly string[],
  kubeadms: readonly string[],
  manifests: readonly ManifestText[],
): WantedImage[] {
  const all = [
    ...kubeadms.map((image) => ({ image, part: "Kubernetes" as const })),
    ...own(kubernetes),
    ...manifests.flatMap(({ part, text }) =>
      [...text.matchAll(/^\s*(?:- )?image:\s*"?([^\s"]+)/gm)].map(([, image]) => ({
        image: image!,
        part,
      })),
    ),
  ];
  return [...new Map(all.map((one) => [one.image, one])).values()];
}
