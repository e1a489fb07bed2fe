import type { ResourceManager } from "../../../arm/resource-manager";
import type { Body } from "../../../arm/resources/resource";
import type { VersionBody } from "../../../arm/types/compute/gallery";
import {
  type Answer,
  createResources,
  itAnswers,
  itLimits,
  itNeverChanges,
  itRefuses,
  itShows,
  newArm,
  power,
  put,
  remove,
  taken,
} from "../../support/arm/fixture";
import { compute, network, valid, withChange } from "../../support/arm/valid-resources";

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
const inRegions = (...names: string[]) => ({
  publishingProfile: { targetRegions: names.map((name) => ({ name })) },
});
const version = (change: Body = {}, name?: string) =>
  put(versionId(name), versionOf(machineId, change));
const generalize = (arm: ResourceManager) => arm.generalize(machineId);
/** The machine switched off and marked. */
const generalized = [power(machineId, "deallocate"), generalize] as const;

const ofDefinition = (osState: string, security: string, answer: string): Answer => [
  `an image of a ${osState} definition with ${security}`,
  answer,
  ...generalized,
  put(
    `${definitionId}-2`,
    withChange("definition", {
      ...{ osState, identifier: { publisher: "zoned", offer: "kubernetes", sku: "other" } },
      ...securityOf(security),
    }),
  ),
  put(versionId("1.0.0", `${definitionId}-2`), versionOf(machineId)),
];
const otherState = (one: string, other: string) =>
  `BadRequest: .*OS state \\['${one}'\\].*\\['${other}'\\]`;
itAnswers("extension", [
  ["generalize while it runs", "OperationNotAllowed: .*'generalize'.* VM is running", generalize],
  [
    "start of a generalized machine",
    "OperationNotAllowed: Operation 'start' .* VM is generalized",
    ...generalized,
    power(machineId, "start"),
  ],
  [
    "a change of it",
    "OperationNotAllowed: Operation 'update' .* VM is generalized",
    ...generalized,
    put(...valid.machine),
  ],
  ["its end", taken, ...generalized, remove(machineId)],
  ["an image of a machine that is not", otherState("Specialized", "Generalized"), version()],
  ...(
    [
      ["InvalidResourceName", {}, "1.0"],
      ["InvalidParameter: .*2147483647", {}, "1.0.2147483648"],
      ["InvalidParameter: .*virtualMachineId", versionOf(undefined)],
      ["NotFound: Resource", versionOf(`${machineId}-2`)],
      ["InvalidParameter: .*same region", { location: "northeurope" }],
      ["InvalidParameter: .*must contain", inRegions("northeurope")],
      ["InvalidParameter: Duplicate", inRegions("westeurope", "West Europe")],
    ] as const
  ).map(([answer, change, name]): Answer => [
    `an image ${name ?? JSON.stringify(change)}`,
    answer,
    ...generalized,
    version(change, name),
  ]),
  ofDefinition("Specialized", "TrustedLaunch", otherState("Generalized", "Specialized")),
  ofDefinition(
    ...(["Generalized", "TrustedLaunchSupported"] as const),
    "InvalidParameter: .*Currently only Vhd Blob",
  ),
  ofDefinition("Generalized", "None", "Conflict: The security type 'TrustedLaunch'"),
  [
    "an image of another machine under its name",
    "PropertyChangeNotAllowed: .*galleryImageVersion\\.properties\\.storageProfile",
    ...generalized,
    version(),
    put(versionId(), versionOf(`${machineId}-2`)),
  ],
  ...[galleryId, definitionId].map((id): Answer => [
    `the end of ${id} with images`,
    "CannotDeleteResource: ",
    ...generalized,
    version(),
    remove(id),
  ]),
  [
    "the end of all from below",
    taken,
    ...generalized,
    version(),
    ...[versionId(), definitionId, galleryId].map(remove),
  ],
]);

it("shows a machine's state, and makes an image once, which outlives the machine", async () => {
  const { arm, machines } = newArm();
  await createResources(arm);
  const states = () =>
    (arm.instanceView(machineId)!["statuses"] as { code: string }[]).map(({ code }) => code);
  machines.shutDown.add("cp-1");
  expect(states()).toContain("PowerState/stopped");
  for (const step of generalized) await step(arm);
  expect(states()).toContain("OSState/generalized");

  await arm.put(versionId(), versionOf(machineId));
  await arm.delete(machineId);
  await arm.put(versionId(), versionOf(machineId, inRegions("westeurope", "northeurope")));

  expect(machines.calls.filter((call) => call.startsWith("capture"))).toEqual([
    `capture cp-1 as ${versionId()}`,
  ]);
  expect(arm.peek(versionId())).toMatchObject(inRegions("West Europe", "North Europe"));
});

