import { parseGalleryImage } from "../settings/azure-ids";
import { quoted, toRemove, toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { minorFor, versions } from "../versions";
import type { ImageOffer } from "./image-offers";
import type { ArmClient } from "./resource-manager";

/** What an image has is made by these. */
type ContentSettings = Pick<
  Settings,
  | "kubernetesVersion"
  | "containerRuntime"
  | "registries"
  | "cni"
  | "cloudProvider"
  | "diskDriver"
  | "reboots"
>;

/** What a gallery image says of its contents, by the name of the tag. */
export const contentTags = (settings: ContentSettings): Readonly<Record<string, string>> => ({
  "zoned-kubernetes": settings.kubernetesVersion,
  "zoned-container-runtime": settings.containerRuntime,
  "zoned-add-ons": addOnsOf(settings),
  ...(settings.registries.length > 0 && {
    "zoned-credential-provider": minorFor(settings.kubernetesVersion).cloudProvider,
  }),
});

/** Those that run on every machine, and the version of each. */
function addOnsOf(settings: ContentSettings): string {
  const { cloudProvider } = minorFor(settings.kubernetesVersion);
  const all = [
    [settings.cni === "canal", `canal ${versions.calico}`],
    [settings.cni === "flannel", `flannel ${versions.flannel}`],
    [settings.cloudProvider, `cloud-node-manager ${cloudProvider}`],
    [settings.diskDriver, `disk-driver ${versions.diskDriver}`],
    [settings.reboots !== undefined, `kured ${versions.kured}`],
  ] as const;
  const chosen = all.filter(([isWanted]) => isWanted).map(([, name]) => name);
  return chosen.join(", ") || "none";
}

interface Version {
  readonly tags?: Readonly<Record<string, string>>;
  readonly properties: {
    readonly provisioningState: string;
    readonly storageProfile?: { readonly osDiskImage?: { readonly sizeInGB?: number } };
    readonly publishingProfile?: { readonly targetRegions?: readonly { readonly name: string }[] };
  };
}

interface Definition {
  readonly properties: {
    readonly osType: string;
    readonly osState: string;
    readonly hyperVGeneration?: string;
    readonly architecture?: string;
    readonly features?: readonly { readonly name: string; readonly value: string }[];
  };
}

const apiVersion = { "api-version": "2024-03-03" };

/** Asks for the gallery image that the settings name, of which Azure speaks only when the first machine is made. */
export async function getGalleryImage(
  arm: ArmClient,
  settings: Pick<Settings, "image" | "location"> & ContentSettings,
): Promise<ImageOffer> {
  const { image } = settings;
  const refused = (expected: string): ImageOffer => ({
    isDeployable: false,
    refusal: `image is ${image}, expected ${expected} (${toSet("image", "ID")}, or ${toRemove("image")})`,
  });
  const { definition } = parseGalleryImage(image)!;
  const [version, about] = await Promise.all([
    arm.getIfReadable<Version>(image, apiVersion, { properties: { provisioningState: "" } }),
    arm.getIfReadable<Definition>(definition, apiVersion, {
      properties: { osType: "", osState: "" },
    }),
  ]);
  if (version === "unreadable" || about === "unreadable") {
    return {
      isDeployable: false,
      refusal:
        `the login may not read image ${image}, which Azure asks of whoever makes machines of it: let its owner run ` +
        `az role assignment create --assignee LOGIN --role Reader --scope ${quoted(definition)}`,
    };
  }
  if (version === undefined || about === undefined) {
    return refused(
      "a version that Azure has: npm run image makes one, and az sig image-version list shows them",
    );
  }
  const expected = flawOf(version, about.properties, settings);
  if (expected !== undefined) return refused(expected);
  return {
    isDeployable: true,
    diskControllers: featureOf(about.properties, "DiskControllerTypes") ?? "SCSI",
    lacking: lackingIn(version.tags ?? {}, settings),
    sizeGb: version.properties.storageProfile?.osDiskImage?.sizeInGB,
  };
}

const featureOf = (
  { features = [] }: Definition["properties"],
  feature: "SecurityType" | "DiskControllerTypes",
): string | undefined => features.find(({ name }) => name === feature)?.value;

/** Azure names regions for people here. */
const shortName = (region: string): string => region.replaceAll(" ", "").toLowerCase();

/** What is expected, where something is not as it is. */
function flawOf(
  { properties: { provisioningState, publishingProfile } }: Version,
  about: Definition["properties"],
  { image, location }: Pick<Settings, "image" | "location">,
): string | undefined {
  if (provisioningState !== "Succeeded") {
    return `one that is complete, and its provisioningState is ${provisioningState}: wait for it, or make another`;
  }
  const regions = (publishingProfile?.targetRegions ?? []).map(({ name }) => shortName(name));
  if (!regions.includes(location)) {
    return `one that is replicated to ${location}, and it is in ${regions.join(", ")}: az sig image-version update --ids ${quoted(image)} --add publishingProfile.targetRegions name=${location}`;
  }
  const security = featureOf(about, "SecurityType") ?? "None";
  const wanted: readonly (readonly [boolean, string])[] = [
    [about.osType === "Linux", `osType Linux, and it is ${about.osType}`],
    [
      about.osState === "Generalized",
      `osState Generalized, since each machine needs keys and a name of its own, and it is ${about.osState}`,
    ],
    [
      about.hyperVGeneration === "V2",
      `hyperVGeneration V2, and it is ${about.hyperVGeneration ?? "V1"}`,
    ],
    [(about.architecture ?? "x64") === "x64", `architecture x64, and it is ${about.architecture}`],
    [
      security.startsWith("TrustedLaunch"),
      `the feature SecurityType TrustedLaunch, with which the machines are made, and it is ${security}`,
    ],
  ];
  const flaws = wanted.filter(([holds]) => !holds).map(([, flaw]) => flaw);
  return flaws.length === 0 ? undefined : `a definition with ${flaws.join("; ")}`;
}

/** What the image's tags say otherwise than these machines want it. */
const lackingIn = (tags: Readonly<Record<string, string>>, settings: ContentSettings): string[] =>
  Object.entries(contentTags(settings)).flatMap(([name, wanted]) => {
    const found = tags[name];
    return found === wanted ? [] : [`${name} ${found ?? "not set"} and not ${wanted}`];
  });
