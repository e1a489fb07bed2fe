import { writeFileSync } from "node:fs";
import { join } from "node:path";

import {
  asPlanned,
  LocalCloud,
  refused,
  unchanged,
  WatchEvent,
  succeeded,
  fewAddOns,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(1_200_000);

const small = {
  ...fewAddOns,
  controlPlaneCount: 3,
  schedulableControlPlanes: false,
  drainMinutes: 1,
};
const workers = (count: number, size = "Standard_B2s") => ({
  workerPools: [{ name: "workers", count, size }],
});

const template = (app: string) => ({
  metadata: { labels: { app } },
  spec: {
    containers: [{ name: app, image: "registry.k8s.io/pause:3.10" }],
    // Nodes keep this taint without a cloud provider.
    tolerations: [{ key: "node.cloudprovider.kubernetes.io/uninitialized", operator: "Exists" }],
  },
});
const workload = (kind: string, app: string, spec: object) => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: app },
  spec: { selector: { matchLabels: { app } }, template: template(app), ...spec },
});
const web = workload("Deployment", "web", { replicas: 6 });
const agent = workload("DaemonSet", "agent", {});
const budget = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "all-of-web" },
  spec: { minAvailable: "100%", selector: { matchLabels: { app: "web" } } },
};

interface Node {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly unschedulable?: boolean };
}

