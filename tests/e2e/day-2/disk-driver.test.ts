import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { isAlive, readPidFile } from "../../../tools/shared/pids";
import { describeUnless } from "../../support/unless";
import { hasManifests, LocalCloud } from "../../../tools/lab/local-cloud";
import { npm } from "../npm";

jest.setTimeout(900_000);

interface CsiNode {
  metadata: { name: string };
  spec: { drivers: { name: string }[] };
}
interface Volume {
  metadata: { name: string };
  spec: { nodeAffinity: { required: { nodeSelectorTerms: { matchExpressions: object[] }[] } } };
}
interface Disk {
  name: string;
  zones: string[];
  sku: { name: string };
  properties: { diskSizeGB: number };
}
interface Machine {
  properties: { storageProfile: { dataDisks?: { name: string }[] } };
}

const parent = mkdtempSync(join(tmpdir(), "zoned-e2e-"));
const state = join(parent, "state");
afterAll(() => rmSync(parent, { recursive: true, force: true, maxRetries: 5 }));

const obstacle = hasManifests ? undefined : "ZONED_MANIFESTS names no folder";

const zone = "3";
/** A database of one pod, with a disk in one zone. */
const database = {
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: "db" },
  spec: {
    serviceName: "db",
    selector: { matchLabels: { app: "db" } },
    template: {
      metadata: { labels: { app: "db" } },
      spec: {
        containers: [
          {
            name: "db",
            image: "registry.k8s.io/pause:3.10",
            volumeMounts: [{ name: "data", mountPath: "/data" }],
          },
        ],
      },
    },
    volumeClaimTemplates: [
      {
        metadata: { name: "data" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: `standard-ssd-zone-${zone}`,
          resources: { requests: { storage: "10Gi" } },
        },
      },
    ],
  },
};
const claim = "persistentvolumeclaim/data-db-0";
const snapshot = {
  apiVersion: "snapshot.storage.k8s.io/v1",
  kind: "VolumeSnapshot",
  metadata: { name: "before" },
  spec: { source: { persistentVolumeClaimName: "data-db-0" } },
};

/** One life, from `npm start` to `npm stop`; each test goes on where the one before it ended. */
describeUnless(obstacle)("a rehearsal with Azure's own disk driver", () => {
  let cloud: LocalCloud;
  afterAll(() => (existsSync(state) ? npm(state, "stop", "--discard") : undefined));

  const apply = (object: object): Promise<string> => {
    const file = join(parent, "object.json");
    writeFileSync(file, JSON.stringify(object));
    return cloud.kubectl("apply", "--filename", file);
  };
  const waitFor = (what: string, condition: string) =>
    cloud.kubectl("wait", what, "--for", condition, "--timeout", "540s");
  const remove = (what: string) => cloud.kubectl("delete", what, "--wait=false");
  const isUp = async (): Promise<void> => {
    await waitFor("pod/db-0", "create");
    await waitFor("pod/db-0", "condition=Ready");
  };

  const compute = "/providers/Microsoft.Compute";
  const azures = async <T extends { name: string }>(type: string): Promise<T[]> =>
    ((await cloud.inGroup("GET", `${compute}/${type}`)) as { value: T[] }).value;
  /** Disks of claims, not of machines. */
  const disks = async (): Promise<Disk[]> =>
    (await azures<Disk>("disks")).filter(({ name }) => name.startsWith("pvc-"));
  const disksOf = async (machine: string): Promise<string[]> => {
    const path = `${compute}/virtualMachines/zoned-local-${machine}`;
    const { properties } = (await cloud.inGroup("GET", path)) as Machine;
    return (properties.storageProfile.dataDisks ?? []).map(({ name }) => name);
  };

  /** Nodes that the driver is registered on. */
  const takers = async (): Promise<string[]> =>
    (await cloud.get<CsiNode>("csinodes"))
      .filter(({ spec }) => spec.drivers.some(({ name }) => name === "disk.csi.azure.com"))
      .map(({ metadata }) => metadata.name);

  it("is said to run, and every node takes disks", async () => {
    expect(await npm(state, "start", "--stack", "local")).toMatch(
      /^runs Azure's disk driver v\S+ /m,
    );
    cloud = await LocalCloud.in(state, "local");

    const machines = ["cp-1", "workers-1", "workers-2"].map((name) => `zoned-local-${name}`);
    while ((await takers()).length < machines.length) await sleep(500);
    expect(await takers()).toEqual(machines);
  });

  it("gives a claim a disk in its pod's zone, at the pod's machine", async () => {
    await apply(database);

    await isUp();

    const [disk, ...others] = await disks();
    expect(others).toEqual([]);
    expect(disk).toMatchObject({
      zones: [zone],
      sku: { name: "StandardSSD_LRS" },
      properties: { diskSizeGB: 10 },
    });
    const [volume] = await cloud.get<Volume>("persistentvolumes");
    expect(disk?.name).toBe(volume?.metadata.name);
    expect(volume?.spec.nodeAffinity.required.nodeSelectorTerms).toEqual([
      {
        matchExpressions: [
          {
            key: "topology.disk.csi.azure.com/zone",
            operator: "In",
            values: [`southeastasia-${zone}`],
          },
        ],
      },
    ]);
    expect(await disksOf("workers-2")).toEqual([disk?.name]);
    expect(await cloud.kubectl("get", "pod/db-0", "--output", "jsonpath={.spec.nodeName}")).toBe(
      "zoned-local-workers-2",
    );
  });

  it("lets the disk grow under its pod", async () => {
    const spec = { resources: { requests: { storage: "20Gi" } } };
    await cloud.kubectl("patch", claim, "--patch", JSON.stringify({ spec }));

    await waitFor(claim, "jsonpath={.status.capacity.storage}=20Gi");

    expect((await disks()).map(({ properties }) => properties.diskSizeGB)).toEqual([20]);
    expect(await disksOf("workers-2")).toHaveLength(1);
  });

  it("makes a snapshot of the disk, and deletes it", async () => {
    await apply(snapshot);
    await waitFor("volumesnapshot/before", "jsonpath={.status.readyToUse}=true");
    expect(await azures("snapshots")).toMatchObject([{ properties: { incremental: true } }]);

    await remove("volumesnapshot/before");

    while ((await azures("snapshots")).length > 0) await sleep(500);
  });

  it("detaches the disk when its pod is gone, and attaches it again", async () => {
    await cloud.kubectl("scale", "statefulset/db", "--replicas", "0");
    while ((await disksOf("workers-2")).length > 0) await sleep(500);
    expect(await disks()).toHaveLength(1);

    await cloud.kubectl("scale", "statefulset/db", "--replicas", "1");
    while ((await disksOf("workers-2")).length === 0) await sleep(500);
    await isUp();
  });

  it("deletes the disk with its claim", async () => {
    await remove("statefulset/db");
    await remove(claim);

    while ((await disks()).length > 0) await sleep(500);

    expect(await disksOf("workers-2")).toEqual([]);
    while ((await cloud.get("persistentvolumes")).length > 0) await sleep(500);
  });

  it("stops with a disk in use, and leaves nothing", async () => {
    await apply(database);
    await isUp();
    const running = globSync(join(state, "machines/clusters/*/pods/*.pid")).map((file) =>
      readPidFile(file)!,
    );
    expect(running.filter(isAlive).length).toBeGreaterThan(5);

    expect(await npm(state, "stop")).toContain("everything is gone");

    expect(running.filter(isAlive)).toEqual([]);
    expect(existsSync(state)).toBe(false);
  });
});
