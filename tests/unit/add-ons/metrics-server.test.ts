import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttps, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";

import * as pulumi from "@pulumi/pulumi";

import { MetricsServer } from "../../../components/add-ons/metrics-server";
import { Certificates } from "../../../components/certificates";
import { only } from "../../../components/kubeadm/rotations";
import {
  certRequest,
  filledInCertificates,
  firstKeys,
  locallySignedCert,
  validSettings,
} from "../../support/sample";
import { dependenciesOf, Recorder, revealed } from "../../support/record";
import {
  apiIsReady,
  apiServerFlags,
  makeCertificates,
  spawned,
  startEtcd,
} from "../../support/api-server";
import { freePort } from "../../support/listen";
import { testFolder } from "../../support/test-folder";
import { built, output, run } from "../../support/tools";
import { describeUnless } from "../../support/unless";
import { until } from "../../support/until";

async function build(change: Partial<typeof validSettings> = {}, cas = only(1)) {
  const recorder = await Recorder.start({ filledIn: filledInCertificates });
  const opts = { transformations: [recorder.watch] };
  const settings = { ...validSettings, ...change };
  const certificates = new Certificates("pki", { ...firstKeys, cas }, opts);
  const initialization = { id: "1-then" };
  new MetricsServer(
    "metrics-server",
    { settings, certificates, initialization, kubeconfig: pulumi.secret("k") },
    opts,
  );
  const find = async (type: string, name: string) =>
    (await recorder.of(type)).find((one) => one.name === name)!.inputs;
  const inputs = async (kind: string, name: string) => (await recorder.object(kind, name)).inputs;
  return { recorder, find, inputs };
}

const text = (base64: string) => Buffer.from(base64, "base64").toString();

