import { versions } from "../../../../components/versions";
import { AzureError } from "../azure-error";

export interface ImageReference {
  readonly id?: string;
  readonly publisher?: string;
  readonly offer?: string;
  readonly sku?: string;
  readonly version?: string;
  readonly exactVersion?: string;
}

interface Image {
  readonly urn: string;
  readonly generation: "V1" | "V2";
  readonly architecture: "x64" | "Arm64";
  /** @default SCSI and NVMe */
  readonly diskControllers?: "SCSI";
}

const images: readonly Image[] = [
  { urn: "Canonical:ubuntu-24_04-lts:server", generation: "V2", architecture: "x64" },
  {
    urn: "Canonical:ubuntu-24_04-lts:server-gen1",
    generation: "V1",
    architecture: "x64",
    diskControllers: "SCSI",
  },
  { urn: "Canonical:ubuntu-24_04-lts:server-arm64", generation: "V2", architecture: "Arm64" },
  { urn: "Canonical:ubuntu-24_04-lts:minimal", generation: "V2", architecture: "x64" },
  {
    urn: "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2",
    generation: "V2",
    architecture: "x64",
    diskControllers: "SCSI",
  },
  { urn: "Debian:debian-13:13-gen2", generation: "V2", architecture: "x64" },
];

export const imageName = ({ id, publisher, offer, sku, version }: ImageReference): string =>
  id ?? [publisher, offer, sku, version].join(":");

/** Versions in the order of the marketplace, oldest first. */
const published = ["24.04.202604160", versions.ubuntuImage, "24.04.202608110"];

export const diskControllersOf = ({
  diskControllers,
}: {
  readonly diskControllers?: string;
}): string => diskControllers ?? "SCSI, NVMe";

/** What the marketplace says of an image that it has. */
export const imageFeatures = (urn: string): object[] => {
  const image = images.find((one) => one.urn.toLowerCase() === urn.toLowerCase());
  return image === undefined
    ? []
    : [{ name: "DiskControllerTypes", value: diskControllersOf(image) }];
};

/** Versions of an image; undefined when the image does not exist. */
export const versionsOf = (urn: string): readonly string[] | undefined =>
  images.some((one) => one.urn.toLowerCase() === urn.toLowerCase()) ? published : undefined;

/** The image, with `latest` resolved. Throws when it is not in the marketplace. */
export function findImage(reference: ImageReference): Image & { readonly exactVersion: string } {
  const { publisher, offer, sku, version = "" } = reference;
  const urn = [publisher, offer, sku].join(":").toLowerCase();
  const image = images.find((one) => one.urn.toLowerCase() === urn);
  const isLatest = version === "latest";
  if (image !== undefined && (isLatest || published.includes(version))) {
    return { ...image, exactVersion: isLatest ? published.at(-1)! : version };
  }
  throw new AzureError(
    404,
    "PlatformImageNotFound",
    `The platform image '${imageName(reference)}' is not available. Verify that all fields in the storage profile are correct. ` +
      "For more details about storage profile information, please refer to https://aka.ms/storageprofile",
  );
}
