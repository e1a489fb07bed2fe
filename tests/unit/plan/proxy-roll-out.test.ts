import { MachineChange, PreviousOutputs } from "../../../components/plan/machine-changes";
import { proxyDigest, proxyRollOutProblems } from "../../../components/plan/proxy-roll-out";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { validSettings } from "../../support/sample";

const now = "2026-11-25T02:00:00.000Z";
const silent = "w-2";

let kubeconfig: string;
let close: () => void;
let asked: string[];
let status: number;
beforeAll(async () => {
  ({ kubeconfig, close } = await serveKubernetesApi(({ url = "" }, response) => {
    asked.push(url);
    const items = ["w-1", silent].map((name) => ({
      metadata: { name },
      ...(url.endsWith("/nodes")
        ? {
            status: {
              conditions: [{ type: "Ready", status: name === silent ? "Unknown" : "True" }],
            },
          }
        : { spec: { renewTime: now, leaseDurationSeconds: 40 } }),
    }));
    response.writeHead(status, { date: new Date(now).toUTCString() });
    response.end(JSON.stringify({ items }));
  }));
});
afterAll(() => close());
beforeEach(() => {
  asked = [];
  status = 200;
});

interface Scene {
  readonly before?: string;
  readonly retained?: readonly string[];
  readonly changes?: readonly MachineChange[];
  readonly skipHealthCheckUntil?: string;
  readonly resourceGroup?: string;
}

const problemsOf = ({
  before,
  retained: kept,
  changes = [],
  skipHealthCheckUntil = "",
  resourceGroup = "",
}: Scene = {}) =>
  proxyRollOutProblems({
    settings: { ...validSettings, proxyMode: "nftables", skipHealthCheckUntil, resourceGroup },
    previous: {
      kubeProxy: before ?? proxyDigest({ ...validSettings, proxyMode: "ipvs" }),
      machines: { "w-1": {}, [silent]: {} },
    } as unknown as PreviousOutputs,
    changes,
    retained: new Set(kept ?? ["w-1", silent]),
    ...{ kubeconfig, now },
  });

it("refuses to change kube-proxy while a kubelet is silent, and names it with what to do", async () => {
  const [problem, ...others] = await problemsOf();

  expect(others).toEqual([]);
  expect(problem).toMatch(
    /^w-2: its Node is not Ready, .*\(az vm start --resource-group zoned-test --name w-2\)/,
  );
});

it("names the group that the machine is in, where that is not called like the cluster", async () => {
  expect(await problemsOf({ resourceGroup: "platform" })).toEqual([
    expect.stringContaining("az vm start --resource-group platform --name w-2"),
  ]);
});

it("asks nobody where kube-proxy stays as it is, or the health check is skipped", async () => {
  const before = proxyDigest({ ...validSettings, proxyMode: "nftables" });

  expect(await problemsOf({ before })).toEqual([]);
  expect(await problemsOf({ skipHealthCheckUntil: "29990101T000000Z" })).toEqual([]);
  expect(asked).toEqual([]);
});

it.each<[string, Scene]>([
  ["is made anew", { changes: [{ machine: silent, action: "replace", reasons: [] }] }],
  ["somebody deleted, which is created again", { retained: ["w-1"] }],
])("says nothing of a machine that %s", async (_, scene) => {
  expect(await problemsOf(scene)).toEqual([]);
  expect(asked).not.toEqual([]);
});

it("says nothing where the API does not", async () => {
  status = 403;

  expect(await problemsOf()).toEqual([]);
});

it.each([
  { kubernetesVersion: "1.36.4" },
  { proxyMode: "iptables" as const },
  { kubeProxy: { ipvs: { syncPeriod: "1m" } } },
])("takes %j for a change", (change) => {
  expect(proxyDigest({ ...validSettings, ...change })).not.toBe(proxyDigest(validSettings));
});