describe("metrics-server", () => {
  it("is known to the API server by a certificate of the cluster's CA, under its Service's name", async () => {
    const { find, inputs } = await build();

    const { spec } = await inputs("APIService", "v1beta1.metrics.k8s.io");
    expect(spec.service).toEqual({ name: "metrics-server", namespace: "kube-system", port: 443 });
    expect(text(spec.caBundle)).toBe("cert pki-cluster-ca");
    expect(spec.insecureSkipTLSVerify).toBeUndefined();
    const { dnsNames } = await find(certRequest, "metrics-server-request");
    expect(dnsNames).toEqual(["metrics-server.kube-system.svc"]);
    expect(await find(locallySignedCert, "metrics-server-serving")).toMatchObject({
      certRequestPem: "request metrics-server-request",
      caCertPem: "cert pki-cluster-ca",
      allowedUses: ["digital_signature", "server_auth"],
    });
    const { data } = await inputs("Secret", "metrics-server-certificate");
    expect(text(revealed(data)["tls.crt"])).toBe("cert metrics-server-serving");
    expect(text(revealed(revealed(data)["tls.key"]))).toBe("private metrics-server-key");
  });

  it("is known to API servers by all CAs that are trusted, while the first one signs", async () => {
    const { find, inputs } = await build({}, { keys: [2, 1], rewritten: true, past: [] });

    const { spec } = await inputs("APIService", "v1beta1.metrics.k8s.io");
    expect(text(spec.caBundle)).toBe("cert pki-cluster-ca-2\ncert pki-cluster-ca");
    expect((await find(locallySignedCert, "metrics-server-serving")).caCertPem).toBe(
      "cert pki-cluster-ca-2",
    );
  });

  it("knows kubelets by the cluster's CA, at the address that is in their certificates", async () => {
    const { inputs } = await build();

    const [{ args }] = (await inputs("Deployment", "metrics-server")).spec.template.spec.containers;

    expect(args).toEqual(
      expect.arrayContaining([
        "--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
      ]),
    );
    expect(args.join()).not.toContain("insecure");
  });

  it("is registered only when it answers: an API that does not keeps namespaces from going", async () => {
    const { recorder } = await build();

    const waits = await dependenciesOf(
      await recorder.object("APIService", "v1beta1.metrics.k8s.io"),
    );

    const rollOut = await recorder.only("pulumi-nodejs:dynamic/zoned:RollOut");
    const [service, deployment] = await Promise.all(
      ["Service", "Deployment"].map((kind) => recorder.object(kind, "metrics-server")),
    );
    expect(waits).toEqual(expect.arrayContaining([service!.resource, rollOut.resource]));
    expect(rollOut.inputs.targets).toEqual([
      { kind: "Deployment", namespace: "kube-system", name: "metrics-server" },
    ]);
    expect(await dependenciesOf(rollOut)).toContain(deployment!.resource);
  });

  it("starts when it has its rights and its certificate", async () => {
    const { recorder } = await build();

    const waits = await dependenciesOf(await recorder.object("Deployment", "metrics-server"));

    const names = waits.map((one) => one.constructor.name).sort();
    expect(names).toEqual([
      "ClusterRole",
      "ClusterRoleBinding",
      "ClusterRoleBinding",
      "RoleBinding",
      "Secret",
      "ServiceAccount",
    ]);
  });

  it("lets it ask who asks, and those who may view a namespace ask it", async () => {
    const { inputs } = await build();

    const roleRef = async (kind: string, name: string) => (await inputs(kind, name)).roleRef;
    const apiGroup = "rbac.authorization.k8s.io";
    expect(await roleRef("ClusterRoleBinding", "metrics-server:system:auth-delegator")).toEqual({
      apiGroup,
      kind: "ClusterRole",
      name: "system:auth-delegator",
    });
    expect(await roleRef("RoleBinding", "metrics-server-auth-reader")).toEqual({
      apiGroup,
      kind: "Role",
      name: "extension-apiserver-authentication-reader",
    });
    expect(await roleRef("ClusterRoleBinding", "system:metrics-server")).toMatchObject({
      name: "system:metrics-server",
    });
    const reader = await inputs("ClusterRole", "system:aggregated-metrics-reader");
    expect(reader.metadata.labels).toMatchObject({
      "rbac.authorization.k8s.io/aggregate-to-view": "true",
      "rbac.authorization.k8s.io/aggregate-to-edit": "true",
      "rbac.authorization.k8s.io/aggregate-to-admin": "true",
    });
    expect(reader.rules).toEqual([
      {
        apiGroups: ["metrics.k8s.io"],
        resources: ["pods", "nodes"],
        verbs: ["get", "list", "watch"],
      },
    ]);
  });

  it("is reached at the port where it listens: by its Service, and by the probes of the kubelet", async () => {
    const { inputs } = await build();
    const { spec } = (await inputs("Deployment", "metrics-server")).spec.template;
    const [{ args, ports, livenessProbe, readinessProbe }] = spec.containers;
    const service = (await inputs("Service", "metrics-server")).spec;
    const portOf = (name: string) =>
      ports.find((port: { name: string }) => port.name === name)?.containerPort;

    const [, listens] = /--secure-port=(\d+)/.exec(args.join(" "))!;
    expect(service.ports.map(({ port, targetPort }: any) => [port, portOf(targetPort)])).toEqual([
      [443, Number(listens)],
    ]);
    expect(service.selector).toEqual(
      (await inputs("Deployment", "metrics-server")).spec.template.metadata.labels,
    );
    for (const [{ httpGet }, path] of [
      [livenessProbe, "/livez"],
      [readinessProbe, "/readyz"],
    ]) {
      expect(httpGet).toMatchObject({ path, scheme: "HTTPS" });
      expect(portOf(httpGet.port)).toBe(Number(listens));
    }
  });

  it("can read its key, which nobody but its own group can", async () => {
    const { inputs } = await build();
    const { spec } = (await inputs("Deployment", "metrics-server")).spec.template;
    const [{ args, volumeMounts }] = spec.containers;
    const [volume] = spec.volumes;

    expect(volume.secret).toEqual({
      secretName: "metrics-server-certificate",
      defaultMode: 0o440,
    });
    expect(spec.securityContext.fsGroup).toBe(spec.securityContext.runAsGroup);
    expect(volumeMounts).toEqual([
      { name: volume.name, mountPath: "/etc/metrics-server", readOnly: true },
    ]);
    expect(args).toEqual(
      expect.arrayContaining([
        "--tls-cert-file=/etc/metrics-server/tls.crt",
        "--tls-private-key-file=/etc/metrics-server/tls.key",
      ]),
    );
  });

  it.each([
    [
      "may read of the cluster what it measures, and nothing else",
      ...["ClusterRole", "system:metrics-server", "rules"],
      [
        { apiGroups: [""], resources: ["nodes/metrics"], verbs: ["get"] },
        { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] },
      ],
    ],
    [
      "cannot write into its image",
      ...["Deployment", "metrics-server", "spec.template.spec.containers.0.securityContext"],
      expect.objectContaining({ readOnlyRootFilesystem: true }),
    ],
    [
      "is not the first to be evicted",
      ...["Deployment", "metrics-server", "spec.template.spec.priorityClassName"],
      "system-cluster-critical",
    ],
    [
      "runs also where a control plane is all there is",
      ...["Deployment", "metrics-server", "spec.template.spec.tolerations"],
      expect.arrayContaining([
        expect.objectContaining({ key: "node-role.kubernetes.io/control-plane" }),
      ]),
    ],
  ] as [string, string, string, string, unknown][])("%s", async (_, kind, name, path, expected) => {
    const { inputs } = await build();

    expect(await inputs(kind, name)).toHaveProperty(path, expected);
  });

  it("has its certificate renewed by any `pulumi up` of the year before it ends", async () => {
    const { find } = await build();

    const signed = await find(locallySignedCert, "metrics-server-serving");
    expect([signed.validityPeriodHours / 24, signed.earlyRenewalHours / 24]).toEqual([730, 365]);
  });

  it("has a second pod in another zone where there is a second machine, and lets one go at a time", async () => {
    const { inputs } = await build();

    const { spec } = await inputs("Deployment", "metrics-server");
    expect(spec.replicas).toBe(2);
    expect(spec.template.spec.topologySpreadConstraints[0]).toMatchObject({
      topologyKey: "topology.kubernetes.io/zone",
      labelSelector: spec.selector,
    });
    expect((await inputs("PodDisruptionBudget", "metrics-server")).spec).toEqual({
      maxUnavailable: 1,
      selector: spec.selector,
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    });
    const alone = await build({ controlPlaneCount: 1, workerPools: [] });
    expect((await alone.inputs("Deployment", "metrics-server")).spec.replicas).toBe(1);
  });

  it("has one pod where other machines have taints that it does not tolerate: of two on one machine its budget lets the second never go", async () => {
    const [pool] = validSettings.workerPools;
    const dedicated = { key: "dedicated", value: "gpu", effect: "NoSchedule" as const };
    const spot = { evictionPolicy: "Delete" as const };
    const system = { key: "CriticalAddonsOnly", value: "true", effect: "NoSchedule" as const };
    const replicas = async (change: Partial<typeof pool>) => {
      const workerPools = [{ ...pool!, taints: [], count: 2, ...change }];
      const { inputs } = await build({ controlPlaneCount: 1, workerPools });
      return (await inputs("Deployment", "metrics-server")).spec.replicas;
    };

    expect(await replicas({ taints: [dedicated] })).toBe(1);
    expect(await replicas({ spot })).toBe(1);
    expect(await replicas({ taints: [system] })).toBe(2);
    expect(await replicas({})).toBe(2);
  });
});

