import { setTimeout } from "node:timers/promises";
import * as pulumi from "@pulumi/pulumi";

import * as capture from "../../../components/image/capture";
import { Builder, builderMachine } from "../../../components/image/builder";
import { serve } from "../../support/listen";
import { nothing, update, type Update } from "../../support/program";
import { Recorder, valueOf } from "../../support/record";
import { ImageGallery, imageGroup } from "../../../components/image/image-gallery";
import type { Settings } from "../../../components/settings/settings";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { idIn, validSettings } from "../../support/sample";
import { access, settingsWith, stackValues, type Values } from "../../support/stack";
import { testFolder } from "../../support/test-folder";
import { nodeImages } from "../../../components/add-ons/node-images";
import { knownImage } from "../../../components/image/known-image";
import { shownAs } from "../../../components/azure/shown";
import { customData } from "../../../components/machine/custom-data";
import * as payload from "../../../components/machine/payload";

const vmType = "azure-native:compute:VirtualMachine";
const versionType = "azure-native:compute:GalleryImageVersion";

// Both ask Azure, once there is a machine.
jest.spyOn(capture, "outputOf").mockImplementation(async () => "");
jest.spyOn(capture, "captureWhenOff").mockImplementation(async (machine) => machine);

it("has the tags of the settings on its machine, and every refusal of Azure's explained", async () => {
  const { requests } = await update({ tags: { team: "firm" } }, nothing, "image");

  const inAzure = requests.filter(({ type }) => type.startsWith("azure-native:"));
  const { inputs } = inAzure.find(({ type }) => type.endsWith(":VirtualMachine"))!;
  expect(await valueOf(pulumi.output(inputs["tags"]))).toEqual({ team: "firm" });
  for (const { name, opts } of inAzure)
    expect([name, opts.hooks?.onError]).toEqual([name, [expect.anything()]]);
});

it("keeps tags of others on its group, gallery and image, none that the settings had before, and no machine", async () => {
  const made = await update({ tags: { team: "firm", cost: "1" } }, nothing, "image");

  const before = { ...made, addedTags: { owner: "somebody" } };
  const { requests } = await update({ tags: { team: "firm" } }, before, "image");

  for (const type of [
    "resources:ResourceGroup",
    "compute:Gallery",
    "compute:GalleryImage",
    "compute:GalleryImageVersion",
  ]) {
    const { inputs } = requests.find((one) => one.type === `azure-native:${type}`)!;
    const others = Object.entries(inputs["tags"] as object).filter(
      ([name]) => !name.startsWith("zoned-"),
    );
    expect([type, Object.fromEntries(others)]).toEqual([type, { team: "firm", owner: "somebody" }]);
  }
  // An image that is made needs its machine no more.
  expect(requests.map(({ type }) => type)).not.toContain(vmType);
});

it("is made once, however often its stack is updated after that", async () => {
  const made = await update({}, nothing, "image");
  const kept = (outputs: Update["outputs"]) => update({}, { ...made, outputs }, "image");

  const second = await kept(made.outputs);
  const third = await kept(second.outputs);

  expect(third.outputs["version"]).toBe(made.outputs["version"]);
  expect(third.requests.map(({ type }) => type)).not.toContain(vmType);
});

it("is made anew, under another name, when Azure has it no more", async () => {
  const made = await update({}, nothing, "image");
  const gone = made.requests.filter(({ type }) => type !== versionType);
  const past = { ...made.outputs, version: "2026.1127.93005" };

  const { requests, outputs } = await update({}, { requests: gone, outputs: past }, "image");

  expect(outputs["version"]).not.toBe(past.version);
  const { inputs } = requests.find(({ type }) => type === versionType)!;
  expect(inputs["galleryImageVersionName"]).toBe(outputs["version"]);
  expect(requests.map(({ type }) => type)).toContain(vmType);
});

