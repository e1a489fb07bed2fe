import type { ResourceManager } from "../../../../arm/resource-manager";
import type { Body } from "../../../../arm/resources/resource";
import type { VersionBody } from "../../../../arm/types/compute/gallery";
import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itLimits, itNeverChanges, itRefuses } from "../../../support/arm/input-tables";
import { compute, network, valid, withChange } from "../../../support/arm/valid-resources";

const [galleryId] = valid.gallery;
const [definitionId] = valid.definition;
const [machineId] = valid.machine;
const securityOf = (value: string) => ({ features: [{ name: "SecurityType", value }] });
const notAllowed = (path: string) =>
  `PropertyChangeNotAllowed: Changing property '${path.replaceAll(".", "\\.")}'`;

itRefuses("gallery", [[{ location: "nowhere" }, "LocationNotAvailableForResourceType"]]);
itRefuses("definition", [
  [{ identifier: undefined }, "InvalidParameter: .*identifier"],
  [{ "identifier.sku": undefined }, "InvalidParameter: .*identifier.sku"],
  [{ osType: undefined }, "InvalidParameter: .*osType"],
  [{ osState: undefined }, "InvalidParameter: .*osState"],
  // Trusted launch is for the second generation.
  [{ hyperVGeneration: "V1" }, "InvalidParameter: The feature 'SecurityType'"],
]);
itLimits("definition", [
  ["osState", ["Generalized", "Specialized"], ["generalised"], "InvalidParameter: .*osState"],
  ["osType", ["Linux", "Windows"], ["Ubuntu"], "InvalidParameter: .*osType"],
  ["hyperVGeneration", ["V2"], ["V3"], "InvalidParameter: .*hyperVGeneration"],
  ["architecture", ["x64", "Arm64"], ["amd64"], "InvalidParameter: .*architecture"],
  [
    "features.0.value",
    ["TrustedLaunch", "TrustedLaunchSupported", "ConfidentialVM", "None"],
    ["trusted"],
    "InvalidParameter: The value 'trusted' for feature 'SecurityType'",
  ],
]);
itNeverChanges("definition", [
  [{ osState: "Specialized" }, notAllowed("galleryImage.properties.osState")],
  [{ osType: "Windows" }, notAllowed("galleryImage.properties.osType")],
  [{ architecture: "Arm64" }, notAllowed("galleryImage.properties.architecture")],
  [{ "identifier.sku": "other" }, notAllowed("galleryImage.properties.identifier")],
  [{ features: undefined }, notAllowed("galleryImage.properties.features")],
]);

const versionId = (name = "1.0.0", definition: string = definitionId) =>
  `${definition}/versions/${name}`;
const versionOf = (source: string | undefined, change: Body = {}): Body => ({
  location: "westeurope",
  storageProfile: { source: { virtualMachineId: source } },
  ...change,
});

/** All resources, and the machine switched off and marked. */
async function withGeneralized(): Promise<ReturnType<typeof newArm>> {
  const built = newArm();
  await createResources(built.arm);
  await generalize(built.arm);
  return built;
}

async function generalize(arm: ResourceManager): Promise<void> {
  await arm.power(machineId, "deallocate", { perform: () => undefined });
  await arm.generalize(machineId);
}

it("marks no machine as generalized that runs, and takes nothing for one afterwards but its end", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const start = () => refusedBy(arm.power(machineId, "start", { perform: () => undefined }));

  expect(await refusedBy(arm.generalize(machineId))).toMatch(
    /^OperationNotAllowed: Operation 'generalize' is not allowed on VM 'cp-1' since the VM is running/,
  );
  await generalize(arm);

  expect(arm.instanceView(machineId)!["statuses"]).toContainEqual(
    expect.objectContaining({ code: "OSState/generalized" }),
  );
  expect(await start()).toMatch(/^OperationNotAllowed: Operation 'start' .* VM is generalized/);
  expect(await refusedBy(arm.put(...valid.machine))).toMatch(
    /^OperationNotAllowed: Operation 'update' .* since the VM is generalized/,
  );
  expect(await refusedBy(arm.delete(machineId))).toBe("not refused");
});

it("shows a machine that has shut itself down as stopped", async () => {
  const { arm, machines } = newArm();
  await createResources(arm);

  machines.shutDown.add("cp-1");

  expect(arm.instanceView(machineId)!["statuses"]).toContainEqual(
    expect.objectContaining({ code: "PowerState/stopped" }),
  );
});

