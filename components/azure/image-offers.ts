import { versions } from "../versions";
import { toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import { ArmClient } from "./resource-manager";

/** The machine image, but for its version. */
export const image = { publisher: "Canonical", offer: "ubuntu-24_04-lts", sku: "server" } as const;

/** The version that new machines are made of, or their gallery image is. */
export const imageVersionOf = ({ imageVersion }: Pick<Settings, "imageVersion">): string =>
  imageVersion || versions.ubuntuImage;

/** What new machines are made of. */
export const imageReferenceOf = (settings: Pick<Settings, "image" | "imageVersion">) =>
  settings.image === "" ? { ...image, version: imageVersionOf(settings) } : { id: settings.image };

/** Whether Azure makes machines of the image that is wanted. */
export interface ImageOffer {
  readonly isDeployable: boolean;
  /** The newest version that it makes machines of, where it is not the one that is wanted. */
  readonly newest?: string;
  /** Why it makes none of the gallery image that the settings name. */
  readonly refusal?: string;
  /** What that image has otherwise than its machines. */
  readonly lacking?: readonly string[];
}

interface ImageVersion {
  readonly name: string;
  readonly properties?: { readonly imageDeprecationStatus?: { readonly imageState?: string } };
}

/** A list can name versions that are gone already; of these many one is not. */
const tried = 5;

const apiVersion = { "api-version": "2024-07-01" };

/** Asks for the wanted version, and only where it cannot be had for others. */
export async function getImage(
  arm: ArmClient,
  subscriptionId: string,
  settings: Settings,
): Promise<ImageOffer> {
  const { location } = settings;
  const imageVersion = imageVersionOf(settings);
  const path =
    `/subscriptions/${subscriptionId}/providers/Microsoft.Compute/locations/${location}` +
    `/publishers/${image.publisher}/artifacttypes/vmimage/offers/${image.offer}/skus/${image.sku}/versions`;
  const isDeployable = async (version: string) => {
    const found = await arm.get<ImageVersion>(`${path}/${version}`, apiVersion, { name: "" });
    return (
      found !== undefined && found.properties?.imageDeprecationStatus?.imageState !== "Deprecated"
    );
  };

  if (await isDeployable(imageVersion)) return { isDeployable: true };
  const listed = await arm.list<ImageVersion>(path, apiVersion, { name: "" });
  const newestFirst = listed
    .map(({ name }) => name)
    .filter((name) => name !== imageVersion)
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  for (const version of newestFirst.slice(0, tried)) {
    if (await isDeployable(version)) return { isDeployable: false, newest: version };
  }
  return { isDeployable: false };
}

/**
 * Refuses an image that machines are to be made of and that Azure does not have, or has no more.
 */
export function imageProblems(
  machines: readonly MachinePlan[],
  { isDeployable, newest, refusal }: ImageOffer,
  settings: Settings,
): string[] {
  const { location } = settings;
  const imageVersion = imageVersionOf(settings);
  if (isDeployable || machines.length === 0) return [];
  if (refusal !== undefined) {
    return [`${refusal}; ${machines.map(({ name }) => name).join(", ")} would be made of it`];
  }
  return [
    `imageVersion is ${JSON.stringify(imageVersion)}, which Azure does not have in ${location} or has withdrawn, and ` +
      `${machines.map(({ name }) => name).join(", ")} would be made of it; expected a version of ` +
      `${Object.values(image).join(":")} that it has` +
      (newest === undefined
        ? `; list them: az vm image list -l ${location} -p ${image.publisher} -f ${image.offer} -s ${image.sku} --all -o table`
        : `, the newest of which is ${newest}`) +
      ` (${toSet("imageVersion", newest ?? "VERSION")})`,
  ];
}

/** What new machines do without, since their gallery image was made for others. */
export function imageWarnings(
  machines: readonly MachinePlan[],
  { lacking = [] }: ImageOffer,
): string[] {
  if (machines.length === 0 || lacking.length === 0) return [];
  return [
    `image has ${lacking.join(", ")}: the first boot of ${machines.map(({ name }) => name).join(", ")} installs what is missing, ` +
      "which takes minutes and a way to packages and images. npm run image makes an image for these settings",
  ];
}