it("says what Azure's refusal of its machine means", async () => {
  const { requests } = await update({}, nothing, "image");
  const { inputs, opts } = requests.find(({ type }) => type === vmType)!;
  const said = jest.spyOn(pulumi.log, "error").mockImplementation(async () => undefined);

  const [hook] = opts.hooks!.onError as pulumi.ErrorHook[];
  const errors = ['Code="SkuNotAvailable"'];
  await hook!.callback({ name: "builder-vm", type: vmType, newInputs: inputs, errors } as never);

  expect(said.mock.calls.flat().join()).toContain(
    `${inputs["vmName"]}: this subscription cannot have size ${inputs["hardwareProfile"].vmSize} in zone 1 of`,
  );
  said.mockRestore();
});

it("is made in the first of the subnets that the settings name", async () => {
  const spoke = `${subscriptionPath}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/spoke`;
  const nodeSubnets = [`${spoke}/subnets/nodes`];

  const { requests } = await update({ nodeSubnets }, nothing, "image");

  const nic = requests.find(({ type }) => type.endsWith(":NetworkInterface"))!;
  expect(nic.inputs["ipConfigurations"][0].subnet).toEqual({ id: nodeSubnets[0] });
});

describe("no image is made", () => {
  /** Why. */
  async function refusal(values: Values): Promise<string> {
    const value = [{ subscriptionId: "the-subscription", tenantId: "t" }];
    const resourceManagerEndpoint = await serve((_, response) =>
      response.end(JSON.stringify({ value })),
    );
    await Recorder.start({
      calls: { "azure-native:authorization:getClientToken": () => ({ token: "local" }) },
    });
    const all = { ...access, ...stackValues("prod"), resourceManagerEndpoint, ...values };
    settingsWith(all, ["httpProxy"]);
    const program = require("../../../image") as () => Promise<unknown>;
    let says = "";
    await pulumi.runtime.runInPulumiStack(() =>
      program().catch(({ message }: Error) => void (says = message)),
    );
    return says;
  }

  it("by a proxy that asks for a login, which no first boot alone has", async () => {
    const httpProxy = { http: "", https: "http://me:hush@proxy.example:3128" };

    expect(await refusal({ httpProxy })).toMatch(
      /^httpProxy has a login, and no image can be made through it/,
    );
  });

  it.each([
    ["a mirror", { mirror: "http://10.0.0.5:8080" }, "10.0.0.5"],
    ["a proxy", { httpProxy: { http: "http://192.168.0.4:3128" } }, "192.168.0.4"],
  ])("in a network of its own, from where %s has no way", async (_, values, host) => {
    expect(await refusal(values)).toMatch(
      new RegExp(`^mirror or httpProxy is at ${host}, a private address, .*nodeSubnets\\[0\\]`),
    );
    const subnet = idIn("hub", "Microsoft.Network/virtualNetworks/spoke/subnets/nodes");
    const given = { ...values, nodeSubnets: [subnet] };
    expect(await refusal(given)).not.toContain("a private address");
  });

  it("without a manifest of the cluster's, and it is not advised to do without what the cluster has", async () => {
    const before = { ...process.env };
    process.env = { ...before, ZONED_MANIFESTS: testFolder(), XDG_CACHE_HOME: testFolder() };
    try {
      const says = await refusal({ cni: "canal" });

      expect(says).toMatch(/needed and could not be had/);
      expect(says).not.toContain("or do without");
    } finally {
      process.env = before;
    }
  });
});

it("tells its machine the images of add-ons, as machines of it look for them", async () => {
  const reboots = { days: ["tue"], from: "02:00", to: "05:00" };
  const images = async (program: "image" | "index") => {
    const { requests } = await update({ cni: "flannel", reboots }, nothing, program);
    const { inputs } = requests.find(({ type }) => type.endsWith(":VirtualMachine"))!;
    const { customData } = (await valueOf(pulumi.output(inputs["osProfile"]))) as {
      customData: string;
    };
    const [, ...lines] = Buffer.from(customData, "base64").toString().split("\n");
    const files = JSON.parse(lines.join("\n")).write_files as { path: string; content: string }[];
    return files.find(({ path }) => path === "/etc/zoned/add-on-images")!.content;
  };

  const own = await images("image");

  expect(own.match(/[^/]+(?=:)/g)).toEqual(["flannel", "azure-cloud-node-manager", "kured"]);
  expect(await images("index")).toBe(own);
});

