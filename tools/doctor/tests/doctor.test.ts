import timers from "node:timers/promises";
import { gzipSync } from "node:zlib";

import { checkCluster } from "../doctor";
import { asJson, checkLines, verdict, zoneLines } from "../report";
import { healthyCluster, now, serveCluster, threeByThree } from "./support/cluster-state";
import { withApi } from "../../../components/cluster/kubernetes-api";
import { serveKubernetesApi } from "../../../tests/support/kubernetes-api";

const pause = jest.spyOn(timers, "setTimeout").mockImplementation(async () => undefined as never);

const cluster = { current: healthyCluster() };
let api: Awaited<ReturnType<typeof serveCluster>>;
beforeAll(async () => {
  api = await serveCluster(cluster);
});
beforeEach(() => {
  cluster.current = healthyCluster();
  Object.assign(api.readiness, { status: 200, text: "ok" });
});

const look = () => checkCluster({ ...threeByThree, kubeconfig: api.kubeconfig });

it("asks a living API for everything, and goes by the API server's clock", async () => {
  const { looked, healthy, time, checks } = await look();

  expect({ looked, healthy, time }).toEqual({
    ...{ looked: true, healthy: true },
    time: new Date(now).toISOString(),
  });
  expect(checks).toHaveLength(26);
  expect(checks[0]!.saw).toMatch(/^https:\/\/localhost:\d+ \((127\.0\.0\.1|::1)\) is ready/);
  expect(checks.find(({ name }) => name === "etcd size")!.saw).toBe("40.0 MiB of 8 GiB (0 %)");
  expect(checks.find(({ name }) => name === "etcd version")!.saw).toBe("3.7.0");
  expect(checks.find(({ name }) => name === "etcd snapshots")!.saw).toBe(
    "the newest is 20 min old: 20261124T215500Z-42.db of cp-2, 3.0 MiB, in https://backups.blob.core.windows.net/etcd",
  );
});

it("has the API compress what it answers, as a slow connection would not get it within the time", async () => {
  const kubeconfig = await serveKubernetesApi(({ headers }, response) => {
    const isAsked = headers["accept-encoding"] === "gzip";
    response.writeHead(200, isAsked ? { "content-encoding": "gzip" } : {});
    response.end(isAsked ? gzipSync("compressed ✓") : "as it is");
  });

  expect(await withApi(kubeconfig, (api) => api.get("/metrics"))).toBe("compressed ✓");
});

it("sees a kubelet whose certificate the API server does not take", async () => {
  cluster.current.kubelets[4]!.error =
    'Get "https://172.16.1.4:10250/metrics": x509: certificate has expired';

  const { checks } = await look();

  expect(checks.find(({ name }) => name === "kubelets' certificates")!.problems).toEqual([
    expect.objectContaining({
      machine: "workers-2",
      saw: "the API server does not take its kubelet's: x509: certificate has expired",
    }),
  ]);
});

it("knows until when kubelets' certificates for the API are valid, as far as they say it", async () => {
  const { kubelets } = cluster.current;
  kubelets[1]!.clientSeconds = undefined;
  const kubeletsCheck = async () =>
    (await look()).checks.find(({ name }) => name === "kubelets' certificates")!;

  expect(await kubeletsCheck()).toMatchObject({
    saw: expect.stringMatching(
      /takes those of 6 kubelets; .* first to end is valid until .*, 200 days$/,
    ),
    problems: [],
  });
  kubelets[2]!.clientSeconds = 29 * 86_400;
  expect((await kubeletsCheck()).problems).toEqual([
    expect.objectContaining({
      machine: "cp-3",
      saw: expect.stringMatching(
        /^its kubelet's for the API is valid until .*, 29 days, and should/,
      ),
    }),
  ]);
});

