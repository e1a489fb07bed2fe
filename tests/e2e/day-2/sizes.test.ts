import { LoggedRequest } from "../../../tools/local-azure/arm/requests";
import {
  asPlanned,
  LocalCloud,
  refused,
  unchanged,
  succeeded,
  fewAddOns as small,
} from "../../../tools/lab/local-cloud";

const pool = { name: "workers", count: 2, size: "Standard_D2s_v5" };
const changed = {
  ...small,
  workerPools: [{ ...pool, size: "Standard_D4s_v5" }],
  kubeadm: { apiServerExtraArgs: { "event-ttl": "2h" } },
};

/** What was asked of machines and their steps, such as `PUT workers-1`. */
const writes = (requests: readonly LoggedRequest[]) =>
  requests
    .filter(({ method }) => ["PUT", "POST", "DELETE"].includes(method))
    .flatMap(({ method, id }) => {
      const [, path] = /\/virtualMachines\/zoned-dev-(.*)$/.exec(id) ?? [];
      return path === undefined ? [] : [`${method} ${path.replace("/extensions", "")}`];
    });

let cloud: LocalCloud;
beforeAll(async () => {
  cloud = await LocalCloud.start("dev", { ...small, workerPools: [pool] });
  asPlanned(await cloud.stack.up());
  await cloud.stack.configure(changed);
});
afterAll(() => cloud?.stop());

const written = async (action: () => Promise<unknown>) => {
  const before = (await cloud.requests()).length;
  await action();
  return writes((await cloud.requests()).slice(before));
};

