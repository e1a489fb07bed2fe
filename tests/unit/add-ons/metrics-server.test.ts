import * as pulumi from "@pulumi/pulumi";

import { MetricsServer } from "../../../components/add-ons/metrics-server";
import { Certificates } from "../../../components/certificates";
import { only } from "../../../components/kubeadm/rotation";
import {
  certRequest,
  filledInCertificates,
  firstKeys,
  locallySignedCert,
  validSettings,
} from "../../support/sample";
import { dependenciesOf, Recorder, revealed } from "../../support/record";

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

  it("may read of the cluster what it measures, and nothing else", async () => {
    const { inputs } = await build();

    expect((await inputs("ClusterRole", "system:metrics-server")).rules).toEqual([
      { apiGroups: [""], resources: ["nodes/metrics"], verbs: ["get"] },
      { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] },
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

  it("has its certificate renewed by any `pulumi up` of the year before it ends", async () => {
    const { find } = await build();

    const { validityPeriodHours, earlyRenewalHours } = await find(
      locallySignedCert,
      "metrics-server-serving",
    );
    expect([validityPeriodHours / 24, earlyRenewalHours / 24]).toEqual([730, 365]);
  });

  it("cannot write into its image", async () => {
    const { inputs } = await build();
    const { spec } = (await inputs("Deployment", "metrics-server")).spec.template;

    expect(spec.containers[0].securityContext.readOnlyRootFilesystem).toBe(true);
  });

  it("runs also where a control plane is all there is, and is not the first to be evicted", async () => {
    const { inputs } = await build();
    const { spec } = (await inputs("Deployment", "metrics-server")).spec.template;

    expect(spec.priorityClassName).toBe("system-cluster-critical");
    expect(spec.tolerations).toContainEqual(
      expect.objectContaining({ key: "node-role.kubernetes.io/control-plane" }),
    );
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
    });
    const alone = await build({ controlPlaneCount: 1, workerPools: [] });
    expect((await alone.inputs("Deployment", "metrics-server")).spec.replicas).toBe(1);
  });
});
