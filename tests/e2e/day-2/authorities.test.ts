import { setTimeout as pause } from "node:timers/promises";

import { LoggedRequest } from "../../../tools/local-azure/arm/requests";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

const settings = {
  ...fewAddOns,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2as_v2" }],
};

/** Machines that Azure was asked to change, and steps. */
const changed = (requests: readonly LoggedRequest[]) =>
  requests
    .filter(
      ({ method, id }) =>
        ["PUT", "PATCH", "POST", "DELETE"].includes(method) && /virtualMachines/.test(id),
    )
    .map(({ method, id }) => `${method} ${id.replace(/.*virtualMachines\/zoned-dev-/, "")}`)
    .sort();

describe("other CAs for a living cluster", () => {
  let cloud: LocalCloud;

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", settings);
    asPlanned(await cloud.stack.up());
  });
  afterAll(() => cloud?.stop());

  it("may come with what replaces a worker", async () => {
    const workerPools = [{ ...settings.workerPools[0], maxPods: 60 }];
    await cloud.stack.configure({ ...settings, caGeneration: 2, workerPools });

    const { stdout } = succeeded(await cloud.stack.preview());

    expect(stdout).toMatch(/all machines and new pods trust CA 2/);
    expect(stdout).toMatch(/replace zoned-dev-workers-1: maxPods .*-> 60/);
  });

  it("come in three updates, each of which says what the next one does, and nothing follows", async () => {
    const trusted: number[] = [];
    /** The controller manager publishes them, a moment after it has others. */
    const trustedOnce = async (expected: number): Promise<number> => {
      for (let tries = 30; ; tries -= 1) {
        const [published] = await cloud.get<{ data: Record<string, string> }>(
          "configmaps",
          ...["--namespace", "kube-system", "--field-selector", "metadata.name=kube-root-ca.crt"],
        );
        const count = published!.data["ca.crt"]!.match(/BEGIN CERTIFICATE/g)!.length;
        if (count === expected || tries === 0) return count;
        await pause(1000);
      }
    };
    await cloud.stack.configure({ ...settings, caGeneration: 2 });

    for (const [says, count] of [
      [/all machines and new pods trust CA 2.* Run pulumi up again/, 2],
      [/every certificate signed by CA 2\. Run pulumi up again/, 2],
      [/nobody trust CA 1 any more$/m, 1],
    ] as const) {
      const before = (await cloud.requests()).length;
      const run = asPlanned(await cloud.stack.up());
      cloud.renewKubeconfig();

      expect(run.stdout).toMatch(says);
      expect(changed((await cloud.requests()).slice(before))).toEqual(
        ["cp-1", "cp-2", "cp-3", "workers-1"].map((name) => `PUT ${name}/extensions/bootstrap`),
      );
      trusted.push(await trustedOnce(count));
      expect(await cloud.get("nodes")).toHaveLength(4);
    }

    expect(trusted).toEqual([2, 2, 1]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("leave a cluster that workers join", async () => {
    const workerPools = [{ ...settings.workerPools[0], count: 2 }];
    await cloud.stack.configure({ ...settings, caGeneration: 2, workerPools });

    asPlanned(await cloud.stack.up());

    expect(await cloud.get("nodes")).toHaveLength(5);
  });
});
