import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import type { Clients } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  destroyImages,
  type ImageOptions,
  type ImageStack,
  makeImage,
  openImageStack,
} from "../../../tools/pulumi/image-stack";
import { asPlanned, fewAddOns, LocalCloud, unchanged } from "../../../tools/lab/local-cloud";
import { ownPulumi } from "../../../tools/recover/own-pulumi";
import { checkout } from "../../../tools/shared/checkout";
import { Progress } from "../../../tools/shared/progress";

const settings = { ...fewAddOns, workerPools: [{ name: "workers", count: 1 }] };
const own = "zoned-local-image-gallery";

/** An image, from its making to a worker that is made of it, and to its end. */
describe("a cluster that gets machines of an image", () => {
  let cloud: LocalCloud;
  let clients: Clients;
  let pulumi: ReturnType<typeof ownPulumi>;
  let stack: ImageStack;
  let options: ImageOptions;
  let image: string;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    clients = cloud.sdks();
    const environment = { ...cloud.environment(), ZONED_PROGRAM: "image" };
    pulumi = ownPulumi(checkout, new AbortController().signal, environment);
    const config = cloud.stack.place.config;
    stack = await openImageStack({ cluster: "local", program: checkout, config, pulumi });
    options = {
      stack,
      file: join(cloud.state, "image.local.json"),
      progress: new Progress({ write: () => true }),
    };
  });
  afterAll(() => cloud?.stop());

  const machinesIn = async (group: string) => {
    const found: { name: string; vmId: string; image?: string }[] = [];
    for await (const vm of clients.compute.virtualMachines.list(group)) {
      const { id } = vm.storageProfile?.imageReference ?? {};
      found.push({ name: vm.name!, vmId: vm.vmId!, image: id });
    }
    return found;
  };

  it("is made of a machine that is gone afterwards, with what it has beside it", async () => {
    const made = await makeImage(options);
    image = made.image;

    expect(image).toMatch(
      new RegExp(
        `^${subscriptionPath}/resourceGroups/${own}/.*/galleries/zoned_local_image/images/node/versions/[\\d.]+$`,
      ),
    );
    expect(await machinesIn(own)).toEqual([]);
    expect(JSON.parse(readFileSync(options.file, "utf8"))).toEqual(made);
    expect(Object.keys(made.packages)).toEqual(["kubelet", "kubeadm", "kubectl"]);
    const [digest] = Object.values(made.images);
    expect(digest).toMatch(/^sha256:/);
  });

  it("is made once for the same settings", async () => {
    const { stdout } = await stack.up();

    expect(stdout).toMatch(/^Resources:\n *\d+ unchanged\n/m);
    expect((await makeImage(options)).image).toBe(image);
  });

  it("is made anew when somebody has deleted it", async () => {
    const version = image.split("/").at(-1)!;
    const versions = clients.compute.galleryImageVersions;
    await versions.beginDeleteAndWait(own, "zoned_local_image", "node", version);

    const made = await makeImage(options);

    expect(made.image).not.toBe(image);
    image = made.image;
    expect(
      (await versions.get(own, "zoned_local_image", "node", image.split("/").at(-1)!)).id,
    ).toBe(image);
  });

  it("makes new machines, and replaces none that is there", async () => {
    asPlanned(await cloud.stack.up());
    const before = await machinesIn("zoned-local");
    // Of which the others would be made anew, if they were made of it.
    const imageVersion = "24.04.202604160";
    const workerPools = [{ name: "workers", count: 2 }];
    await cloud.stack.configure({ ...settings, image, imageVersion, workerPools });

    const { stdout } = asPlanned(await cloud.stack.up());

    expect(stdout).not.toContain("installs what is missing");
    const after = await machinesIn("zoned-local");
    expect(after).toEqual(expect.arrayContaining(before));
    expect(after.filter((one) => one.image !== undefined)).toEqual([
      expect.objectContaining({ name: "zoned-local-workers-2", image }),
    ]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("may go, with its gallery and its stack, while its machines stay", async () => {
    await destroyImages(options);

    const { stdout } = await pulumi(["stack", "ls", "--json"]);
    expect((JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)).toEqual(["local"]);
    expect(existsSync(options.file)).toBe(false);
    expect(existsSync(join(checkout, "Pulumi.local-image.yaml"))).toBe(false);
    expect((await clients.resources.resourceGroups.checkExistence(own)).body).toBe(false);
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});
