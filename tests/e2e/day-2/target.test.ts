import { LoggedRequest } from "../../../tools/local-azure/arm/requests";
import {
  asPlanned,
  LocalCloud,
  refused,
  unchanged,
  succeeded,
  fewAddOns as small,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(600_000);

const pool = { name: "workers", count: 2, size: "Standard_B2s" };
const changed = {
  ...small,
  workerPools: [{ ...pool, size: "Standard_B4ms" }],
  kubeadm: { apiServerExtraArgs: { "event-ttl": "2h" } },
};

/** What was asked of machines and their steps, such as `PUT workers-1`. */
const writes = (requests: readonly LoggedRequest[]) =>
  requests
    .filter(({ method }) => method === "PUT" || method === "DELETE")
    .flatMap(({ method, id }) => {
      const [, path] = /\/virtualMachines\/zoned-dev-(.*)$/.exec(id) ?? [];
      return path === undefined ? [] : [`${method} ${path.replace("/extensions", "")}`];
    });

/** One change of sizes and of a flag, done in parts. */
describe("a cluster of which pulumi up changes parts", () => {
  let cloud: LocalCloud;
  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", { ...small, workerPools: [pool] });
    asPlanned(await cloud.stack.up());
    await cloud.stack.configure(changed);
  });
  afterAll(() => cloud?.stop());

  const urnOf = async (name: string) => {
    const { deployment } = (await cloud.stack.stackExport()) as {
      deployment: { resources: { urn: string }[] };
    };
    return deployment.resources.find(({ urn }) => urn.endsWith(`::zoned-dev-${name}`))!.urn;
  };
  const memory = async () => ((await cloud.stack.outputs()) as { cluster: unknown }).cluster;
  const written = async (action: () => Promise<unknown>) => {
    const before = (await cloud.requests()).length;
    await action();
    return writes((await cloud.requests()).slice(before));
  };

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
          ...["--exclude", await urnOf("workers-2-drain-before-resize")],
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
