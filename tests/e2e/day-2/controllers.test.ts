import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { hasManifests, LocalCloud, succeeded } from "../../../tools/lab/local-cloud";
import { checkout } from "../../../tools/shared/checkout";
import { isAlive, readPidFile } from "../../../tools/shared/pids";
import { testFolder } from "../../support/test-folder";
import { built, run } from "../../support/tools";
import { itUnless } from "../../support/unless";

interface Node {
  metadata: { name: string; labels: Record<string, string> };
  status: { addresses: { type: string; address: string }[] };
}
interface Pod {
  metadata: { name: string };
  status: {
    conditions: { type: string; status: string }[];
    containerStatuses: { restartCount: number; lastState: object }[];
  };
}

interface Address {
  properties: { ipAddress: string };
}
interface Pool {
  properties: { loadBalancerBackendAddresses: Address[] };
}
interface Balancer {
  properties: { backendAddressPools: Pool[] };
}
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

const parent = testFolder();
const state = join(parent, "state");

/** Without upstream's manifests there is no disk driver. */
const obstacle = hasManifests ? undefined : "ZONED_MANIFESTS names no folder";

/** What the page has one type, block by block, and what it says that is printed. */
const blocks = [
  ...readFileSync(join(checkout, "docs/tour.md"), "utf8").matchAll(
    /```sh\n(.*?)```\n\n```text\n(.*?)```/gs,
  ),
].map(([, typed, printed]) => ({ typed: typed!, printed: printed! }));

const end = "--- end of a block";

/** `npm start` or `npm stop` of a state folder, as a person types them; returns what they print. */
async function npm(state: string, command: "start" | "stop", ...args: string[]): Promise<string> {
  const words = [join(checkout, "tools/cli/zoned.cjs"), command, ...args, "--state", state];
  const { code, stdout, stderr } = await run(process.execPath, words, {
    ...process.env,
    ZONED_PLUGINS: process.env["ZONED_PLUGINS"] || "stand-ins",
  });
  if (code !== 0) throw new Error(`npm ${command} ended with ${code}:\n${stdout}${stderr}`);
  return `${stdout}${stderr}`;
}