/** One change of sizes and of a flag, done in parts. */
describe("a cluster of which pulumi up changes parts", () => {
  const urnOf = async (name: string) => {
    const { deployment } = (await cloud.stack.stackExport()) as {
      deployment: { resources: { urn: string }[] };
    };
    return deployment.resources.find(({ urn }) => urn.endsWith(`::zoned-dev-${name}`))!.urn;
  };
  const memory = async () => ((await cloud.stack.outputs()) as { cluster: unknown }).cluster;

  it("is asked for its health, whatever the part is", async () => {
    await cloud.injectFailure("cp-1", "kube-scheduler");

    const requests = await written(async () => {
      const said = refused(await cloud.stack.up("--target", await urnOf("workers-1-vm")));
      expect(said).toMatch(/would resize zoned-dev-workers-1[^]*its kube-scheduler is not ready/);
    });

    expect(requests).toEqual([]);
    await cloud.clearFailures("cp-1");
  });

  it("keeps a machine's size whose drain was left out by --target, and the memory of what was not done", async () => {
    const before = await memory();

    const requests = await written(async () => {
      const run = succeeded(await cloud.stack.up("--target", await urnOf("workers-1-vm")));
      expect(run.stdout).toMatch(/has left out the steps of zoned-dev-cp-1/);
    });

    expect(requests).toEqual([]);
    expect(await memory()).toEqual(before);
  });

  it("does all but what --exclude names, and remembers it", async () => {
    const before = await memory();

    const requests = await written(async () =>
      succeeded(
        await cloud.stack.up(
          ...["--exclude", await urnOf("workers-2-drain")],
          ...["--exclude", await urnOf("workers-1-vm")],
        ),
      ),
    );

    expect(requests).toEqual(["PUT cp-1/bootstrap", "PUT workers-1/bootstrap"]);
    expect(await memory()).not.toEqual(before);
  });

  it("is the rest by a plain update, which also drains what was drained for nothing, and then nothing", async () => {
    const cordoned = new Set<string>();
    const { end } = await cloud.watch("/api/v1/nodes", ({ object: { metadata, spec } }) => {
      if (spec.unschedulable) cordoned.add(metadata.name);
    });

    const requests = await written(async () => asPlanned(await cloud.stack.up()));

    end();
    expect(requests).toEqual([
      ...["PUT workers-1", "PUT workers-1/bootstrap"],
      ...["PUT workers-2", "PUT workers-2/bootstrap"],
    ]);
    expect([...cordoned].sort()).toEqual(["zoned-dev-workers-1", "zoned-dev-workers-2"]);
    const nodes = await cloud.get<{ spec: { unschedulable?: boolean } }>("nodes");
    expect(nodes.some(({ spec }) => spec.unschedulable)).toBe(false);
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});

/** The same cluster, whose machines are switched off and on, by their operator and by the program. */
describe("a cluster of which machines are off", () => {
  const names = ["cp-1", "workers-1", "workers-2"];
  const [wide] = changed.workerPools as [typeof pool];
  /** Of other hardware: for workers, and for the control plane. */
  const [other, ofControlPlane] = ["Standard_B2as_v2", "Standard_D2s_v5"];

  const power = (action: string, ...machines: string[]) =>
    Promise.all(
      machines.map((name) =>
        cloud.inGroup(
          "POST",
          `/providers/Microsoft.Compute/virtualMachines/zoned-dev-${name}/${action}`,
        ),
      ),
    );
  const ready = async () => {
    const nodes = await cloud.get<{
      metadata: { name: string };
      spec: { unschedulable?: boolean };
      status: { conditions: { type: string; status: string }[] };
    }>("nodes");
    return nodes
      .filter(({ spec }) => !spec.unschedulable)
      .filter(({ status }) =>
        status.conditions.some(({ type, status }) => type === "Ready" && status === "True"),
      )
      .map(({ metadata }) => metadata.name.replace("zoned-dev-", ""));
  };
  /** What the doctor finds, once all machines are on; but for how long pods are pending, which grows. */
  const problems = async () => {
    await power("start", ...names);
    const { stdout } = await cloud.doctor("--wait", "40s");
    return stdout.split("\n").filter((line) => /^✗ (?!pending pods)/.test(line));
  };
  const resized = (name: string) => [
    `POST ${name}`,
    `PUT ${name}`,
    `POST ${name}`,
    `PUT ${name}/bootstrap`,
  ];

  it("has none of them started or replaced by an update that needs none of them, after a refresh too", async () => {
    await power("deallocate", "workers-2");

    const requests = await written(async () => {
      unchanged(await cloud.stack.up("--skip-preview"));
      succeeded(await cloud.stack.up("--skip-preview", "--refresh"));
    });

    expect(requests).toEqual([]);
    expect(await ready()).toEqual(["cp-1", "workers-1"]);
  });

  it("has another one made and removed beside one that is off, for which nothing is waited", async () => {
    const three = { ...changed, workerPools: [{ ...wide, count: 3 }] };
    await cloud.stack.configure(three);

    const made = await written(async () => asPlanned(await cloud.stack.up()));

    expect(made).toEqual(["PUT workers-3", "PUT workers-3/bootstrap"]);
    expect(await ready()).toEqual(["cp-1", "workers-1", "workers-3"]);
    unchanged(await cloud.stack.up("--skip-preview"));
    await cloud.stack.configure(changed);
    const removed = await written(async () => asPlanned(await cloud.stack.up()));
    expect(removed).toEqual(["DELETE workers-3"]);
    expect(await ready()).toEqual(["cp-1", "workers-1"]);
  });

  it("has tags changed beside one that is off, whose step gets them once it runs", async () => {
    await cloud.stack.configure({ ...changed, tags: { team: "platform" } });

    const tagged = await written(async () => asPlanned(await cloud.stack.up()));

    expect(tagged).toEqual(expect.arrayContaining(["PUT workers-2", "PUT workers-1/bootstrap"]));
    expect(tagged).not.toContain("PUT workers-2/bootstrap");
    await power("start", "workers-2");
    expect(await written(async () => asPlanned(await cloud.stack.up()))).toEqual([
      "PUT workers-2/bootstrap",
    ]);
    await cloud.stack.configure(changed);
    asPlanned(await cloud.stack.up("--skip-preview"));
    await power("deallocate", "workers-2");
  });

  it("refuses what would run a step on one that is off, and says how to start it", async () => {
    const kubeadm = { ...changed.kubeadm, kubeletExtraArgs: { "max-pods": "100" } };
    await cloud.stack.configure({ ...changed, kubeadm });
    const start = "az vm start --resource-group zoned-dev --name zoned-dev-workers-2";

    const requests = await written(async () => {
      expect(refused(await cloud.stack.preview())).toContain(
        `zoned-dev-workers-2 is deallocated (this update would reconfigure it): ${start}`,
      );
    });
    // Of what the script is given, and no member is configured with it.
    await cloud.stack.configure({ ...changed, drainMinutes: 20 });
    const unplanned = await written(async () => {
      expect(refused(await cloud.stack.preview())).toContain(
        `zoned-dev-workers-2 is deallocated (its bootstrap step would run): ${start}`,
      );
    });

    await cloud.stack.configure(changed);

    expect([...requests, ...unplanned]).toEqual([]);
  });

  it("comes back as it was from a night in which all were off, and says until then what is off", async () => {
    const before = await problems();
    await power("deallocate", ...names);

    const requests = await written(async () => {
      expect(refused(await cloud.stack.up())).toMatch(
        /zoned-dev-cp-1 is deallocated \(no API answers without it\), zoned-dev-workers-1 is deallocated, zoned-dev-workers-2 is deallocated: for name in zoned-dev-cp-1 zoned-dev-workers-1 zoned-dev-workers-2; do az vm start --resource-group zoned-dev --name \$name; done/,
      );
    });
    const asleep = await cloud.doctor().catch(({ message }: Error) => message);
    const after = await problems();

    expect(requests).toEqual([]);
    expect(asleep).toMatch(/az vm start/);
    expect(after).toEqual(before);
    expect(await ready()).toEqual(names);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("gets sizes of other hardware, each deallocated for it and started again", async () => {
    await cloud.stack.configure({ ...changed, workerPools: [{ ...wide, size: other }] });

    const requests = await written(async () => {
      const { stdout } = asPlanned(await cloud.stack.up());
      expect(stdout).toContain("deallocated for it, and started again");
    });

    expect(requests).toEqual([...resized("workers-1"), ...resized("workers-2")]);
    expect(await ready()).toEqual(names);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("starts a machine again where the change is taken back after it was deallocated for it", async () => {
    await cloud.fault({
      ...{ method: "PUT", id: "virtualMachines/zoned-dev-workers-1$" },
      ...{ status: 409, code: "SkuNotAvailable", times: 9 },
    });
    await cloud.stack.configure(changed);
    refused(await cloud.stack.up("--skip-preview"));
    expect(await ready()).toEqual(["cp-1", "workers-2"]);
    await cloud.clearFaults();

    await cloud.stack.configure({ ...changed, workerPools: [{ ...wide, size: other }] });
    const requests = await written(async () => succeeded(await cloud.stack.up("--skip-preview")));

    // The step lets pods on its drained Node again.
    expect(requests).toEqual(["POST workers-1", "PUT workers-1/bootstrap"]);
    expect(await ready()).toEqual(names);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("goes on with a size where an update was ended after it had deallocated the only control plane", async () => {
    await cloud.stack.configure({
      ...changed,
      controlPlaneSize: ofControlPlane,
      workerPools: [{ ...wide, size: other }],
    });
    await power("deallocate", "cp-1");

    const requests = await written(async () => succeeded(await cloud.stack.up("--skip-preview")));

    expect(requests).toEqual(["PUT cp-1", "POST cp-1", "PUT cp-1/bootstrap"]);
    expect(await ready()).toEqual(names);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("goes on with a start that Azure had no room for", async () => {
    await cloud.stack.configure({ ...changed, controlPlaneSize: ofControlPlane });
    await cloud.fault({
      ...{ method: "POST", id: "workers-1$", nth: 2 },
      ...{ status: 400, code: "AllocationFailed" },
    });

    expect(refused(await cloud.stack.up("--skip-preview"))).toMatch(
      /Azure has no room for another Standard_D4s_v5 in zone 2 of southeastasia/,
    );
    expect(await ready()).toEqual(["cp-1", "workers-2"]);
    await cloud.clearFaults();
    const requests = await written(async () => succeeded(await cloud.stack.up("--skip-preview")));

    expect(requests).toEqual([
      "POST workers-1",
      "PUT workers-1/bootstrap",
      ...resized("workers-2"),
    ]);
    expect(await ready()).toEqual(names);
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});