describe("the machine that an image is made of", () => {
  const version = "2026.1127.93005";

  /** The machine's choice, by what the local Azure offers. */
  const chosen = async (settings: Settings) =>
    builderMachine(settings, version, await connectionTo(newArm().arm));

  async function resourcesWith(change: Partial<Settings>) {
    const settings = { ...validSettings, ...change };
    const machine = await chosen(settings);
    const recorder = await Recorder.start();
    const group = imageGroup(settings, account.subscriptionId);
    const watched = { transformations: [recorder.watch] };
    const builder = new Builder(
      "builder",
      { group, settings, machine, bootData: "", existingNetwork: undefined },
      watched,
    );
    new ImageGallery("images", { group, settings, version, madeOf: "", builder }, watched);
    return recorder;
  }

  async function machineWith(change: Partial<Settings>) {
    const recorder = await resourcesWith(change);
    const [machine] = await recorder.of(vmType);
    return machine!.inputs;
  }

  const pool = validSettings.workerPools[0]!;
  const arm = "Standard_D2ps_v6";

  it("becomes an image that every zone has, and every size can boot from", async () => {
    const recorder = await resourcesWith({});

    const [made] = await recorder.of(versionType);
    expect(made!.inputs.publishingProfile.targetRegions).toEqual([
      expect.objectContaining({ storageAccountType: "Standard_ZRS" }),
    ]);
    const { inputs } = await recorder.only("azure-native:compute:GalleryImage");
    expect(inputs.features).toContainEqual({ name: "DiskControllerTypes", value: "SCSI,NVMe" });
    // Its machine has forgotten who it is.
    expect(inputs.osState).toBe("Generalized");
  });

  it("is in no network of its own where Azure does not show the given subnet", async () => {
    const nodeSubnets = ["/networks/spoke/subnets/nodes"];

    await expect(machineWith({ nodeSubnets })).rejects.toThrow(
      /Azure has no subnet \/networks\/spoke\/subnets\/nodes/,
    );
  });

  it("has the size of the control planes, or where they are Arm that of the first pool that is not", async () => {
    const { hardwareProfile } = await machineWith({});
    const workerPools = [
      { ...pool, name: "arm", size: arm },
      { ...pool, size: "Standard_D4s_v5", zones: ["2"], osDiskSku: "StandardSSD_LRS" as const },
    ];
    const other = await machineWith({ controlPlaneSize: arm, workerPools });

    expect(hardwareProfile).toEqual({ vmSize: validSettings.controlPlaneSize });
    expect(other).toMatchObject({
      hardwareProfile: { vmSize: "Standard_D4s_v5" },
      zones: ["2"],
      storageProfile: { osDisk: { managedDisk: { storageAccountType: "StandardSSD_LRS" } } },
    });
  });

  it("is made of Ubuntu's image as it is now, also where the cluster's are made of a gallery's", async () => {
    const image = "/galleries/zoned/images/node/versions/2026.1127.93005";

    const { imageReference } = (await machineWith({ image })).storageProfile;
    expect(imageReference).toEqual((await machineWith({})).storageProfile.imageReference);
  });

  it("asks for NVMe where its size has nothing else, since Azure takes SCSI otherwise", async () => {
    const { storageProfile } = await machineWith({ controlPlaneSize: "Standard_D2s_v6" });

    expect(storageProfile).toMatchObject({ diskControllerType: "NVMe" });
    expect((await machineWith({})).storageProfile).not.toHaveProperty("diskControllerType");
  });

  it("is not made where Azure has no such Ubuntu, also where the cluster's are made of a gallery's", async () => {
    const settings = {
      ...validSettings,
      imageVersion: "24.04.209901010",
      image: "/galleries/zoned/images/node/versions/2026.1127.93005",
    };

    await expect(chosen(settings)).rejects.toThrow(
      /imageVersion is "24.04.209901010", which Azure does not have .* builder-2026-1127-93005 would be made of it/,
    );
  });

  it("is a regular one also where the cluster's is a spot machine", async () => {
    const spot = { ...pool, size: "Standard_D4s_v5", spot: { maxPrice: -1 } };

    expect(
      await chosen({ ...validSettings, controlPlaneSize: arm, workerPools: [spot as never] }),
    ).not.toHaveProperty("spot");
  });

  it("is not made where no machine of the cluster could be made of its image", async () => {
    const settings = {
      ...validSettings,
      controlPlaneSize: arm,
      workerPools: [{ ...pool, size: "Standard_D4ps_v6" }],
    };

    await expect(chosen(settings)).rejects.toThrow(
      /all machines of this cluster have Arm processors \(Standard_D2ps_v6, Standard_D4ps_v6\)/,
    );
  });

  it("has a way out of its own, and no name of the cluster's, nor of a second stack's, in a group that others use too", async () => {
    const namesOf = async (clusterName: string) => {
      const settings = { clusterName, resourceGroup: "platform", egress: "none" } as const;
      const recorder = await resourcesWith(settings);
      return (await recorder.all())
        .filter(({ type }) =>
          /:(VirtualNetwork|NetworkSec.*|Route.*|Nat.*|PublicIP.*|Gallery)$/.test(type),
        )
        .flatMap(({ inputs }) =>
          Object.entries(inputs)
            .filter(([key]) => key !== "resourceGroupName" && /Name$/.test(key))
            .map(([, name]) => name),
        );
    };

    const own = ["vnet", "nsg", "rt", "egress"].map((what) => `zoned-prod-builder-${what}`);
    expect(new Set(await namesOf("zoned-prod"))).toEqual(new Set([...own, "zoned_prod"]));
  });

  it.each([
    [
      "of its own, as whose stack's it is marked, and stays with it",
      "",
      "organization/zoned/test",
      true,
    ],
    ["of others, where nothing else would take it away", "platform", undefined, false],
  ])("is taken in a group %s", async (_, resourceGroup, stack, stays) => {
    const recorder = await resourcesWith({ resourceGroup });

    const groups = await recorder.of("azure-native:resources:ResourceGroup");
    const { opts } = await recorder.only(versionType);
    expect([groups[0]?.inputs["tags"]["zoned-stack"], opts.retainOnDelete]).toEqual([stack, stays]);
  });

  it("has as long as Azure's agent gives a script, and as many regions take for copies", async () => {
    const recorder = await resourcesWith({});

    const { opts: step } = await recorder.only("azure-native:compute:VirtualMachineExtension");
    const { opts: image } = await recorder.only(versionType);
    expect([step, image]).toMatchObject([
      { customTimeouts: { create: "95m" } },
      { customTimeouts: { create: "90m" } },
    ]);
  });

  it("is captured when what it has is read, of which Azure may show nothing once it is off", async () => {
    const done: string[] = [];
    jest.mocked(capture.outputOf).mockImplementationOnce(async () => {
      await setTimeout(50);
      done.push("read");
      return "";
    });
    jest.mocked(capture.captureWhenOff).mockImplementationOnce(async (machine) => {
      done.push("captured");
      return machine;
    });

    await resourcesWith({}).then((recorder) => recorder.all());

    expect(done).toEqual(["read", "captured"]);
  });

  it("does not have Azure delete its step, which it refuses of a machine that is off", async () => {
    const recorder = await resourcesWith({});

    const machine = await recorder.only(vmType);
    const { opts: step } = await recorder.only("azure-native:compute:VirtualMachineExtension");
    expect(step.deletedWith === machine.resource).toBe(true);
  });

  it("leaves nothing of its regions to the state, which does not know those that others add", async () => {
    const recorder = await resourcesWith({});

    expect((await recorder.only(versionType)).opts.ignoreChanges).toBeUndefined();
  });

  it("runs on a host that encrypts, where the cluster's machines do", async () => {
    const { securityProfile } = await machineWith({ encryptionAtHost: true });

    expect(securityProfile).toMatchObject({
      securityType: "TrustedLaunch",
      encryptionAtHost: true,
    });
    expect((await machineWith({})).securityProfile).not.toHaveProperty("encryptionAtHost");
  });

  it("has a disk that Azure takes an image of, also where the cluster's have a key of their owner's", async () => {
    const diskEncryptionSetId = "/keys/providers/Microsoft.Compute/diskEncryptionSets/ours";

    const { storageProfile } = await machineWith({ diskEncryptionSetId });

    expect(storageProfile.osDisk).toEqual({
      createOption: "FromImage",
      // Else it stays behind, and costs what a disk costs.
      deleteOption: "Delete",
      managedDisk: { storageAccountType: validSettings.osDiskSku },
    });
  });
});