/** `…` is anything on one line; columns are as wide as what is in them. */
const patternOf = (printed: string): RegExp =>
  new RegExp(
    `^${printed
      .trim()
      .split("\n")
      .map((line) =>
        line
          .trim()
          .split(/(…|\s+)/)
          .map((part) =>
            part === "…" ? ".*" : /^\s+$/.test(part) ? "\\s+" : part.replace(/[^\w\s]/g, "\\$&"),
          )
          .join(""),
      )
      .join("\\s*\\n")}\\s*$`,
  );

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
describe("a rehearsal with Azure's own controllers", () => {
  let cloud: LocalCloud;
  afterAll(() => (existsSync(state) ? npm(state, "stop", "--discard") : undefined));

  const apply = (object: object): Promise<string> => {
    const file = join(parent, "object.json");
    writeFileSync(file, JSON.stringify(object));
    return cloud.kubectl("apply", "--filename", file);
  };
  const azures = async <T extends { name: string }>(type: string): Promise<T[]> =>
    ((await cloud.inGroup("GET", type)) as { value: T[] }).value;

  const network = "/providers/Microsoft.Network";
  const expose = () =>
    cloud.kubectl("create", "service", "loadbalancer", "web", "--tcp", "80:8080");
  const waitFor = (what: string, condition: string, ...more: string[]) =>
    cloud.kubectl("wait", what, "--for", condition, "--timeout", "540s", ...more);
  const hasAddress = () => waitFor("service/web", "jsonpath={.status.loadBalancer.ingress[0].ip}");
  const inNetwork = async (type: string): Promise<string[]> =>
    (await azures(`${network}/${type}`)).map(({ name }) => name);
  /** Where the balancer leads to. */
  const members = async (): Promise<string[]> => {
    const { properties } = (await cloud.inGroup(
      "GET",
      `${network}/loadBalancers/zoned-local`,
    )) as Balancer;
    return properties.backendAddressPools
      .flatMap((pool) => pool.properties.loadBalancerBackendAddresses)
      .map((one) => one.properties.ipAddress)
      .sort();
  };
  const addressesOf = async (kind: string): Promise<string[]> =>
    (await cloud.get<Node>("nodes"))
      .filter(({ metadata }) => metadata.name.includes(kind))
      .flatMap(({ status }) => status.addresses)
      .filter(({ type }) => type === "InternalIP")
      .map(({ address }) => address)
      .sort();
  const pods = () =>
    cloud.get<Pod>(
      "pods",
      "--namespace",
      "kube-system",
      "--selector",
      "k8s-app=cloud-controller-manager",
    );

  const made = async () => ({
    rules: (await inNetwork("networkSecurityGroups/zoned-local-nsg/securityRules")).length,
    addresses: (await inNetwork("publicIPAddresses")).length,
    balancers: await inNetwork("loadBalancers"),
  });

  const remove = (what: string) => cloud.kubectl("delete", what, "--wait=false");
  const isUp = async (): Promise<void> => {
    await waitFor("pod/db-0", "create");
    await waitFor("pod/db-0", "condition=Ready");
  };

  const compute = "/providers/Microsoft.Compute";
  /** Disks of claims, not of machines. */
  const disks = async (): Promise<Disk[]> =>
    (await azures<Disk>(`${compute}/disks`)).filter(({ name }) => name.startsWith("pvc-"));
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

  let said: string;

  it("is said to have a cloud controller manager and node managers, and comes up whole", async () => {
    said = await npm(state, "start", "--stack", "local");

    expect(said).toMatch(
      /^runs Azure's cloud controller manager and node managers v\S+ .*zoned-local-workers-2/ms,
    );
    cloud = await LocalCloud.in(state, "local");
  });

  itUnless(obstacle)("is said to have a disk driver, and every node takes disks", async () => {
    expect(said).toMatch(/^runs Azure's disk driver v\S+ /m);

    const machines = ["cp-1", "workers-1", "workers-2"].map((name) => `zoned-local-${name}`);
    while ((await takers()).length < machines.length) await sleep(500);
    expect(await takers()).toEqual(machines);
  });

  itUnless(obstacle)("does what docs/tour.md says, block by block", async () => {
    const script = blocks.map(({ typed }) => `${typed}echo '${end}'\n`).join("");

    const { stdout } = await run(
      "bash",
      ["-c", `exec 2>&1\n${script.replace(/(\$PWD\/)?\.local-azure\b/g, state)}`],
      {
        ...process.env,
        PATH: [dirname(built("kubectl")), process.env["PATH"]].join(delimiter),
        PWD: checkout,
      },
    );

    const printed = stdout.split(`${end}\n`).slice(0, -1);
    expect(blocks.length).toBeGreaterThan(8);
    expect(printed).toEqual(blocks.map((block) => expect.stringMatching(patternOf(block.printed))));
  });

  it("changes nothing the second time", async () => {
    expect(await npm(state, "start", "--stack", "local")).toContain("nothing changed");
  });

  it("has Azure's balancer lead a Service to the workers, and takes all away with it", async () => {
    const before = await made();
    await expose();

    await hasAddress();

    expect(await made()).toEqual({
      rules: before.rules + 1,
      addresses: before.addresses + 1,
      balancers: [...before.balancers, "zoned-local"],
    });
    expect(await members()).toEqual(await addressesOf("workers"));
    await cloud.kubectl("delete", "service", "web");
    expect(await made()).toEqual(before);
  });

  it("gives an internal Service an address of the network, and no public one", async () => {
    await expose();
    await hasAddress();
    const { addresses, balancers } = await made();
    const annotations = { "service.beta.kubernetes.io/azure-load-balancer-internal": "true" };
    await apply({
      ...{ apiVersion: "v1", kind: "Service", metadata: { name: "inner", annotations } },
      spec: { type: "LoadBalancer", ports: [{ port: 80 }] },
    });

    const address = "jsonpath={.status.loadBalancer.ingress[0].ip}";
    await waitFor("service/inner", address);

    expect(await cloud.kubectl("get", "service/inner", "--output", address)).toMatch(/^172\.16\./);
    expect(await made()).toMatchObject({
      addresses,
      balancers: [...balancers, "zoned-local-internal"],
    });
    await cloud.kubectl("delete", "service", "inner");
    expect((await made()).balancers).toEqual(balancers);
  });

  it("keeps what it has made through a refresh and an update", async () => {
    succeeded(await cloud.stack.refresh());
    expect(await npm(state, "start", "--stack", "local")).toContain("nothing changed");

    expect(await inNetwork("loadBalancers")).toContain("zoned-local");
  });

  itUnless(obstacle)("gives a claim a disk in its pod's zone, at the pod's machine", async () => {
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

  itUnless(obstacle)("lets the disk grow under its pod", async () => {
    const spec = { resources: { requests: { storage: "20Gi" } } };
    await cloud.kubectl("patch", claim, "--patch", JSON.stringify({ spec }));

    await waitFor(claim, "jsonpath={.status.capacity.storage}=20Gi");

    expect((await disks()).map(({ properties }) => properties.diskSizeGB)).toEqual([20]);
    expect(await disksOf("workers-2")).toHaveLength(1);
  });

  itUnless(obstacle)("makes a snapshot of the disk, and deletes it", async () => {
    await apply(snapshot);
    await waitFor("volumesnapshot/before", "jsonpath={.status.readyToUse}=true");
    expect(await azures(`${compute}/snapshots`)).toMatchObject([
      { properties: { incremental: true } },
    ]);

    await remove("volumesnapshot/before");

    while ((await azures(`${compute}/snapshots`)).length > 0) await sleep(500);
  });

  itUnless(obstacle)("detaches the disk when its pod is gone, and attaches it again", async () => {
    await cloud.kubectl("scale", "statefulset/db", "--replicas", "0");
    while ((await disksOf("workers-2")).length > 0) await sleep(500);
    expect(await disks()).toHaveLength(1);

    await cloud.kubectl("scale", "statefulset/db", "--replicas", "1");
    while ((await disksOf("workers-2")).length === 0) await sleep(500);
    await isUp();
  });

  itUnless(obstacle)(
    "deletes the disk with its claim, and makes another one for the next",
    async () => {
      await remove("statefulset/db");
      await remove(claim);

      while ((await disks()).length > 0) await sleep(500);

      expect(await disksOf("workers-2")).toEqual([]);
      while ((await cloud.get("persistentvolumes")).length > 0) await sleep(500);

      await apply(database);
      await isUp();
    },
  );

  it("shows its pod as not ready when it has ended, and as ready when it serves again", async () => {
    const [file = ""] = globSync(
      join(state, "machines/clusters/*/pods/*_cloud-controller-manager.pid"),
    );
    const { pid } = JSON.parse(readFileSync(file, "utf8")) as { pid: number };
    const pod = `pod/${basename(file).replace(/_.*/, "")}`;
    const ready = (is: string) =>
      waitFor(pod, `condition=Ready=${is}`, "--namespace", "kube-system");

    process.kill(pid, "SIGKILL");
    await ready("false");
    await ready("true");

    const [{ status }] = (await pods()) as [Pod];
    expect(status.containerStatuses).toMatchObject([
      { restartCount: 1, lastState: { terminated: { exitCode: 137 } } },
    ]);
  });

  it("deletes the Node of a machine that is gone, and takes it out of the balancer", async () => {
    await cloud.inGroup(
      "DELETE",
      "/providers/Microsoft.Compute/virtualMachines/zoned-local-workers-1",
    );

    await waitFor("node/zoned-local-workers-1", "delete");

    const left = (await cloud.get<Node>("nodes")).map(({ metadata }) => metadata.name);
    expect(left).toEqual(["zoned-local-cp-1", "zoned-local-workers-2"]);
    while ((await members()).length > 1) await sleep(500);
    expect(await members()).toEqual(await addressesOf("workers"));
  });

  itUnless(obstacle)("stops with its Service and a disk in use, and leaves nothing", async () => {
    const running = globSync(join(state, "machines/clusters/*/pods/*.pid")).map((file) =>
      readPidFile(file)!,
    );
    expect(running.filter(isAlive).length).toBeGreaterThan(5);

    expect(await npm(state, "stop")).toContain("everything is gone");
    expect(running.filter(isAlive)).toEqual([]);
    expect(existsSync(state)).toBe(false);
  });
});
