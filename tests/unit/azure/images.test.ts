import { contentTags, getGalleryImage } from "../../../components/azure/gallery-image";
import { type Hardware, plainHardware } from "../../../components/azure/hardware";
import { imageProblems, imageWarnings } from "../../../components/azure/image-offers";
import { ArmClient } from "../../../components/azure/resource-manager";
import type { MachinePlan } from "../../../components/settings/topology";
import { minors, versions } from "../../../components/versions";
import type { MachineBody } from "../../../tools/local-azure/arm/types/compute/virtual-machine-validation";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import {
  createResources,
  newArm,
  tokenOf,
} from "../../../tools/local-azure/tests/support/arm/fixture";
import {
  group,
  valid,
  withChange,
} from "../../../tools/local-azure/tests/support/arm/valid-resources";
import { machine, validSettings } from "../../support/sample";

const [definitionId] = valid.definition;
const [machineId] = valid.machine;
const identityId = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/login`;
const location = "westeurope";

interface Scene {
  readonly settings?: Partial<typeof validSettings>;
  readonly definition?: Record<string, unknown>;
  readonly tags?: Record<string, string>;
  /** @default it owns the subscription */
  readonly hasRights?: false;
  readonly isThere?: false;
  /** Of the machine that it is made of. */
  readonly osDiskSizeGb?: number;
}

/** What is said of an image that others have made of a machine. */
async function answerTo({
  settings,
  definition,
  tags,
  hasRights,
  isThere,
  osDiskSizeGb = 30,
}: Scene) {
  const { arm } = newArm();
  await createResources(arm, "machine");
  const { storageProfile } = arm.view.find(machineId)!.body as MachineBody;
  Object.assign(storageProfile!.osDisk!, { diskSizeGB: osDiskSizeGb });
  await arm.power(machineId, "deallocate", { perform: () => undefined });
  await arm.generalize(machineId);
  const about = `${definitionId}-asked`;
  const identifier = { publisher: "zoned", offer: "kubernetes", sku: "asked" };
  const image = `${about}/versions/1.0.0`;
  await arm.put(about, withChange("definition", { identifier }));
  if (isThere !== false) {
    const source = { virtualMachineId: machineId };
    await arm.put(image, { location, tags, storageProfile: { source } });
  }
  // Of another definition no image could be made of this machine.
  Object.assign(arm.view.find(about)!.body, definition);
  await arm.put(identityId, { location });
  const token = hasRights === false ? tokenOf(arm, identityId) : "me";
  const rest = await serveRest(arm, 0);
  try {
    const client = new ArmClient(`http://127.0.0.1:${rest.port}`, token);
    const wanted = { ...validSettings, image, ...settings };
    const offer = await getGalleryImage(client, wanted);
    const offers = new Map([["x64" as const, offer]]);
    const problemsOf = (machines: readonly MachinePlan[], of: Partial<Hardware> = {}) =>
      imageProblems(
        machines,
        offers,
        new Map([[machine.name, { ...plainHardware, ...of }]]),
        wanted,
      );
    return {
      problems: problemsOf([machine]),
      ofMachines: problemsOf,
      withNvme: problemsOf([machine], { isNvmeOnly: true }),
      ofArm: problemsOf([machine], { architecture: "arm64" }),
      warnings: imageWarnings([machine], offers, new Map(), wanted),
      ofNone: [problemsOf([]), imageWarnings([], offers, new Map(), wanted)],
    };
  } finally {
    await rest.close();
  }
}

it("takes an image that was made for these settings", async () => {
  const { problems, warnings } = await answerTo({ tags: contentTags(validSettings) });

  expect([problems, warnings]).toEqual([[], []]);
});

