import { X509Certificate } from "node:crypto";

import {
  asPlanned,
  LocalCloud,
  refused,
  unchanged,
  succeeded,
  fewAddOns,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(1_200_000);

const small = {
  ...fewAddOns,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 2, size: "Standard_B2s" }],
};
const controlPlanes = [1, 2, 3].map((number) => `zoned-dev-cp-${number}`);
const [worker, lostWorker] = ["zoned-dev-workers-1", "zoned-dev-workers-2"];

interface VirtualMachine {
  readonly properties: { readonly vmId: string };
}

interface Pod {
  readonly metadata: { readonly uid: string };
  readonly spec: { readonly nodeName?: string };
}

interface Node {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: { readonly conditions: readonly { type: string; status: string }[] };
}

describe("a cluster whose control planes are lost", () => {
  let cloud: LocalCloud;
  let settings: Record<string, unknown>;
  let workerId: string;
  let nodesBefore: Map<string, string>;
  let podsBefore: readonly string[];

  const vmIdOf = async (name: string): Promise<string> => {
    const vm = await cloud.inGroup("GET", `/providers/Microsoft.Compute/virtualMachines/${name}`);
    return (vm as VirtualMachine).properties.vmId;
  };
  const nodes = async (): Promise<Map<string, string>> =>
    new Map((await cloud.get<Node>("nodes")).map(({ metadata }) => [metadata.name, metadata.uid]));
  const podsOfControlPlanes = async (): Promise<string[]> =>
    (await cloud.get<Pod>("pods", "--all-namespaces"))
      .filter(({ spec }) => controlPlanes.includes(spec.nodeName ?? ""))
      .map(({ metadata }) => metadata.uid);
  /** Which of these ConfigMaps there are. */
  const saved = async (...names: string[]): Promise<string[]> =>
    (await cloud.get<Node>("configmaps"))
      .map(({ metadata }) => metadata.name)
      .filter((name) => names.includes(name));
  const lastSnapshot = async (): Promise<Record<string, string>> => {
    const words = ["--namespace", "kube-system", "configmap", "zoned-etcd-snapshot"];
    return JSON.parse(await cloud.kubectl("get", ...words, "--output", "jsonpath={.data}"));
  };
  const remove = (name: string): Promise<unknown> =>
    cloud.inGroup("DELETE", `/providers/Microsoft.Compute/virtualMachines/${name}`);

  /** The certificates in the stack's kubeconfig. */
  async function administrator() {
    const { kubeconfig } = (await cloud.stack.outputs()) as { kubeconfig: string };
    const [ca, cert] = ["certificate-authority-data", "client-certificate-data"].map((part) => {
      const [, base64 = ""] = new RegExp(`"${part}":"([^"]+)"`).exec(kubeconfig) ?? [];
      return new X509Certificate(Buffer.from(base64, "base64"));
    });
    return { ca: ca!, cert: cert! };
  }

  /** A ConfigMap that a snapshot has, and one that it does not have. */
  async function save(before: string, after: string): Promise<void> {
    await cloud.kubectl("create", "configmap", before);
    await cloud.snapshot("cp-1");
    await cloud.kubectl("create", "configmap", after);
  }

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", small);
    settings = { ...small, etcdBackups: await cloud.container("backups", "etcd") };
    await cloud.stack.configure(settings);
    asPlanned(await cloud.stack.up());
    await save("a", "b");
    workerId = await vmIdOf(worker);
    nodesBefore = await nodes();
    podsBefore = await podsOfControlPlanes();
    for (const name of [...controlPlanes, lostWorker]) await remove(name);
  });
  afterAll(() => cloud?.stop());

  it("is told to name a snapshot, and by that has all that was in it, its workers, and one anew that was lost as well", async () => {
    const lost = await cloud.stack.preview();
    expect(
      await cloud.runSuggested(`${lost.stdout}${lost.stderr}`, /config set restoreFrom \w+/),
    ).toBe("config set restoreFrom latest");
    asPlanned(await cloud.stack.up());

    expect(await saved("a", "b")).toEqual(["a"]);
    expect(await vmIdOf(worker)).toBe(workerId);
    const after = await nodes();
    expect([...after.keys()].sort()).toEqual([...controlPlanes, worker, lostWorker]);
    // The same Node for the worker, and another one for each machine that is another.
    expect([...after].filter(([name, uid]) => nodesBefore.get(name) === uid)).toEqual([
      [worker, nodesBefore.get(worker)],
    ]);
    const ready = ({ status }: Node) =>
      status.conditions.some(({ type, status: is }) => type === "Ready" && is === "True");
    expect((await cloud.get<Node>("nodes")).filter((node) => !ready(node))).toEqual([]);
  });

  it("has no pod left of the machines that are gone", async () => {
    expect(podsBefore).not.toEqual([]);
    expect((await podsOfControlPlanes()).filter((uid) => podsBefore.includes(uid))).toEqual([]);
  });

  it("is not restored again, without the setting or with it", async () => {
    await cloud.stack.configure(settings);
    unchanged(await cloud.stack.up("--skip-preview"));
    await cloud.stack.configure({ ...settings, restoreFrom: "latest" });
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("is restored as well when two of three are lost, though not by a setting that was left behind alone", async () => {
    await save("c", "d");
    await cloud.stack.configure({ ...settings, proxyScheduler: "wrr", restoreFrom: "latest" });
    asPlanned(await cloud.stack.up());
    const [survivor, ...lost] = controlPlanes;
    for (const name of lost) await remove(name);
    const before = await vmIdOf(survivor!);

    const left = refused(await cloud.stack.up());
    expect(await vmIdOf(survivor!)).toBe(before);
    await cloud.runSuggested(left, /config set reinitialize [^\s,]+/);
    const restored = asPlanned(await cloud.stack.up());

    expect(await saved("c", "d")).toEqual(["c"]);
    expect(await vmIdOf(survivor!)).not.toBe(before);
    expect(await vmIdOf(worker)).toBe(workerId);
    await cloud.runSuggested(restored.stdout, /config rm restoreFrom/);
    expect(restored.stdout).toMatch(/restoreFrom and pulumi up --refresh, which brings back/);
  });

  it("has by a refresh what this program has changed since the snapshot", async () => {
    const inSystem = ["--namespace", "kube-system", "--output"];
    const volume = "jsonpath={.spec.template.spec.volumes[?(@.name=='kube-proxy')].configMap.name}";

    succeeded(await cloud.stack.up("--refresh"));

    const name = await cloud.kubectl("get", "daemonset", "kube-proxy", ...inSystem, volume);
    expect(await cloud.kubectl("get", "configmap", name, ...inSystem, "yaml")).toContain(
      "scheduler: wrr",
    );
    await cloud.stack.configure(settings);
    asPlanned(await cloud.stack.up());
  });

  it("is saved by the control plane that stays before each of the others leaves", async () => {
    await cloud.stack.configure({ ...settings, controlPlaneCount: 1 });
    await cloud.kubectl("create", "configmap", "e");

    asPlanned(await cloud.stack.up());

    const { machine, name, error } = await lastSnapshot();
    expect({ machine, error }).toEqual({ machine: controlPlanes[0], error: undefined });
    await cloud.kubectl("create", "configmap", "f");
    await cloud.stack.configure({ ...settings, controlPlaneCount: 1, restoreFrom: name });
  });

  it("goes back to a snapshot by choice, when the settings name what may be lost as well", async () => {
    const run = await cloud.stack.up();
    unchanged(run);
    expect(await saved("e", "f")).toEqual(["e", "f"]);
    const named = {
      ...settings,
      controlPlaneCount: 1,
      restoreFrom: (await lastSnapshot())["name"],
    };
    await cloud.stack.configure({ ...named, restoreFrom: "20200101T000000Z-1.db" });
    await cloud.runSuggested(`${run.stdout}${run.stderr}`, /config set reinitialize \S+/);
    const requests = (await cloud.requests()).length;
    expect(refused(await cloud.stack.up())).toMatch(
      /whether snapshot 20200101T000000Z-1.db .* is not known: .*AuthorizationPermissionMismatch/,
    );
    await cloud.readsBlobs("backups");
    expect(refused(await cloud.stack.up())).toMatch(
      /there is no such snapshot .* the newest are: /,
    );
    const asked = (await cloud.requests()).slice(requests);
    expect(asked.filter(({ method, id }) => method !== "GET" && id.includes("/zoned-dev"))).toEqual(
      [],
    );
    await cloud.stack.configure(named);
    await cloud.runSuggested(`${run.stdout}${run.stderr}`, /config set reinitialize \S+/);

    asPlanned(await cloud.stack.up());

    expect(await saved("e", "f")).toEqual(["e"]);
    expect(await vmIdOf(worker)).toBe(workerId);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("gets another certificate for its administrator, of the same CA, and no machine is touched", async () => {
    const before = await administrator();

    const { steps } = succeeded(
      await cloud.stack.up("--skip-preview", "--replace", "**::pki-admin"),
    );

    const after = await administrator();
    expect(after.cert.serialNumber).not.toBe(before.cert.serialNumber);
    expect(after.cert.verify(after.ca.publicKey)).toBe(true);
    expect(after.ca.serialNumber).toBe(before.ca.serialNumber);
    expect(
      steps.filter((step) => !/ (pki-admin|kubernetes|\S+-(membership|drain))$/.test(step)),
    ).toEqual([]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});
