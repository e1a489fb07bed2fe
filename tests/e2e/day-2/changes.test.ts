import { etcdOf, versions } from "../../../components/versions";
import { previousMinor } from "../../../tools/programs/releases";
import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { LoggedRequest } from "../../../tools/local-azure/arm/requests";
import {
  asPlanned,
  LocalCloud,
  refused,
  fewAddOns as small,
  unchanged,
} from "../../../tools/lab/local-cloud";

/** The minor that an upgrade comes from. */
const older = { ...small, kubernetesVersion: previousMinor.version };
const pool = { name: "workers", count: 2, size: "Standard_B2as_v2" };
const taints = [{ key: "gpu", value: "yes", effect: "NoSchedule" }];

/** What was asked of Azure but reads, as `PUT virtualMachines/workers-1`. */
const writes = (requests: readonly LoggedRequest[]) =>
  requests
    .filter(({ method }) => method === "PUT" || method === "DELETE")
    .map(({ method, id }) => {
      const [, path = ""] = /\/providers\/Microsoft\.[A-Za-z]+\/(.*)$/.exec(id) ?? [];
      return `${method} ${path.replaceAll("zoned-dev-", "")}`;
    });

/**
 * Every kind of change to a living cluster, each previewed, and done as the preview has it
 * (`asPlanned` compares).
 */