it("sees that the certificates of both sides end soon", async () => {
  const other = await serveCluster(cluster, 29);

  const { checks } = await checkCluster({ ...threeByThree, kubeconfig: other.kubeconfig });

  const failed = checks.filter(({ problems }) => problems.length > 0);
  expect(failed.map(({ name }) => name)).toEqual(["admin certificate", "API server's certificate"]);
});

it("tries to write, and goes on to the rest when etcd does not", async () => {
  cluster.current.writeError = "database space exceeded";

  const { checks } = await look();

  const write = checks.find(({ name }) => name === "etcd takes writes")!;
  expect(write.problems[0]!.saw).toMatch(/answered 500 to PATCH .*database space exceeded/);
  expect(write.problems[0]!.fix).toContain("exec etcd-cp-1 -- etcdctl");
});

it("has looked, and is not healthy, when the API says that it is not ready", async () => {
  Object.assign(api.readiness, { status: 500, text: "[-]etcd failed" });

  const report = await look();

  expect(report).toMatchObject({ looked: true, healthy: false });
  expect(report.checks[0]!.problems[0]!.saw).toMatch(/500 to GET \/readyz.*\[-\]etcd failed/);
  expect(zoneLines(report).join("\n")).not.toMatch(/[✓✗]/);
});

it("looks again where one of several API servers is not ready, as while its machine reboots", async () => {
  Object.assign(api.readiness, { status: 500, text: "[+]ping ok\n[-]shutdown failed" });
  pause.mockImplementationOnce(async () => {
    api.readiness.status = 200;
    return undefined as never;
  });

  expect(await look()).toMatchObject({ looked: true, healthy: true });
});

it("names what to do when the API refuses the certificate of the kubeconfig", async () => {
  Object.assign(api.readiness, { status: 401, text: "Unauthorized" });

  const report = await look();

  expect(report).toMatchObject({ looked: true, healthy: false });
  expect(report.checks[0]!.problems[0]!.fix).toMatch(/pulumi up .* kubeconfig anew/);
});

it("has looked when the API server's certificate has expired", async () => {
  const other = await serveCluster(cluster, -1 / 86_400);

  const report = await checkCluster({ ...threeByThree, kubeconfig: other.kubeconfig });

  expect(report).toMatchObject({ looked: true, healthy: false });
  expect(report.checks[0]!.problems[0]).toMatchObject({
    saw: expect.stringContaining("CERT_HAS_EXPIRED"),
    fix: expect.stringContaining("kubeadm certs renew all"),
  });
});