const refusedVersions: readonly (readonly [string, string, Body, RegExp])[] = [
  ["whose name is no version", "1.0", {}, /^InvalidResourceName/],
  ["whose numbers are too large", "1.0.2147483648", {}, /^InvalidParameter: .*2147483647/],
  ["of nothing", "1.0.0", versionOf(undefined), /^InvalidParameter: .*virtualMachineId/],
  ["of a machine that is not there", "1.0.0", versionOf(`${machineId}-2`), /^NotFound: Resource/],
  ["in another region", "1.0.0", { location: "northeurope" }, /^InvalidParameter: .*same region/],
  [
    "without a copy in its own region",
    "1.0.0",
    { publishingProfile: { targetRegions: [{ name: "northeurope" }] } },
    /^InvalidParameter: .*must contain/,
  ],
  [
    "with two copies in a region",
    "1.0.0",
    { publishingProfile: { targetRegions: [{ name: "westeurope" }, { name: "West Europe" }] } },
    /^InvalidParameter: Duplicate/,
  ],
];

it.each(refusedVersions)("makes no image %s", async (_, name, change, says) => {
  const { arm, machines } = await withGeneralized();

  const answer = await refusedBy(arm.put(versionId(name), versionOf(machineId, change)));

  expect(answer).toMatch(says);
  expect(machines.calls.filter((call) => call.startsWith("capture"))).toEqual([]);
});

it.each([
  ["Specialized", "TrustedLaunch", /^BadRequest: .*OS state \['Generalized'\].*\['Specialized'\]/],
  ["Generalized", "TrustedLaunchSupported", /^InvalidParameter: .*Currently only Vhd Blob/],
  ["Generalized", "None", /^Conflict: The security type 'TrustedLaunch'/],
])(
  "makes an image of a machine only as its definition wants it (%s, %s)",
  async (osState, security, says) => {
    const { arm } = await withGeneralized();
    const other = `${definitionId}-2`;
    const identifier = { publisher: "zoned", offer: "kubernetes", sku: "other" };
    await arm.put(
      other,
      withChange("definition", { osState, identifier, ...securityOf(security) }),
    );

    expect(await refusedBy(arm.put(versionId("1.0.0", other), versionOf(machineId)))).toMatch(says);
  },
);

it("makes no image of a machine that is not generalized", async () => {
  const { arm } = newArm();
  await createResources(arm);

  expect(await refusedBy(arm.put(versionId(), versionOf(machineId)))).toMatch(
    /^BadRequest: .* different OS state \['Specialized'\] than .*\['Generalized'\]/,
  );
});

it("makes an image once, which outlives its machine and changes in its regions alone", async () => {
  const { arm, machines } = await withGeneralized();
  const profile = (...names: string[]) => ({
    publishingProfile: { targetRegions: names.map((name) => ({ name })) },
  });

  await arm.put(versionId(), versionOf(machineId));
  await arm.delete(machineId);
  await arm.put(versionId(), versionOf(machineId, profile("westeurope", "northeurope")));

  expect(machines.calls.filter((call) => call.startsWith("capture"))).toEqual([
    `capture cp-1 as ${versionId()}`,
  ]);
  expect(arm.peek(versionId())).toMatchObject({
    publishingProfile: { targetRegions: [{ name: "West Europe" }, { name: "North Europe" }] },
  });
  expect(await refusedBy(arm.put(versionId(), versionOf(`${machineId}-2`)))).toMatch(
    /^PropertyChangeNotAllowed: .*galleryImageVersion\.properties\.storageProfile/,
  );
});

it("deletes no gallery with definitions, and no definition with images", async () => {
  const { arm } = await withGeneralized();
  await arm.put(versionId(), versionOf(machineId));

  for (const id of [galleryId, definitionId]) {
    expect(await refusedBy(arm.delete(id))).toMatch(/^CannotDeleteResource: /);
  }
  for (const id of [versionId(), definitionId, galleryId]) {
    expect([id, await refusedBy(arm.delete(id))]).toEqual([id, "not refused"]);
  }
});