describe("a living cluster", () => {
  let cloud: LocalCloud;
  const change = async (settings: Record<string, unknown>) => {
    const before = (await cloud.requests()).length;
    await cloud.stack.configure({ ...older, ...settings });
    asPlanned(await cloud.stack.up());
    return writes((await cloud.requests()).slice(before));
  };
  const machines = (requests: readonly string[]) =>
    requests.filter((request) => /virtualMachines\/[^/]+$/.test(request));

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", older);
    asPlanned(await cloud.stack.up());
  });
  afterAll(() => cloud?.stop());

  it("labels nodes and touches no machine", async () => {
    const requests = await change({ workerPools: [{ ...pool, labels: { tier: "web" } }] });

    expect(requests).toEqual([]);
    const nodes = await cloud.get<{ metadata: { name: string } }>("nodes", "-l", "tier=web");
    expect(nodes).toHaveLength(2);
  });

  it("is refused a change that deletes machines under a lock on its own group, and writes nothing", async () => {
    const id = `${subscriptionPath}/resourceGroups/zoned-dev/providers/Microsoft.Authorization/locks/keep`;
    await cloud.lock(id, "CanNotDelete");
    const before = (await cloud.requests()).length;
    await cloud.stack.configure({ ...older, workerPools: [] });

    expect(refused(await cloud.stack.up())).toMatch(
      /CanNotDelete, and this change would delete the VM of [^:]*zoned-dev-workers-1/,
    );
    expect(writes((await cloud.requests()).slice(before))).toEqual([]);
    await cloud.unlock(id);
  });

  it("replaces only the workers whose taints change, one after another", async () => {
    expect(machines(await change({ workerPools: [{ ...pool, taints }] }))).toEqual([
      "DELETE virtualMachines/workers-1",
      "PUT virtualMachines/workers-1",
      "DELETE virtualMachines/workers-2",
      "PUT virtualMachines/workers-2",
    ]);
  });

  it("grows and shrinks a pool and touches no other machine", async () => {
    const grown = await change({ workerPools: [{ ...pool, taints, count: 3 }] });
    const shrunk = await change({ workerPools: [{ ...pool, taints }] });

    expect(machines(grown)).toEqual(["PUT virtualMachines/workers-3"]);
    expect(machines(shrunk)).toEqual(["DELETE virtualMachines/workers-3"]);
  });

  const settings = {
    workerPools: [{ ...pool, taints }],
    egress: "zonal",
    apiAccessCidrs: ["198.51.100.0/24", "203.0.113.0/24"],
  };

  it("changes the egress and who has access, and touches no machine", async () => {
    const requests = await change(settings);

    expect(requests.filter((request) => /natGateways/.test(request))).not.toEqual([]);
    expect(requests.filter((request) => /networkSecurityGroups/.test(request))).not.toEqual([]);
    expect(requests.filter((request) => /virtualMachines/.test(request))).toEqual([]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  const etcdImage = async () => {
    const pod = ["pods", "--namespace", "kube-system", "-l", "component=etcd"];
    const [etcd] = await cloud.get<{ spec: { containers: { image: string }[] } }>(...pod);
    return etcd?.spec.containers[0]?.image;
  };

  it("upgrades Kubernetes and its etcd in place, the control plane first, then one worker at a time", async () => {
    expect(await etcdImage()).toBe(`registry.k8s.io/etcd:${etcdOf(older.kubernetesVersion)}`);
    const happened: string[] = [];
    const { end } = await cloud.watch("/api/v1/nodes", ({ object: { metadata, spec, status } }) => {
      const now = `${metadata.name} ${spec.unschedulable ? "drained" : "in use"} ${status?.nodeInfo?.kubeletVersion}`;
      if (!happened.includes(now)) happened.push(now);
    });

    const requests = await change({ ...settings, kubernetesVersion: versions.kubernetes });
    end();
    const [before, after] = [older.kubernetesVersion, versions.kubernetes];
    for (const name of ["cp-1", "workers-1", "workers-2"]) {
      const own = happened.filter((one) => one.includes(name)).map((one) => one.split("-dev-")[1]);
      expect(own).toEqual([
        `${name} in use v${before}`,
        `${name} drained v${before}`,
        `${name} drained v${after}`,
        `${name} in use v${after}`,
      ]);
    }
    expect(requests).toEqual([
      "PUT virtualMachines/cp-1/extensions/bootstrap",
      "PUT virtualMachines/workers-1/extensions/bootstrap",
      "PUT virtualMachines/workers-2/extensions/bootstrap",
    ]);
    const nodes = await cloud.get<{
      spec: { unschedulable?: boolean };
      status: { nodeInfo: { kubeletVersion: string } };
    }>("nodes");
    expect(nodes.map(({ status }) => status.nodeInfo.kubeletVersion)).toEqual(
      Array(3).fill(`v${versions.kubernetes}`),
    );
    expect(nodes.some(({ spec }) => spec.unschedulable)).toBe(false);
    expect(await etcdImage()).toBe(`registry.k8s.io/etcd:${versions.etcd}`);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("gives living machines another flag of the API server", async () => {
    const kubeadm = { apiServerExtraArgs: { "event-ttl": "2h" } };

    const requests = await change({ ...settings, kubernetesVersion: versions.kubernetes, kubeadm });
    expect(requests).toContain("PUT virtualMachines/cp-1/extensions/bootstrap");
    const pods = await cloud.get<{ spec: { containers: { command: string[] }[] } }>(
      ...["pods", "--namespace", "kube-system", "-l", "component=kube-apiserver"],
    );
    expect(pods[0]?.spec.containers[0]?.command).toContain("--event-ttl=2h");
  });

  it("makes a worker anew whose join token has expired, when the message of --replace is followed", async () => {
    await cloud.kubectl(
      ...["delete", "secrets", "--namespace", "kube-system"],
      ...["--field-selector", "type=bootstrap.kubernetes.io/token"],
    );
    const { deployment } = (await cloud.stack.stackExport()) as {
      deployment: { resources: { urn: string }[] };
    };
    const { urn } = deployment.resources.find((one) =>
      one.urn.endsWith("::zoned-dev-workers-1-vm"),
    )!;

    const said = refused(await cloud.stack.up("--replace", urn));
    expect(said).toMatch(/the API does not know the join token of zoned-dev-workers-1/);

    asPlanned(await cloud.stack.up());
    expect(await cloud.get("nodes")).toHaveLength(3);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("changes the key of Secrets in three updates, each of which says what comes next, and then does nothing", async () => {
    const kubeadm = { apiServerExtraArgs: { "event-ttl": "2h" } };
    const settings = { workerPools: [{ ...pool, taints }], egress: "zonal", kubeadm };
    const prefixes = async () => [
      ...new Set((await cloud.stored("/registry/secrets/")).map((value) => value.slice(0, 26))),
    ];
    await cloud.kubectl("create", "secret", "generic", "mine", "--from-literal=password=hush");
    expect(await prefixes()).toEqual(["k8s:enc:secretbox:v1:key1:"]);
    await cloud.stack.configure({
      ...small,
      ...settings,
      kubernetesVersion: versions.kubernetes,
      encryptionKeyGeneration: 2,
    });

    for (const [says, key] of [
      [/makes every API server read key 2\. Run pulumi up again/, 1],
      [/encrypts all Secrets with key 2, old ones too\. Run pulumi up again/, 2],
      [/takes key 1 from the API servers$/m, 2],
    ] as const) {
      const before = (await cloud.requests()).length;
      const run = asPlanned(await cloud.stack.up());
      expect(run.stdout).toMatch(says);
      const asked = writes((await cloud.requests()).slice(before));
      expect(asked.filter((request) => /virtualMachines/.test(request))).toEqual([
        "PUT virtualMachines/cp-1/extensions/bootstrap",
      ]);
      expect(await prefixes()).toEqual([`k8s:enc:secretbox:v1:key${key}:`]);
    }
    unchanged(await cloud.stack.up("--skip-preview"));
    const data = await cloud.kubectl("get", "secret", "mine", "-o", "jsonpath={.data.password}");
    expect(Buffer.from(data, "base64").toString()).toBe("hush");
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    ["an older Kubernetes", older, /cannot go back to an older version/],
    [
      "one that this release does not know",
      { kubernetesVersion: "1.38.0" },
      /a published version 1\.37\.z or 1\.36\.z/,
    ],
    [
      "another region, name and pod network",
      { location: "westeurope", clusterName: "other", podCidr: "10.9.0.0/16", cni: "none" },
      /location is westeurope, and this stack's[^]*clusterName is other, and this stack's[^]*podCidr[^]*cni is none/,
    ],
    [
      "another name of a pool, whose machines would need the addresses of those that go",
      { workerPools: [{ ...pool, name: "others" }] },
      /zoned-dev-others-1 would get 172\.16\.\d\.16, which zoned-dev-workers-1 has/,
    ],
  ])("refuses %s and asks Azure for nothing", async (_, settings, says) => {
    const before = (await cloud.requests()).length;
    await cloud.stack.configure({
      ...small,
      kubernetesVersion: versions.kubernetes,
      encryptionKeyGeneration: 2,
      ...settings,
    });

    expect(refused(await cloud.stack.up())).toMatch(says);
    expect(writes((await cloud.requests()).slice(before))).toEqual([]);
  });
});