/** Of this host, since an API server sends nobody to the loopback. */
const address = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === "IPv4" && !one.internal)?.address;

const obstacle = address === undefined ? "this host has no address but the loopback" : undefined;

/** Inputs without their marks, as they reach the API. */
function plain(input: unknown): any {
  const value = revealed(input);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
}

describeUnless(obstacle)("the real metrics-server behind the real API server", () => {
  const root = testFolder();
  const pki = join(root, "pki");
  const kubelets: Server[] = [];
  let objects: any[];

  /** As `LocallySignedCert` does it: a server's certificate, and its key. */
  const certificate = (name: string, names: string, authority = "ca") => {
    const file = (suffix: string) => join(root, `${name}.${suffix}`);
    const [key, request, extensions, signed] = ["key", "csr", "ext", "crt"].map(file);
    const newKey = ["-newkey", "rsa:2048", "-nodes"];
    output("openssl", [
      "req",
      ...newKey,
      "-keyout",
      key!,
      "-subj",
      `/CN=${name}`,
      "-out",
      request!,
    ]);
    writeFileSync(extensions!, `subjectAltName=${names}\nextendedKeyUsage=serverAuth\n`);
    const by = ["-CA", `${pki}/${authority}.crt`, "-CAkey", `${pki}/${authority}.key`];
    const rest = ["-CAcreateserial", "-days", "2", "-extfile", extensions!, "-out", signed!];
    output("openssl", ["x509", "-req", "-in", request!, ...by, ...rest]);
    return { cert: readFileSync(signed!, "utf8"), key: readFileSync(key!, "utf8") };
  };

  const kubectl = (...args: string[]) =>
    run(built("kubectl"), ["--kubeconfig", join(root, "super-admin.conf"), ...args]);

  const apply = async (object: { kind: string }) => {
    const file = join(root, "object.json");
    writeFileSync(file, JSON.stringify(object));
    const { code, stderr } = await kubectl("apply", "--server-side", "--filename", file);
    expect([object.kind, code, stderr]).toEqual([object.kind, 0, ""]);
  };

  const availability = async () => {
    const { stdout } = await kubectl("get", "apiservice", "v1beta1.metrics.k8s.io", "-o", "json");
    return JSON.parse(stdout).status?.conditions?.[0];
  };

  /** What a kubelet answers, and a Node that leads there. */
  const kubelet = async (name: string, authority: string) => {
    const pair = certificate(name, `DNS:${name},IP:${address}`, authority);
    let seconds = 1;
    const server = createHttps(pair, (_, response) => {
      const now = Date.now();
      seconds += 3;
      response.setHeader("content-type", "text/plain; version=0.0.4");
      response.end(
        `node_cpu_usage_seconds_total ${seconds} ${now}\nnode_memory_working_set_bytes 1e8 ${now}\n`,
      );
    }).listen(0, address);
    kubelets.push(server);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await apply({ apiVersion: "v1", kind: "Node", metadata: { name } } as { kind: string });
    const status = {
      addresses: [{ type: "InternalIP", address }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      allocatable: { cpu: "2", previous: "4Gi" },
      // Of one that is not, nobody is told why it cannot be asked.
      conditions: [{ type: "Ready", status: "True", reason: "Tried", message: "here" }],
    };
    const patch = ["--type=merge", "--patch", JSON.stringify({ status })];
    expect((await kubectl("patch", "node", name, "--subresource=status", ...patch)).code).toBe(0);
  };

  const startApiServer = async () => {
    const apiPort = await freePort();
    makeCertificates(root, apiPort, address, ["front-proxy-ca", "front-proxy-client"]);
    const url = await startEtcd(root);
    const log = join(root, "api.log");
    const server = spawned(
      "kube-apiserver",
      {
        ...apiServerFlags(url, apiPort, pki),
        "bind-address": "0.0.0.0",
        "advertise-address": address!,
        "authorization-mode": "Node,RBAC",
        // As kubeadm has it, whose API servers ask others in their users' names.
        "requestheader-client-ca-file": `${pki}/front-proxy-ca.crt`,
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": `${pki}/front-proxy-client.crt`,
        "proxy-client-key-file": `${pki}/front-proxy-client.key`,
        // In place of kube-proxy.
        "enable-aggregator-routing": "true",
      },
      log,
    );
    const isReady = async () => (await kubectl("get", "--raw", "/readyz")).code === 0;
    await apiIsReady(server, isReady, log);
    return apiPort;
  };

  const record = async () => {
    const serving = certificate("serving", "DNS:metrics-server.kube-system.svc");
    const recorder = await Recorder.start({
      filledIn: {
        "tls:index/privateKey:PrivateKey": { privateKeyPem: serving.key },
        "tls:index/selfSignedCert:SelfSignedCert": {
          certPem: readFileSync(`${pki}/ca.crt`, "utf8"),
        },
        "tls:index/certRequest:CertRequest": { certRequestPem: "a request" },
        "tls:index/locallySignedCert:LocallySignedCert": { certPem: serving.cert },
      },
    });
    const opts = { transformations: [recorder.watch] };
    const certificates = new Certificates("pki", firstKeys, opts);
    const initialization = { id: "1-then" };
    new MetricsServer(
      "metrics-server",
      { settings: validSettings, certificates, initialization, kubeconfig: "k" },
      opts,
    );
    return (await recorder.objects()).map(({ inputs }) => plain(inputs));
  };

  const podSpec = () => objects.find(({ kind }) => kind === "Deployment").spec.template.spec;

  beforeAll(async () => {
    const apiPort = await startApiServer();
    objects = await record();
    for (const object of objects) await apply(object);
    await kubelet("known", "ca");
    await kubelet("stranger", "front-proxy-ca");

    // The pod's part: its files, its token, and the address to which its Service leads.
    const port = await freePort();
    await apply({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: "metrics-server-1",
        namespace: "kube-system",
        labels: { "kubernetes.io/service-name": "metrics-server" },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: "https", port, protocol: "TCP" }],
    } as { kind: string });
    const account = ["metrics-server", "--namespace", "kube-system"];
    const token = (await kubectl("create", "token", ...account)).stdout.trim();
    const access = join(root, "pod.conf");
    const server = `https://${address}:${apiPort}`;
    writeFileSync(
      access,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        clusters: [{ name: "pod", cluster: { server, "certificate-authority": `${pki}/ca.crt` } }],
        users: [{ name: "pod", user: { token } }],
        contexts: [{ name: "pod", context: { cluster: "pod", user: "pod" } }],
        "current-context": "pod",
      }),
    );
    mkdirSync(join(root, "certificate"));
    const { data } = objects.find(({ kind }) => kind === "Secret");
    for (const [name, content] of Object.entries<string>(data)) {
      writeFileSync(join(root, "certificate", name), Buffer.from(content, "base64"));
    }
    const flags = podSpec().containers[0].args.map((flag: string) =>
      flag
        .replace("/etc/metrics-server", join(root, "certificate"))
        .replace("/var/run/secrets/kubernetes.io/serviceaccount", pki)
        .replace(/^--secure-port=.*/, `--secure-port=${port}`),
    );
    const inCluster = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
    const all = [...flags, ...inCluster.map((flag) => `--${flag}=${access}`)];
    const named = Object.fromEntries(
      all.map((flag): [string, string] => {
        const [flagName = "", value = "true"] = flag.slice(2).split("=", 2);
        return [flagName, value];
      }),
    );
    spawned("metrics-server", named, join(root, "metrics.log"));
    await until("the API of metrics-server", async () => (await availability())?.status === "True");
  });

  afterAll(() => {
    for (const one of kubelets) one.close().closeAllConnections();
  });

  it("answers kubectl top for a kubelet whose certificate is of the cluster's CA, and no other", async () => {
    const said = await until("a measured node", async () => {
      const { code, stdout } = await kubectl("top", "nodes", "--no-headers");
      return code === 0 && /^known /m.test(stdout) && stdout;
    });

    expect(said).toMatch(/^known +\d+m +\d+% +\d+Mi/m);
    expect(said).not.toMatch(/^stranger +\d/m);
    expect(readFileSync(join(root, "metrics.log"), "utf8")).toMatch(
      /certificate signed by unknown authority.*node="stranger"/,
    );
  });

  it("is not asked by an API server that has another CA for it", async () => {
    const other = readFileSync(`${pki}/front-proxy-ca.crt`).toString("base64");
    const service = objects.find(({ kind }) => kind === "APIService");
    await apply({ ...service, spec: { ...service.spec, caBundle: other } });

    const refused = await until("a refusal", async () => {
      const found = await availability();
      return found?.status === "False" && found;
    });
    expect(refused.message).toContain("certificate signed by unknown authority");
    await apply(service);
  });

  it("is admitted in a namespace of Pod Security's level restricted", async () => {
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "strict", labels } };
    await apply(namespace);
    await apply({
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "metrics-server", namespace: "strict" },
    } as { kind: string });

    const { priorityClassName: _, ...spec } = podSpec();
    await apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "metrics-server", namespace: "strict" },
      spec,
    } as { kind: string });
  });
});
