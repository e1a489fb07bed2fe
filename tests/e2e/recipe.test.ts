import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { bareProgram } from "../../tools/lab/bench/previews";
import { stateOf } from "../../tools/lab/bench/local-stack";
import {
  asPlanned,
  hasManifests,
  LocalCloud,
  refused,
  unchanged,
  succeeded,
} from "../../tools/lab/local-cloud";

interface Node {
  metadata: { name: string; labels: Record<string, string> };
  spec: { providerID: string; taints?: unknown[] };
  status: { conditions: { type: string; status: string }[] };
}
interface Pod {
  metadata: { name: string; labels: Record<string, string> };
  spec: { nodeName: string };
}
interface ProxyPod {
  spec: { nodeName: string; volumes: { name: string; configMap?: { name: string } }[] };
}
interface AuditEvent {
  verb: string;
  objectRef?: { resource: string; name?: string };
  user: { username: string };
}
interface StorageClass {
  metadata: { name: string; annotations?: Record<string, string> };
  provisioner: string;
}

/** One life of the recipe's own cluster; each test goes on where the one before it ended. */
describe("the recipe's cluster on the local Azure", () => {
  let cloud: LocalCloud;
  beforeAll(async () => {
    cloud = await LocalCloud.start(
      "local",
      hasManifests ? {} : { cni: "flannel", diskDriver: false },
    );
  });
  afterAll(() => cloud?.stop());

  it("is previewed before anything exists, without a warning", async () => {
    const { diagnostics } = succeeded(await cloud.stack.preview());

    expect(diagnostics).toEqual([]);
  });

  it("comes up whole by one command", async () => {
    asPlanned(await cloud.stack.up());
  });

  it("has three nodes in three zones, all Ready, none of them closed to pods", async () => {
    const nodes = await cloud.get<Node>("nodes");

    expect(
      Object.fromEntries(
        nodes.map(({ metadata }) => [
          metadata.name,
          metadata.labels["topology.kubernetes.io/zone"],
        ]),
      ),
    ).toEqual({
      "zoned-local-cp-1": "southeastasia-1",
      "zoned-local-workers-1": "southeastasia-2",
      "zoned-local-workers-2": "southeastasia-3",
    });
    for (const { spec, status } of nodes) {
      expect(status.conditions).toContainEqual(
        expect.objectContaining({ type: "Ready", status: "True" }),
      );
      expect(spec.taints ?? []).toEqual([]);
      expect(spec.providerID).toMatch(
        /^azure:\/\/\/subscriptions\/.*\/virtualMachines\/zoned-local-/,
      );
    }
  });

  it("has resources that a program can register alone, as npm run bench does", async () => {
    const program = bareProgram(await stateOf(cloud.stack), join(cloud.state, "resources.json"));
    const bare = await cloud.other(program);

    succeeded(await bare.preview());
  });

  it("changes nothing the second time", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("is healthy by npm run doctor, and not while a member is unhealthy, as npm run picture draws it", async () => {
    const { code, stdout } = await cloud.doctor("--wait", "2m");
    expect(stdout.match(/^[✗-].*/gm)).toEqual([
      ...(hasManifests ? [] : [expect.stringMatching(/^- zones for disks: not asked, /)]),
      "- etcd snapshots: not asked, etcdBackups is not set",
    ]);
    expect(stdout).toMatch(/^✓ etcd takes writes.*^stack local: healthy$/ms);
    expect(code).toBe(0);

    await cloud.injectFailure("cp-1", "kube-scheduler");
    const unhealthy = await cloud.doctor("--json");
    const picture = await cloud.picture();
    await cloud.clearFailures("cp-1");

    const { checks, zones } = JSON.parse(unhealthy.stdout);
    const failed = checks.filter((check: { passed: boolean | null }) => check.passed === false);
    expect(failed).toEqual([
      expect.objectContaining({
        name: "control planes",
        problems: [
          expect.objectContaining({
            machine: "zoned-local-cp-1",
            saw: expect.stringContaining("its kube-scheduler is not ready"),
          }),
        ],
      }),
    ]);
    expect(zones["southeastasia-1"]).toEqual([
      { name: "zoned-local-cp-1", role: "control-plane", passed: false },
    ]);
    expect(unhealthy.code).toBe(1);
    expect(picture).toMatch(/>Ready, not healthy<.*>zoned-local-workers-2</s);
    expect(picture).toContain(">✗ its kube-scheduler is not ready");
    expect(await cloud.doctor("--wait", "2m")).toMatchObject({ code: 0 });
  });

  it("has a class of disks for every zone, and one default", async () => {
    const classes = await cloud.get<StorageClass>("storageclasses");

    const isDefault = ({ metadata }: StorageClass) =>
      metadata.annotations?.["storageclass.kubernetes.io/is-default-class"] === "true";
    expect(classes.filter(isDefault)).toHaveLength(1);
    for (const zone of ["1", "2", "3"]) {
      expect(classes.map(({ metadata }) => metadata.name)).toContainEqual(
        expect.stringMatching(new RegExp(`${zone}$`)),
      );
    }
    expect(new Set(classes.map(({ provisioner }) => provisioner))).toEqual(
      new Set(["disk.csi.azure.com"]),
    );
  });

  it("runs the pod network on every node", async () => {
    const app = hasManifests ? "canal" : "flannel";
    const pods = await cloud.get<Pod>("pods", "--all-namespaces");

    const where = pods
      .filter(({ metadata }) => Object.values(metadata.labels).includes(app))
      .map(({ spec }) => spec.nodeName);
    expect(where.sort()).toEqual([
      "zoned-local-cp-1",
      "zoned-local-workers-1",
      "zoned-local-workers-2",
    ]);
  });

  it("answers probes without a credential, and nothing else", async () => {
    for (const probe of ["/readyz", "/livez", "/healthz"]) {
      expect(await cloud.anonymously(probe)).toBe(200);
    }
    for (const path of ["/version", "/api", "/api/v1/namespaces/kube-public/configmaps"]) {
      expect(await cloud.anonymously(path)).toBe(401);
    }
  });

  it("speaks TLS 1.2 to the balancer's probe, and no suite without authenticated encryption", async () => {
    const probe = (ciphers: string) =>
      cloud.anonymously("/readyz", { maxVersion: "TLSv1.2", ciphers });

    expect(await probe("ECDHE-RSA-AES128-GCM-SHA256")).toBe(200);
    await expect(probe("ECDHE-RSA-AES128-SHA")).rejects.toThrow(/handshake failure/);
  });

  it("takes a pod that owns its host in kube-system alone", async () => {
    const pod = (namespace: string) => {
      const container = { name: "it", image: "it", securityContext: { privileged: true } };
      const file = join(cloud.state, "pod.json");
      const spec = { hostNetwork: true, containers: [container] };
      const metadata = { name: "owner", namespace };
      writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
      return cloud.kubectl("create", "--dry-run=server", "--filename", file);
    };

    expect(await pod("kube-system")).toContain("created");
    await expect(pod("default")).rejects.toThrow(/violates PodSecurity "baseline/);
  });

  it("writes who made a Secret into its audit log, and no word of what is in it", async () => {
    const secret = "pass-word-of-a-test";
    await cloud.kubectl("create", "secret", "generic", "audited", `--from-literal=it=${secret}`);

    const log = globSync(join(cloud.state, "**/audit/audit.log")).map((file) =>
      readFileSync(file, "utf8"),
    );
    expect(log).toHaveLength(1);
    const events = log[0]!
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as AuditEvent);
    expect(events).toContainEqual(
      expect.objectContaining({
        verb: "create",
        objectRef: expect.objectContaining({ resource: "secrets", name: "audited" }),
        user: expect.objectContaining({ username: "kubernetes-admin" }),
      }),
    );
    expect(log[0]).not.toContain(secret);
    expect(log[0]).not.toContain(Buffer.from(secret).toString("base64"));
    await cloud.kubectl("delete", "secret", "audited");
  });

  it("spreads a Deployment of three over the three zones", async () => {
    await cloud.kubectl("create", "deployment", "spread", "--image=none", "--replicas=3");
    await cloud.kubectl("rollout", "status", "deployment/spread", "--timeout=120s");
    const pods = await cloud.get<Pod>("pods", "--selector", "app=spread");

    expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(3);
    await cloud.kubectl("delete", "deployment", "spread");
  });

  it("changes nothing after a refresh", async () => {
    succeeded(await cloud.stack.refresh());
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("changes kube-proxy's mode on every node and replaces no machine", async () => {
    const before = (await cloud.requests()).length;
    await cloud.stack.configure({
      ...(hasManifests ? {} : { cni: "flannel", diskDriver: false }),
      proxyMode: "nftables",
    });

    asPlanned(await cloud.stack.up());

    const later = (await cloud.requests()).slice(before).filter(({ method }) => method !== "GET");
    expect(later.filter(({ method }) => method === "DELETE")).toEqual([]);
    expect(new Set(later.map(({ type }) => type.split("/").at(-1)))).toEqual(
      new Set(["extensions"]),
    );
    const pods = await cloud.get<ProxyPod>("pods", "-n", "kube-system", "-l", "k8s-app=kube-proxy");
    expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(3);
    const mounted = pods.map(
      ({ spec }) => spec.volumes.find(({ name }) => name === "kube-proxy")!.configMap!.name,
    );
    expect(new Set(mounted).size).toBe(1);
    for (const name of [mounted[0]!, "kube-proxy"]) {
      const config = await cloud.kubectl(
        "get",
        "configmap",
        name,
        "-n",
        "kube-system",
        "-o",
        "yaml",
      );
      expect(config).toContain("mode: nftables");
    }
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("shows no key, token or kubeconfig in its exported state", async () => {
    const outputs = (await cloud.stack.outputs()) as { kubeconfig: string };
    const exported = JSON.stringify(await cloud.stack.stackExport());

    expect(exported).not.toMatch(/PRIVATE KEY/);
    expect(exported).not.toContain("client-key-data");
    expect(exported).not.toContain('token-secret":"');
    const key = (JSON.parse(outputs.kubeconfig) as { users: { user: Record<string, string> }[] })
      .users[0]!.user["client-key-data"]!;
    expect(exported).not.toContain(key);
    expect(exported).not.toContain(Buffer.from(key, "base64").toString().split("\n")[1]);
  });

  it("refuses to replace its only control plane machine", async () => {
    const before = (await cloud.requests()).length;
    await cloud.stack.configure({
      ...(hasManifests ? {} : { cni: "flannel", diskDriver: false }),
      imageVersion: "24.04.202608110",
    });

    expect(refused(await cloud.stack.up())).toMatch(
      /zoned-local-cp-1 is the only control plane machine .* pulumi config set reinitialize 1-\d{8}T\d{6}Z, then pulumi up/s,
    );

    const later = (await cloud.requests()).slice(before);
    expect(later.filter(({ method }) => method !== "GET")).toEqual([]);
  });

  it("leaves nothing behind when it is destroyed", async () => {
    await cloud.stack.configure(hasManifests ? {} : { cni: "flannel", diskDriver: false });
    succeeded(await cloud.stack.destroy());

    expect(await cloud.isEmpty()).toBe(true);
  });

  it("says at once what cannot be had, and how to go on, before anything is created", async () => {
    await cloud.quotas({ standardBSFamily: 2 });
    await cloud.stack.configure({
      controlPlaneSize: "Standard_X9",
      imageVersion: "24.04.202001010",
    });

    const message = refused(await cloud.stack.up());

    for (const says of [
      /zoned-local-cp-1: size Standard_X9 is not offered in southeastasia.*pulumi config set controlPlaneSize/,
      /standardBSFamily.* has room for 2 more, .*needs 4 \(.*az quota update/,
      /imageVersion is "24.04.202001010".*pulumi config set imageVersion 24.04.202608110/,
    ]) {
      expect(message).toMatch(says);
    }
    expect(await cloud.isEmpty()).toBe(true);
  });

  it("says of values of a wrong type what they are, and the command for each", async () => {
    await cloud.stack.configure({
      controlPlaneCount: "three",
      diskDriver: "yes",
      apiExtraSans: "api.example",
      kubeadm: ["v=2"],
    });

    const message = refused(await cloud.stack.preview());

    expect(message).toContain('controlPlaneCount is "three", expected a number (pulumi config');
    expect(message).toContain('diskDriver is "yes", expected true or false (pulumi config');
    expect(message).toContain("config set --path 'apiExtraSans[0]' api.example");
    expect(message).toContain('kubeadm is ["v=2"], expected values by name');
  });
});
