import { Hardware, plainHardware } from "../../../components/azure/hardware";
import {
  contentTags,
  getGalleryImage,
  getImage,
  ImageOffer,
  imageProblems,
  imageWarnings,
} from "../../../components/azure/image-offers";
import { ArmClient } from "../../../components/azure/resource-manager";
import { MachinePlan } from "../../../components/settings/topology";
import { minors, versions as pinned, versions } from "../../../components/versions";
import type { MachineBody } from "../../../tools/local-azure/arm/types/compute/virtual-machine-validation";
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
import { connectionTo } from "../../support/azure";
import { serve } from "../../support/listen";
import { machine, subscriptionId, validSettings } from "../../support/sample";

describe("image offers", () => {
  const versions =
    `/subscriptions/${subscriptionId}/providers/Microsoft.Compute/locations/westeurope/publishers/Canonical` +
    "/artifacttypes/vmimage/offers/ubuntu-24_04-lts/skus/server/versions";

  /** Asks an Azure that lists these versions, some of which it does not deploy. */
  async function ask(
    wanted: string,
    listed: string[],
    { gone = [] as string[], deprecated = [] as string[], controllers = "" } = {},
  ) {
    const asked: string[] = [];
    const azure = await serve(({ url = "" }, response) => {
      const path = url.split("?")[0]!;
      asked.push(path.replace(versions, ""));
      const version = path.slice(versions.length + 1);
      const imageState = deprecated.includes(version) ? "Deprecated" : "Active";
      if (path === versions) {
        // In no order, and without an envelope.
        response.end(JSON.stringify(listed.map((name) => ({ name }))));
      } else if (listed.includes(version) && !gone.includes(version)) {
        const features = [{ name: "DiskControllerTypes", value: controllers }];
        const properties = {
          imageDeprecationStatus: { imageState },
          ...(controllers !== "" && { features }),
        };
        response.end(JSON.stringify({ name: version, properties }));
      } else {
        const error = { code: "NotFound", message: "Artifact: VMImage was not found." };
        response.writeHead(404).end(JSON.stringify({ error }));
      }
    });
    const arm = new ArmClient(azure, "token");
    return {
      offer: await getImage(arm, subscriptionId, { ...validSettings, imageVersion: wanted }, "x64"),
      asked,
    };
  }

  const listed = ["24.04.202607140", "24.04.202610010", "24.04.202608110"];

  it("asks once about a version that can be deployed", async () => {
    const { offer, asked } = await ask("24.04.202607140", listed);

    expect(offer).toEqual({ isDeployable: true });
    expect(asked).toEqual(["/24.04.202607140"]);
  });

  it.each([
    ["was never published", "24.04.202601010", {}],
    ["is listed and gone", "24.04.202607140", { gone: ["24.04.202607140"] }],
    ["is deprecated", "24.04.202607140", { deprecated: ["24.04.202607140"] }],
  ])("names the newest version in place of one that %s", async (_, wanted, how) => {
    expect((await ask(wanted, listed, how)).offer).toEqual({
      isDeployable: false,
      newest: "24.04.202610010",
    });
  });

  it("proposes no version that is withdrawn itself", async () => {
    const how = { gone: ["24.04.202610010"], deprecated: ["24.04.202608110"] };

    expect((await ask("24.04.202601010", listed, how)).offer.newest).toBe("24.04.202607140");
  });

  it("compares versions by their numbers, and asks for five of them at most", async () => {
    const releases = ["24.04.9", "24.04.10", "24.04.8", "24.04.7", "24.04.6", "24.04.5"];
    const { offer, asked } = await ask("24.04.1", releases, { gone: releases });

    expect(offer).toEqual({ isDeployable: false });
    expect(asked.slice(2)).toEqual(
      ["10", "9", "8", "7", "6"].map((release) => `/24.04.${release}`),
    );
  });

  it("knows of no other version where there is none", async () => {
    expect((await ask("24.04.202601010", [])).offer).toEqual({ isDeployable: false });
  });

  it("reads which disks the image boots from, where Azure says it", async () => {
    const { offer } = await ask("24.04.202607140", listed, { controllers: "SCSI, NVMe" });

    expect(offer).toEqual({ isDeployable: true, diskControllers: "SCSI, NVMe" });
  });

  const problemsOf = (
    machines: readonly MachinePlan[],
    offer: ImageOffer,
    hardware: Partial<Hardware> = {},
  ) =>
    imageProblems(
      machines,
      new Map([[hardware.architecture ?? "x64", offer]]),
      new Map(machines.map(({ name }) => [name, { ...plainHardware, ...hardware }])),
      validSettings,
    );

  it.each([
    ["SCSI", true, 1],
    ["SCSI, NVMe", true, 0],
    [undefined, true, 0],
    ["SCSI", false, 0],
  ])(
    "of an image for %s and NVMe alone being %s there are %d problems",
    (of, isNvmeOnly, count) => {
      const problems = problemsOf(
        [machine],
        { isDeployable: true, diskControllers: of },
        { isNvmeOnly },
      );

      expect(problems).toHaveLength(count);
      expect(problems.join()).toMatch(
        count === 0 ? /^$/ : /zoned-test-cp-1: size .* NVMe disks only/,
      );
    },
  );

  it("names the machines that cannot be made, and the command", () => {
    const machines = [machine, { ...machine, name: "zoned-test-cp-2" }];
    const offer = { isDeployable: false, newest: "24.04.202610010" };

    const [problem, ...more] = problemsOf(machines, offer);

    expect(more).toEqual([]);
    expect(problem).toContain(`imageVersion is "${pinned.ubuntuImage}"`);
    expect(problem).toContain("zoned-test-cp-1, zoned-test-cp-2 would be made of it");
    expect(problem).toContain("Canonical:ubuntu-24_04-lts:server");
    expect(problem).toMatch(/\(pulumi config set imageVersion 24\.04\.202610010\)$/);
    expect(problemsOf(machines, { isDeployable: false })[0]).toContain(
      "az vm image list -l westeurope",
    );
    const onArm = problemsOf(machines, offer, { architecture: "arm64" });
    expect(onArm).toEqual([expect.stringContaining("ubuntu-24_04-lts:server-arm64 that it has")]);
  });

  it("minds no withdrawn image that no machine is to be made of", () => {
    expect(problemsOf([], { isDeployable: false })).toEqual([]);
    expect(problemsOf([machine], { isDeployable: true })).toEqual([]);
  });

  describe("a machine with an Arm processor", () => {
    const gallery = "/subscriptions/s/galleries/g/images/node/versions/1.0.0";
    const mirror = "http://10.0.0.4:8080";
    const arm = new Map([[machine.name, { ...plainHardware, architecture: "arm64" as const }]]);
    const warningsOf = (
      settings: Partial<typeof validSettings>,
      architectures: readonly ("x64" | "arm64")[],
      created: readonly MachinePlan[] = [machine],
    ) =>
      imageWarnings(
        created,
        new Map(architectures.map((one) => [one, { isDeployable: true }])),
        arm,
        { ...validSettings, ...settings },
      );

    it("is warned of where nothing else would be made of the image", () => {
      expect(warningsOf({ image: gallery }, ["arm64"])).toEqual([
        expect.stringMatching(
          /^image is not used: .* so that zoned-test-cp-1 would be made of Ubuntu's image \(pulumi config rm image\)$/,
        ),
      ]);
      expect(warningsOf({ image: gallery }, ["x64", "arm64"])).toEqual([]);
      expect(warningsOf({}, ["arm64"])).toEqual([]);
      expect(warningsOf({ image: gallery }, ["arm64"], [])).toEqual([]);
    });

    it("is warned of where all that it takes comes from a mirror, which npm run mirror fills for x64", () => {
      expect(warningsOf({ mirror }, ["x64", "arm64"])).toEqual([
        expect.stringMatching(
          /^zoned-test-cp-1 would have .* from mirror http:.* for arm64, .* for x64/,
        ),
      ]);
      expect(warningsOf({ mirror: "/srv/manifests" }, ["arm64"])).toEqual([]);
      expect(warningsOf({ mirror }, ["arm64"], [])).toEqual([]);
    });
  });
});

describe("gallery image", () => {
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
    /** Where it is, as Azure writes that for people. */
    readonly regions?: readonly string[];
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
    regions = ["West Europe"],
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
      const publishingProfile = { targetRegions: regions.map((name) => ({ name })) };
      await arm.put(image, { location, tags, publishingProfile, storageProfile: { source } });
    }
    // Of another definition no image could be made of this machine.
    Object.assign(arm.view.find(about)!.body, definition);
    await arm.put(identityId, { location });
    const token = hasRights === false ? tokenOf(arm, identityId) : undefined;
    const { arm: client } = await connectionTo(arm, token);
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
  }

  it("takes an image that was made for these settings", async () => {
    const { problems, warnings } = await answerTo({ tags: contentTags(validSettings) });

    expect([problems, warnings]).toEqual([[], []]);
  });

  it("takes one that is replicated to the machines' region, however many words its name has", async () => {
    const { problems } = await answerTo({
      ...{ tags: contentTags(validSettings), settings: { location: "eastus2" } },
      regions: ["West Europe", "East US 2"],
    });

    expect(problems).toEqual([]);
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
      /^the login may not read image .*az role assignment create --assignee LOGIN --role 'Reader' --scope \S+\/node-asked;/,
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
});