describe("a machine of a gallery image", () => {
  const image = "storageProfile.imageReference";
  const node = compute("virtualMachines/node");
  const nic = network("networkInterfaces/node-nic");

  const nodeOf = (id: string, change: Body = {}) =>
    withChange("machine", {
      [image]: { id },
      "networkProfile.networkInterfaces.0.id": nic,
      "osProfile.computerName": "node",
      "storageProfile.osDisk.name": "node-os",
      ...change,
    });

  async function withImage(): Promise<ResourceManager> {
    const { arm } = await withGeneralized();
    const ipConfigurations = [{ name: "ip", subnet: { id: valid.subnet[0] } }];
    await arm.put(nic, { location: "westeurope", ipConfigurations });
    await arm.put(versionId("1.9.0"), versionOf(machineId));
    await arm.put(versionId("1.10.0"), versionOf(machineId));
    return arm;
  }

  it("has a disk that is as large as the image's, which is that of the machine it was made of", async () => {
    const arm = await withImage();
    const { storageProfile } = arm.view.find(versionId("1.9.0"))!.body as VersionBody;
    expect(storageProfile!.osDiskImage).toEqual({ hostCaching: "ReadWrite", sizeInGB: 30 });
    Object.assign(storageProfile!.osDiskImage!, { sizeInGB: 128 });
    const made = (diskSizeGB: number | undefined) =>
      arm.put(node, nodeOf(versionId("1.9.0"), { "storageProfile.osDisk.diskSizeGB": diskSizeGB }));

    expect(await refusedBy(made(64))).toBe(
      "OperationNotAllowed: The specified disk size 64 GB is smaller than the size of the corresponding disk in the VM image: 128 GB. " +
        "This is not allowed. Please choose equal or greater size or do not specify an explicit size.",
    );
    await made(undefined);
    expect(arm.peek(node)).toMatchObject({ storageProfile: { osDisk: { diskSizeGB: 128 } } });
  });

  it.each([
    ["of a version", versionId("1.9.0"), "1.9.0"],
    ["of a definition, which is its latest version", definitionId, "1.10.0"],
  ])("is made %s, and stays when that is deleted", async (_, id, exactVersion) => {
    const arm = await withImage();

    await arm.put(node, nodeOf(id));
    await arm.delete(versionId("1.9.0"));
    await arm.delete(versionId("1.10.0"));

    expect(await refusedBy(arm.put(node, nodeOf(id, { tags: { a: "b" } })))).toBe("not refused");
    expect(arm.peek(node)).toMatchObject({
      storageProfile: { imageReference: { id, exactVersion } },
    });
  });

  it.each([
    ["that is not there", versionId("2.0.0"), {}, /^GalleryImageNotFound: .*westeurope region/],
    [
      "for trusted launch as another",
      versionId("1.9.0"),
      { securityProfile: undefined },
      /^BadRequest: .*only supports creation .*'TrustedLaunch'/,
    ],
    [
      "for x64 as an Arm size",
      versionId("1.9.0"),
      { "hardwareProfile.vmSize": "Standard_D2ps_v5" },
      /^BadRequest: .*CPU Architecture/,
    ],
  ] as const)("is not made of one %s", async (_, id, change, says) => {
    const arm = await withImage();

    expect(await refusedBy(arm.put(node, nodeOf(id, change)))).toMatch(says);
  });

  it("is not made in a region without a copy of it", async () => {
    const arm = await withImage();
    const location = "northeurope";
    const vnet = network("virtualNetworks/north");
    await arm.put(vnet, { location, addressSpace: { addressPrefixes: ["10.0.0.0/16"] } });
    await arm.put(`${vnet}/subnets/a`, { addressPrefix: "10.0.0.0/24" });
    const north = network("networkInterfaces/north-nic");
    const ipConfigurations = [{ name: "ip", subnet: { id: `${vnet}/subnets/a` } }];
    await arm.put(north, { location, ipConfigurations });
    const change = { location, "networkProfile.networkInterfaces.0.id": north };
    const create = () => refusedBy(arm.put(node, nodeOf(versionId("1.9.0"), change)));

    expect(await create()).toMatch(/^GalleryImageNotFound: .*northeurope region/);
    const targetRegions = [{ name: "westeurope" }, { name: location }];
    await arm.put(
      versionId("1.9.0"),
      versionOf(machineId, { publishingProfile: { targetRegions } }),
    );
    expect(await create()).toBe("not refused");
  });
});