it("refuses one that is larger than the OS disks of its machines, with the setting of each", async () => {
  const pool = { ...machine, name: "zoned-test-workers-1", pool: "workers" };
  const { ofMachines } = await answerTo({ tags: contentTags(validSettings), osDiskSizeGb: 128 });

  expect(ofMachines([{ ...machine, osDiskSizeGb: 128 }])).toEqual([]);
  expect(ofMachines([machine, pool])).toEqual([
    expect.stringMatching(
      /^zoned-test-cp-1: osDiskSizeGb is 64, expected at least the 128 GB of image \S+, .*\(pulumi config set osDiskSizeGb 128, or a smaller image: pulumi config set image ID\)$/,
    ),
    expect.stringMatching(
      /^zoned-test-workers-1: .*\(pulumi config set --path 'workerPools\[0\]\.osDiskSizeGb' 128, /,
    ),
  ]);
});

it("refuses one for SCSI alone where a size has none, and leaves machines of Arm as they are", async () => {
  const features = [{ name: "SecurityType", value: "TrustedLaunch" }];
  const scsi = await answerTo({ tags: contentTags(validSettings), definition: { features } });
  const windows = await answerTo({ definition: { osType: "Windows" } });

  expect(scsi.problems).toEqual([]);
  expect(scsi.withNvme).toEqual([
    expect.stringMatching(
      /has NVMe disks only, and image \S+ boots from SCSI alone; .* set image ID/,
    ),
  ]);
  expect(windows.ofArm).toEqual([]);
});

it.each<[string, Scene, RegExp]>([
  [
    "that Azure has not",
    { isThere: false },
    /^image is \S+\/1\.0\.0, expected a version that Azure has: npm run image .*pulumi config rm image\)/,
  ],
  [
    "without a copy in the region",
    { settings: { location: "northeurope" } },
    /one that is replicated to northeurope, and it is in westeurope: az sig image-version update --ids \/subscriptions\/\S+\/versions\/[\d.]+ --add publishingProfile.targetRegions name=northeurope/,
  ],
  ["of Windows", { definition: { osType: "Windows" } }, /osType Linux, and it is Windows/],
  [
    "of one machine's own",
    { definition: { osState: "Specialized" } },
    /osState Generalized, since .* it is Specialized/,
  ],
  [
    "of the first generation",
    { definition: { hyperVGeneration: undefined } },
    /hyperVGeneration V2, and it is V1/,
  ],
  ["for Arm", { definition: { architecture: "Arm64" } }, /architecture x64, and it is Arm64/],
  [
    "without trusted launch",
    { definition: { features: [] } },
    /the feature SecurityType TrustedLaunch, .*, and it is None/,
  ],
  [
    "that the login may not read",
    { hasRights: false },
    /^the login may not read image .*az role assignment create --assignee LOGIN --role Reader --scope \S+\/node-asked;/,
  ],
])("refuses an image %s, and names its machines", async (_, scene, says) => {
  const { problems, ofNone } = await answerTo(scene);

  expect(problems).toEqual([expect.stringMatching(says)]);
  expect(problems[0]).toMatch(new RegExp(`; ${machine.name} would be made of it$`));
  expect(ofNone).toEqual([[], []]);
});

it.each<[string, Scene["tags"], string]>([
  ["says nothing", undefined, "zoned-kubernetes not set and not"],
  [
    "has another Kubernetes",
    { ...contentTags(validSettings), "zoned-kubernetes": "1.36.0" },
    "zoned-kubernetes 1.36.0 and not",
  ],
  [
    "has the images of other add-ons",
    contentTags({ ...validSettings, cni: "flannel" }),
    `zoned-add-ons flannel ${versions.flannel}, cloud-node-manager ${minors[0].cloudProvider}, disk-driver ${versions.diskDriver} and not canal`,
  ],
])("warns of what has to be installed where an image %s", async (_, tags, says) => {
  const { problems, warnings, ofNone } = await answerTo({ tags });

  expect(problems).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining(says)]);
  expect(warnings[0]).toContain(`the first boot of ${machine.name} installs`);
  expect(ofNone).toEqual([[], []]);
});