describe("an image", () => {
  const bootData = (settings: Settings) =>
    customData(
      settings,
      "",
      nodeImages({ ...settings, cni: "none", diskDriver: false }, new Map()),
    );

  const shown = new Map([
    [shownAs("azure-native:compute:GalleryImage", "node"), { name: "node" }],
    [shownAs(versionType, "2026.1129.80706"), { name: "2026.1129.80706" }],
  ]);

  /** The image for these settings, after an update for others, by an earlier release, has left one. */
  async function known(
    change: Partial<Settings> = {},
    release = () => undefined as unknown,
    show = async () => shown,
  ) {
    const now = new Date("2026-11-29T08:07:06Z");
    let outputs = {};
    await Recorder.start({ calls: { "pulumi:pulumi:readStackOutputs": () => ({ outputs }) } });
    const before = bootData(validSettings);
    const { version, madeOf } = await knownImage(validSettings, before, show, now);
    outputs = { version, madeOf, contents: "package kubelet 1.36.3" };
    release();
    const settings = { ...validSettings, ...change };
    return knownImage(settings, bootData(settings), show, new Date("2026-12-01T00:00:09Z"));
  }

  it("is the one of before where that has what the settings want", async () => {
    const before = { version: "2026.1129.80706", contents: "package kubelet 1.36.3" };

    expect(await known()).toMatchObject(before);
    expect(await known({ controlPlaneCount: 1, osDiskSku: "StandardSSD_LRS" })).toMatchObject(
      before,
    );
  });

  it.each<Partial<Settings>>([
    { kubernetesVersion: "1.36.9" },
    { imageVersion: "24.04.202601010" },
    { containerRuntime: "cri-dockerd" },
    { mirror: "https://mirror.example" },
    { reboots: { days: ["tue"], from: "02:00", to: "05:00" } },
  ])("is another one, of a later number, for %j", async (change) => {
    const { version, contents } = await known(change);

    expect([version, contents]).toEqual(["2026.1201.9", undefined]);
  });

  it("is none in a gallery that Azure has no more, and it is said how to begin anew", async () => {
    await expect(known({}, undefined, async () => new Map())).rejects.toThrow(
      /^Azure has no gallery zoned_test with .* npm run image -- --stack test --destroy$/,
    );
  });

  it("is another one after a release that has it forget something else", async () => {
    const text = payload.cloudInitText;
    const release = () =>
      jest
        .spyOn(payload, "cloudInitText")
        .mockImplementation((name) => `${text(name)}${name === "generalize.sh" ? "# more" : ""}`);

    const { contents } = await known({}, release);
    jest.mocked(payload.cloudInitText).mockRestore();
    expect(contents).toBeUndefined();
  });
});
