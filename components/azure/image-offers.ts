import { minorFor, versions } from "../versions";
import { machineMirror } from "../settings/sources";
import { quoted, toRemove, toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import { Hardware, plainHardware } from "./hardware";
import { ArmClient } from "./resource-manager";
import { letOwnerGrant } from "./rights";
import { type Architecture, poolPath } from "./size-offers";
import { parseGalleryImage } from "../settings/azure-ids";

const skus: Readonly<Record<Architecture, string>> = { x64: "server", arm64: "server-arm64" };

/** The image of machines of an architecture, but for its version, which all have in common. */
export const imageOf = (architecture: Architecture) => ({
  publisher: "Canonical",
  offer: "ubuntu-24_04-lts",
  sku: skus[architecture],
});

/** The version that new machines are made of, or their gallery image is. */
export const imageVersionOf = ({ imageVersion }: Pick<Settings, "imageVersion">): string =>
  imageVersion || versions.ubuntuImage;

/** What new machines of an architecture are made of: gallery images are of x64. */
export const imageReferenceOf = (
  settings: Pick<Settings, "image" | "imageVersion">,
  architecture: Architecture,
) =>
  isOfGallery(settings, architecture)
    ? { id: settings.image }
    : { ...imageOf(architecture), version: imageVersionOf(settings) };

export const isOfGallery = ({ image }: Pick<Settings, "image">, architecture: Architecture) =>
  image !== "" && architecture === "x64";

/** Whether Azure makes machines of the image that is wanted. */
export interface ImageOffer {
  readonly isDeployable: boolean;
  /** The kinds of disk controllers that it can boot with; undefined where Azure does not say. */
  readonly diskControllers?: string;
  /** The newest version that it makes machines of, where it is not the one that is wanted. */
  readonly newest?: string;
  /** Why it makes none of the gallery image that the settings name. */
  readonly refusal?: string;
  /** What that image has otherwise than its machines. */
  readonly lacking?: readonly string[];
  /** Of its OS disk; undefined where Azure does not say. */
  readonly sizeGb?: number;
}

interface ImageVersion {
  readonly name: string;
  readonly properties?: {
    readonly imageDeprecationStatus?: { readonly imageState?: string };
    readonly features?: readonly { readonly name: string; readonly value: string }[];
  };
}

/** A list can name versions that are gone already; of these many one is not. */
const tried = 5;

const apiVersion = { "api-version": "2024-07-01" };

/** Asks for the wanted version, and only where it cannot be had for others. */
export async function getImage(
  arm: ArmClient,
  subscriptionId: string,
  settings: Settings,
  architecture: Architecture,
): Promise<ImageOffer> {
  const image = imageOf(architecture);
  const { location } = settings;
  const imageVersion = imageVersionOf(settings);
  const path =
    `/subscriptions/${subscriptionId}/providers/Microsoft.Compute/locations/${location}` +
    `/publishers/${image.publisher}/artifacttypes/vmimage/offers/${image.offer}/skus/${image.sku}/versions`;
  const deployable = async (version: string): Promise<ImageVersion | undefined> => {
    const found = await arm.get<ImageVersion>(`${path}/${version}`, apiVersion, { name: "" });
    const isWithdrawn = found?.properties?.imageDeprecationStatus?.imageState === "Deprecated";
    return isWithdrawn ? undefined : found;
  };

  const wanted = await deployable(imageVersion);
  if (wanted !== undefined) {
    const { features = [] } = wanted.properties ?? {};
    const diskControllers = features.find(({ name }) => name === "DiskControllerTypes")?.value;
    return { isDeployable: true, ...(diskControllers !== undefined && { diskControllers }) };
  }
  const listed = await arm.list<ImageVersion>(path, apiVersion, { name: "" });
  const newestFirst = listed
    .map(({ name }) => name)
    .filter((name) => name !== imageVersion)
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  for (const version of newestFirst.slice(0, tried)) {
    if (await deployable(version)) return { isDeployable: false, newest: version };
  }
  return { isDeployable: false };
}

/**
 * Refuses an image that machines are to be made of and that Azure does not have, or has no more, or that
 * does not boot from the disks that they have, or is larger than those.
 *
 * @param created machines that are to be made
 */
export function imageProblems(
  created: readonly MachinePlan[],
  offers: ReadonlyMap<Architecture, ImageOffer>,
  hardware: ReadonlyMap<string, Hardware>,
  settings: Settings,
): string[] {
  return [...offers].flatMap(([architecture, offer]) => {
    const machines = madeOf(architecture, created, hardware);
    if (machines.length === 0) return [];
    if (!offer.isDeployable) return missingImage(machines, architecture, offer, settings);
    const { diskControllers } = offer;
    const unbootable = machines.filter(
      ({ name }) =>
        hardware.get(name)?.isNvmeOnly &&
        diskControllers !== undefined &&
        !/\bNVMe\b/i.test(diskControllers),
    );
    const [image, fix] = isOfGallery(settings, architecture)
      ? [`image ${settings.image}`, toSet("image", "ID")]
      : [
          [...Object.values(imageOf(architecture)), imageVersionOf(settings)].join(":"),
          toSet("imageVersion", "VERSION"),
        ];
    const { sizeGb = 0 } = offer;
    return [
      ...unbootable.map(
        ({ name, size }) =>
          `${name}: size ${size} has NVMe disks only, and ${image} boots from ${diskControllers} alone; ` +
          `take another image (${fix}), or a size with SCSI`,
      ),
      ...machines
        .filter(({ osDiskSizeGb }) => osDiskSizeGb < sizeGb)
        .map((machine) => {
          const of = machine.pool === undefined ? "" : `${poolPath(settings, machine)}.`;
          return (
            `${machine.name}: osDiskSizeGb is ${machine.osDiskSizeGb}, expected at least the ${sizeGb} GB of ${image}, ` +
            `since Azure makes no OS disk smaller than its image (${toSet(`${of}osDiskSizeGb`, sizeGb)}, or a smaller image: ${fix})`
          );
        }),
    ];
  });
}

/** Those of the machines that have this architecture. */
const madeOf = (
  architecture: Architecture,
  machines: readonly MachinePlan[],
  hardware: ReadonlyMap<string, Hardware>,
): MachinePlan[] =>
  machines.filter(
    ({ name }) => (hardware.get(name) ?? plainHardware).architecture === architecture,
  );

function missingImage(
  machines: readonly MachinePlan[],
  architecture: Architecture,
  { newest, refusal }: ImageOffer,
  settings: Settings,
): string[] {
  const { location } = settings;
  const image = imageOf(architecture);
  if (refusal !== undefined) {
    return [`${refusal}; ${machines.map(({ name }) => name).join(", ")} would be made of it`];
  }
  return [
    `imageVersion is ${JSON.stringify(imageVersionOf(settings))}, which Azure does not have in ${location} or has withdrawn, and ` +
      `${machines.map(({ name }) => name).join(", ")} would be made of it; expected a version of ` +
      `${Object.values(image).join(":")} that it has` +
      (newest === undefined
        ? `; list them: az vm image list -l ${location} -p ${image.publisher} -f ${image.offer} -s ${image.sku} --all -o table`
        : `, the newest of which is ${newest}`) +
      ` (${toSet("imageVersion", newest ?? "VERSION")})`,
  ];
}

/**
 * What new machines do without: since their gallery image was made for others, or since they are Arm, for which neither
 * an image nor `npm run mirror` is.
 */
export function imageWarnings(
  created: readonly MachinePlan[],
  offers: ReadonlyMap<Architecture, ImageOffer>,
  hardware: ReadonlyMap<string, Hardware>,
  { image, mirror }: Pick<Settings, "image" | "mirror">,
): string[] {
  const arm = madeOf("arm64", created, hardware);
  const names = (machines: readonly MachinePlan[]) => machines.map(({ name }) => name).join(", ");
  const ofArm: [boolean, string][] = [
    [
      image !== "" && !offers.has("x64"),
      `image is not used: it is for x64, and all sizes have Arm processors, so that ${names(arm)} would be made of Ubuntu's image ` +
        `(${toRemove("image")})`,
    ],
    [
      machineMirror(mirror) !== "",
      `${names(arm)} would have Arm processors and take all from mirror ${mirror}: it needs packages, archives and images for arm64, and ` +
        "npm run mirror fills one for x64 alone",
    ],
  ];
  return [
    ...[...offers].flatMap(([architecture, { lacking = [] }]) => {
      const machines = madeOf(architecture, created, hardware);
      if (machines.length === 0 || lacking.length === 0) return [];
      return [
        `image has ${lacking.join(", ")}: the first boot of ${names(machines)} installs what is missing, ` +
          "which takes minutes and a way to packages and images. npm run image makes an image for these settings",
      ];
    }),
    ...ofArm.filter(([holds]) => holds && arm.length > 0).map(([, warning]) => warning),
  ];
}

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

const galleryVersion = { "api-version": "2024-03-03" };

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
    arm.getIfReadable<Version>(image, galleryVersion, { properties: { provisioningState: "" } }),
    arm.getIfReadable<Definition>(definition, galleryVersion, {
      properties: { osType: "", osState: "" },
    }),
  ]);
  if (version === "unreadable" || about === "unreadable") {
    return {
      isDeployable: false,
      refusal:
        `the login may not read image ${image}, which Azure asks of whoever makes machines of it: ` +
        letOwnerGrant("Reader", definition),
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
export const shortName = (region: string): string => region.replaceAll(" ", "").toLowerCase();

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