const image = "storageProfile.imageReference";
const node = compute("virtualMachines/node");
const north = "northeurope";
const nicIn = (location: string, vnet: string, subnet: string) =>
  put(network(`networkInterfaces/${vnet}-nic`), {
    location,
    ipConfigurations: [{ name: "ip", subnet: { id: subnet } }],
  });
/** Two images, and an interface for a machine of them. */
const withImages = [
  ...generalized,
  nicIn("westeurope", "node", valid.subnet[0]),
  version({}, "1.9.0"),
  version({}, "1.10.0"),
] as const;
const nodeOf = (id: string, change: Body = {}) =>
  put(
    node,
    withChange("machine", {
      [image]: { id },
      "networkProfile.networkInterfaces.0.id": network("networkInterfaces/node-nic"),
      "osProfile.computerName": "node",
      "storageProfile.osDisk.name": "node-os",
      ...change,
    }),
  );
const oldest = versionId("1.9.0");
const northVnet = network("virtualNetworks/north");
const inNorth = [
  ...withImages,
  put(northVnet, { location: north, addressSpace: { addressPrefixes: ["10.0.0.0/16"] } }),
  put(`${northVnet}/subnets/a`, { addressPrefix: "10.0.0.0/24" }),
  nicIn(north, "north", `${northVnet}/subnets/a`),
] as const;
const northNode = nodeOf(oldest, {
  location: north,
  "networkProfile.networkInterfaces.0.id": network("networkInterfaces/north-nic"),
});
/** The image's disk, which is as large as that of the machine it was made of. */
const grown = ({ view }: ResourceManager) =>
  Object.assign((view.find(oldest)!.body as VersionBody).storageProfile!.osDiskImage!, {
    sizeInGB: 128,
  });
itAnswers("extension", [
  [
    "a machine of no image",
    "GalleryImageNotFound: .*westeurope region",
    ...withImages,
    nodeOf(versionId("2.0.0")),
  ],
  [
    "an image for trusted launch without it",
    "BadRequest: .*only supports creation .*'TrustedLaunch'",
    ...withImages,
    nodeOf(oldest, { securityProfile: undefined }),
  ],
  [
    "an image for x64 with an Arm size",
    "BadRequest: .*CPU Architecture",
    ...withImages,
    nodeOf(oldest, { "hardwareProfile.vmSize": "Standard_D2ps_v5" }),
  ],
  [
    "a disk smaller than the image's",
    "OperationNotAllowed: .* 64 GB is smaller .* 128 GB",
    ...withImages,
    grown,
    nodeOf(oldest, { "storageProfile.osDisk.diskSizeGB": 64 }),
  ],
  [
    "an image without a copy here",
    "GalleryImageNotFound: .*northeurope region",
    ...inNorth,
    northNode,
  ],
  [
    "an image with a copy here",
    taken,
    ...inNorth,
    version(inRegions("westeurope", north), "1.9.0"),
    northNode,
  ],
  [
    "a change of a machine whose image is gone",
    taken,
    ...withImages,
    nodeOf(oldest),
    remove(oldest),
    nodeOf(oldest, { tags: { a: "b" } }),
  ],
]);
const exactly = (id: string, exactVersion: string) => ({
  storageProfile: { imageReference: { id, exactVersion } },
});
itShows("extension", [
  [
    "an image's disk",
    oldest,
    { storageProfile: { osDiskImage: { hostCaching: "ReadWrite", sizeInGB: 30 } } },
    ...withImages,
  ],
  [
    "a disk as large as the image's",
    node,
    { storageProfile: { osDisk: { diskSizeGB: 128 } } },
    ...withImages,
    grown,
    nodeOf(oldest),
  ],
  ["the version of a machine", node, exactly(oldest, "1.9.0"), ...withImages, nodeOf(oldest)],
  [
    "the latest version of a definition",
    node,
    exactly(definitionId, "1.10.0"),
    ...withImages,
    nodeOf(definitionId),
  ],
  [
    "the latest version of a definition that is not excluded from that",
    node,
    exactly(definitionId, "1.9.0"),
    ...withImages,
    version({ publishingProfile: { excludeFromLatest: true } }, "1.10.0"),
    nodeOf(definitionId),
  ],
]);