it.each([
  ["of another CA", "DEPTH_ZERO_SELF_SIGNED_CERT", "localhost"],
  ["for another name", "ERR_TLS_CERT_ALTNAME_INVALID", "127.0.0.1"],
])("sends nobody to start machines when it sees a certificate %s", async (_, code, host) => {
  const authority = /(?<=authority-data":")[^"]+/;
  const [asked, other] = [api, await serveCluster(cluster)];
  const trusted = (host === "localhost" ? other : asked).kubeconfig.match(authority)![0];
  const kubeconfig = asked.kubeconfig.replace(authority, trusted).replace("localhost", host);

  const { looked, checks } = await checkCluster({ ...threeByThree, kubeconfig });

  expect(looked).toBe(true);
  expect(checks[0]!.problems).toEqual([
    { saw: expect.stringContaining(code), fix: expect.stringMatching(/NO_PROXY.*kubeconfig/) },
  ]);
});

it("does not take a defect of its own for the API's answer", async () => {
  cluster.current.deployments = [{} as never];

  await expect(look()).rejects.toThrow(TypeError);
});

it("could not look when nobody answers, and says if the name resolves", async () => {
  const nowhere = api.kubeconfig.replace(/localhost:\d+/, "zoned.invalid:6443");

  const report = await checkCluster({ ...threeByThree, kubeconfig: nowhere });

  expect(report).toMatchObject({ looked: false, healthy: false });
  expect(verdict(report)).toBe("could not look: the API does not answer");
  expect(report.checks[0]!.saw).toMatch(/its name does not resolve/);
});

describe("by a proxy", () => {
  const environment = { ...process.env };
  afterEach(() => void (process.env = { ...environment }));
  const sawBy = async (
    cluster: Record<string, string>,
    variables: Record<string, string>,
    proxy?: string,
  ) => {
    for (const name of Object.keys(process.env)) if (/proxy$/i.test(name)) delete process.env[name];
    Object.assign(process.env, variables);
    const config = JSON.parse(api.kubeconfig);
    Object.assign(config.clusters[0].cluster, { server: "https://zoned.invalid:6443", ...cluster });
    const report = await checkCluster({
      ...{ ...threeByThree, apiAddress: "172.16.0.4" },
      ...{ kubeconfig: JSON.stringify(config), proxy },
    });
    return report.checks[0]!;
  };
  const HTTPS_PROXY = "http://127.0.0.1:2";

  it.each([
    ["the kubeconfig's own", { "proxy-url": "http://127.0.0.1:1" }, {}, "by the proxy 127.0.0.1:1"],
    [
      "the kubeconfig's before the shell's",
      { "proxy-url": "http://127.0.0.1:1" },
      { HTTPS_PROXY },
      "by the proxy 127.0.0.1:1",
    ],
    [
      "the kubeconfig's before a rehearsal's",
      { "proxy-url": "http://127.0.0.1:1" },
      {},
      "by the proxy 127.0.0.1:1",
      "http://127.0.0.1:3",
    ],
    ["a rehearsal's", {}, { HTTPS_PROXY }, "by the proxy 127.0.0.1:3", "http://127.0.0.1:3"],
    ["the shell's", {}, { HTTPS_PROXY }, "by the proxy 127.0.0.1:2"],
    ["none to what NO_PROXY names", {}, { HTTPS_PROXY, NO_PROXY: ".invalid" }, "does not resolve"],
  ])("names %s as the way, and apiProxy among the ways to a private API", async (...row) => {
    const [, cluster, variables, way, proxy] = row;

    const { saw, problems } = await sawBy(cluster, variables, proxy);

    expect(saw).toContain(way);
    expect(problems[0]!.fix).toContain("pulumi config set apiProxy http://");
  });
});

it("prints a line per check, and machines by zone with what is wrong", async () => {
  cluster.current.nodes.find(({ metadata }) => metadata.name === "cp-2")!.spec = {
    unschedulable: true,
  };

  const report = await look();

  expect(checkLines(report)).toContainEqual(
    "✗ cordons: cp-2: its Node is cordoned, not by this program → kubectl uncordon cp-2, when the maintenance is done",
  );
  expect(checkLines(report)).toContainEqual(
    "✓ pressure: no Node is short of memory, disk or process ids",
  );
  expect(zoneLines(report)).toEqual([
    "ZONE             MACHINES",
    "southeastasia-1  ✓ cp-1  ✓ workers-1",
    "southeastasia-2  ✗ cp-2  ✓ workers-2",
    "southeastasia-3  ✓ cp-3  ✓ workers-3",
  ]);
  expect(verdict(report)).toBe("not healthy: cordons");
});

it("writes one JSON document, without a key", async () => {
  cluster.current.storageBytes = undefined;

  const text = asJson("prod", await look());

  const { checks, zones, ...rest } = JSON.parse(text);
  expect(rest).toMatchObject({ stack: "prod", looked: true });
  expect(checks).toContainEqual(expect.objectContaining({ name: "etcd size", passed: null }));
  expect(checks).toContainEqual(expect.objectContaining({ name: "Nodes", passed: true }));
  expect(zones["southeastasia-3"]).toEqual([
    { name: "cp-3", role: "control-plane", passed: true },
    { name: "workers-3", role: "worker", passed: true },
  ]);
  expect(text).not.toMatch(/PRIVATE KEY|-key|BEGIN/i);
});