describe("a machine that leaves", () => {
  let cloud: LocalCloud;
  /** What happened to machines, as the API and Azure have it, by the time. */
  const log: [time: number, event: string][] = [];
  const watches: { end: () => void }[] = [];
  const short = (name = "") => name.replace("zoned-dev-", "");

  const cordoned = new Set<string>();
  const seeNode = ({ type, object }: WatchEvent): void => {
    const { name } = object.metadata;
    const is = object.spec.unschedulable === true;
    if (type === "DELETED") log.push([Date.now(), `Node ${short(name)} deleted`]);
    else if (is !== cordoned.has(name)) {
      log.push([Date.now(), `Node ${short(name)} ${is ? "cordoned" : "uncordoned"}`]);
    }
    if (is) cordoned.add(name);
    else cordoned.delete(name);
  };
  const ending = new Set<string>();
  const seePod = ({ object: { metadata, spec } }: WatchEvent): void => {
    const { name, deletionTimestamp } = metadata;
    if (deletionTimestamp === undefined || ending.has(name)) return;
    ending.add(name);
    log.push([Date.now(), `${name.split("-")[0]} on ${short(spec.nodeName)} ends`]);
  };

  /**
   * What an update made of machines, each thing once and in order; without pods of DaemonSets, which go
   * at some time after their Node.
   */
  const events = async (action: () => Promise<unknown>): Promise<string[]> => {
    const requests = (await cloud.requests()).length;
    log.length = 0;
    await action();
    const azure = (await cloud.requests()).slice(requests).flatMap(({ method, id, startedAt }) => {
      const [, name] = /\/virtualMachines\/([^/]+)$/i.exec(id) ?? [];
      const does = { PUT: "made", DELETE: "deleted" }[method as "PUT"] ?? "";
      return name && does ? [[Date.parse(startedAt), `VM ${short(name)} ${does}`] as const] : [];
    });
    const all = [...log, ...azure].sort(([a], [b]) => a - b).map(([, event]) => event);
    return all.filter((event, index) => all.indexOf(event) === index && !event.startsWith("agent"));
  };
  const up = async (settings: Record<string, unknown>) => {
    await cloud.stack.configure({ ...small, ...settings });
    return events(async () => asPlanned(await cloud.stack.up()));
  };
  const apply = async (object: object) => {
    const file = join(cloud.state, "object.json");
    writeFileSync(file, JSON.stringify(object));
    await cloud.kubectl("apply", "--filename", file);
  };
  const nodes = async () => {
    const all = await cloud.get<Node>("nodes");
    return all.map(
      ({ metadata, spec }) => `${short(metadata.name)}${spec.unschedulable ? " cordoned" : ""}`,
    );
  };

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", { ...small, ...workers(3) });
    asPlanned(await cloud.stack.up());
    await apply(web);
    await apply(agent);
    await cloud.kubectl("rollout", "status", "deployment/web", "--timeout", "120s");
    await cloud.kubectl("rollout", "status", "daemonset/agent", "--timeout", "120s");
    watches.push(
      await cloud.watch("/api/v1/nodes", seeNode),
      await cloud.watch("/api/v1/namespaces/default/pods", seePod),
    );
  });
  afterAll(async () => {
    for (const { end } of watches) end();
    await cloud?.stop();
  });

  const machine = (name: string) =>
    `/providers/Microsoft.Compute/virtualMachines/zoned-dev-${name}`;

  it("is made anew when the change is taken back after it has left and before its VM was deleted", async () => {
    await cloud.fault({
      method: "DELETE",
      id: machine("workers-3"),
      code: "ScopeLocked",
      times: 9,
    });
    await cloud.stack.configure({ ...small, ...workers(2) });
    expect(refused(await cloud.stack.up("--skip-preview"))).toMatch(/ScopeLocked/);
    await cloud.clearFaults();
    expect(await nodes()).not.toContain("workers-3");

    await cloud.stack.configure({ ...small, ...workers(3) });
    const run = asPlanned(await cloud.stack.up());

    expect(run.stdout).toMatch(
      /would replace zoned-dev-workers-3: it runs, and the cluster has no/,
    );
    expect(await nodes()).toContain("workers-3");
    // Pods were evicted from it, and go back to it.
    await cloud.kubectl("rollout", "restart", "deployment/web");
    await cloud.kubectl("rollout", "status", "deployment/web", "--timeout", "120s");
  });

  it("is cordoned and emptied, and its Node deleted, before its VM is", async () => {
    const happened = await up(workers(2));

    const at = (event: string) => log.find(([, other]) => other === event)?.[0] ?? Infinity;
    expect(at("agent on workers-3 ends")).toBeGreaterThanOrEqual(at("Node workers-3 deleted"));
    expect(happened).toEqual([
      "Node workers-3 cordoned",
      "web on workers-3 ends",
      "Node workers-3 deleted",
      "VM workers-3 deleted",
    ]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("takes pods again after it was restarted for another size", async () => {
    const happened = await up(workers(2, "Standard_B2ms"));

    expect(happened).toEqual(
      ["workers-1", "workers-2"].flatMap((name) => [
        `Node ${name} cordoned`,
        `web on ${name} ends`,
        `VM ${name} made`,
        `Node ${name} uncordoned`,
      ]),
    );
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("stays as it was when a budget does not let its pods go, and the message names both", async () => {
    // All pods are where the last one of the workers was restarted.
    await cloud.kubectl("rollout", "restart", "deployment/web");
    await cloud.kubectl("rollout", "status", "deployment/web", "--timeout", "120s");
    await apply(budget);
    await cloud.stack.configure({ ...small, ...workers(1, "Standard_B2ms") });

    let message = "";
    const happened = await events(async () => {
      message = refused(await cloud.stack.up("--skip-preview"));
    });

    expect(message).toMatch(/workers-2 could not be drained within 1 minutes/);
    expect(message).toMatch(/default\/web-[a-z0-9-]+: .*all-of-web/);
    expect(message).not.toMatch(/\.cjs:|\.ts:\d/);
    expect(happened).toEqual(["Node workers-2 cordoned", "Node workers-2 uncordoned"]);
    expect(await nodes()).toContain("workers-2");
  });

  it("is as before when a replacement that the budget held is taken back", async () => {
    const [pool] = workers(2, "Standard_B2ms").workerPools;
    await cloud.stack.configure({ ...small, workerPools: [{ ...pool, osDiskSizeGb: 100 }] });
    const message = refused(await cloud.stack.up("--skip-preview"));

    await cloud.stack.configure({ ...small, workerPools: [pool] });

    expect(message).toMatch(/could not be drained within 1 minutes/);
    // Of what it is given by the API alone, something may be made anew.
    expect(await events(async () => succeeded(await cloud.stack.up("--skip-preview")))).toEqual([]);
    unchanged(await cloud.stack.up("--skip-preview"));
    await cloud.stack.configure({ ...small, ...workers(1, "Standard_B2ms") });
  });

  it("is not waited for when it is dead, whatever the budget says", async () => {
    const machines = "/providers/Microsoft.Compute/virtualMachines";
    await cloud.inGroup("DELETE", `${machines}/zoned-dev-workers-2`);
    await cloud.kubectl(
      ...["wait", "node/zoned-dev-workers-2", "--for", "condition=Ready=Unknown"],
      ...["--timeout", "60s"],
    );

    succeeded(await cloud.stack.up("--skip-preview"));

    expect(await nodes()).toEqual(["cp-1", "cp-2", "cp-3", "workers-1"]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("leaves by its pool's count when it is off, in one update", async () => {
    await up(workers(2, "Standard_B2ms"));
    await cloud.inGroup("POST", `${machine("workers-2")}/deallocate`);
    await cloud.kubectl(
      ...["wait", "node/zoned-dev-workers-2", "--for", "condition=Ready=Unknown"],
      ...["--timeout", "60s"],
    );

    expect(await up(workers(1, "Standard_B2ms"))).toEqual([
      "Node workers-2 deleted",
      "VM workers-2 deleted",
    ]);

    unchanged(await cloud.stack.up("--skip-preview"));
  });

  const one = { ...workers(1, "Standard_B2ms"), controlPlaneCount: 1 };
  const five = { ...one, controlPlaneCount: 5 };
  const names = [1, 2, 3, 4, 5].map((number) => `cp-${number}`);
  it("is a control plane that is made anew, when the change is taken back after it has left and before its VM was deleted", async () => {
    await cloud.fault({ method: "DELETE", id: machine("cp-\\d$"), code: "ScopeLocked", times: 9 });
    await cloud.stack.configure({ ...small, ...one });
    expect(refused(await cloud.stack.up("--skip-preview"))).toMatch(/ScopeLocked/);
    await cloud.clearFaults();
    expect(await nodes()).not.toContain("cp-3");

    await cloud.stack.configure({ ...small, ...one, controlPlaneCount: 3 });
    const run = asPlanned(await cloud.stack.up());

    expect(run.stdout).toMatch(/would replace zoned-dev-cp-3: it is no member of etcd any more/);
    expect(await nodes()).toEqual(["cp-1", "cp-2", "cp-3", "workers-1"]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("is made anew, one after another, when two of five control planes are lost", async () => {
    await up(five);
    for (const name of ["cp-2", "cp-4"]) {
      await cloud.inGroup("DELETE", machine(name));
      // As the cloud provider does, which this cluster has none of.
      await cloud.kubectl("delete", "node", `zoned-dev-${name}`);
    }

    const happened = await events(async () => succeeded(await cloud.stack.up("--skip-preview")));

    expect(happened.filter((event) => event.endsWith("made"))).toEqual([
      "VM cp-2 made",
      "VM cp-4 made",
    ]);
    expect(await nodes()).toEqual([...names, "workers-1"]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("is a control plane that etcd goes on without: the highest number first", async () => {
    const happened = await up(one);

    const gone = names.slice(1).reverse();
    const left = happened.filter((event) => /^Node cp-\d deleted/.test(event));
    expect(left).toEqual(gone.map((name) => `Node ${name} deleted`));
    for (const name of gone) {
      expect(happened.indexOf(`VM ${name} deleted`)).toBeGreaterThan(
        happened.indexOf(`Node ${name} deleted`),
      );
    }
    expect(await nodes()).toEqual(["cp-1", "workers-1"]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("is not drained when the whole stack is destroyed", async () => {
    const happened = await events(async () => succeeded(await cloud.stack.destroy()));

    expect(happened.filter((event) => event.startsWith("Node "))).toEqual([]);
    expect(await cloud.isEmpty()).toBe(true);
  });
});
