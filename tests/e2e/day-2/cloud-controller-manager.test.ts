import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { LocalCloud, succeeded } from "../../../tools/lab/local-cloud";
import { npm } from "../npm";

jest.setTimeout(900_000);

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

const parent = mkdtempSync(join(tmpdir(), "zoned-e2e-"));
const state = join(parent, "state");
afterAll(() => rmSync(parent, { recursive: true, force: true, maxRetries: 5 }));

/** One life, from `npm start` to `npm stop`; each test goes on where the one before it ended. */
describe("a rehearsal with Azure's own cloud controller manager", () => {
  let cloud: LocalCloud;
  afterAll(() => (existsSync(state) ? npm(state, "stop", "--discard") : undefined));

  const network = "/providers/Microsoft.Network";
  const expose = () =>
    cloud.kubectl("create", "service", "loadbalancer", "web", "--tcp", "80:8080");
  const waitFor = (what: string, condition: string, ...more: string[]) =>
    cloud.kubectl("wait", what, "--for", condition, "--timeout", "540s", ...more);
  const hasAddress = () => waitFor("service/web", "jsonpath={.status.loadBalancer.ingress[0].ip}");
  const azures = async (type: string): Promise<string[]> => {
    const { value } = (await cloud.inGroup("GET", `${network}/${type}`)) as {
      value: { name: string }[];
    };
    return value.map(({ name }) => name);
  };
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

  it("is said to run, and comes up whole", async () => {
    expect(await npm(state, "start", "--stack", "local")).toMatch(
      /^runs Azure's cloud controller manager and node managers v\S+ .*zoned-local-workers-2/ms,
    );
    cloud = await LocalCloud.in(state, "local");
  });

  it("changes nothing the second time", async () => {
    expect(await npm(state, "start", "--stack", "local")).toContain("nothing changed");
  });

  const made = async () => ({
    rules: (await azures("networkSecurityGroups/zoned-local-nsg/securityRules")).length,
    addresses: (await azures("publicIPAddresses")).length,
    balancers: await azures("loadBalancers"),
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
    const file = join(parent, "inner.json");
    const annotations = { "service.beta.kubernetes.io/azure-load-balancer-internal": "true" };
    writeFileSync(
      file,
      JSON.stringify({
        ...{ apiVersion: "v1", kind: "Service", metadata: { name: "inner", annotations } },
        spec: { type: "LoadBalancer", ports: [{ port: 80 }] },
      }),
    );
    await cloud.kubectl("create", "--filename", file);

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

    expect(await azures("loadBalancers")).toContain("zoned-local");
  });

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
      "/providers/Microsoft.Compute/virtualMachines/zoned-local-workers-2",
    );

    await waitFor("node/zoned-local-workers-2", "delete");

    const left = (await cloud.get<Node>("nodes")).map(({ metadata }) => metadata.name);
    expect(left).toEqual(["zoned-local-cp-1", "zoned-local-workers-1"]);
    while ((await members()).length > 1) await sleep(500);
    expect(await members()).toEqual(await addressesOf("workers"));
  });

  it("leaves nothing behind when the stack is destroyed with its Service", async () => {
    succeeded(await cloud.stack.destroy());

    expect(await cloud.isEmpty()).toBe(true);
  });
});
