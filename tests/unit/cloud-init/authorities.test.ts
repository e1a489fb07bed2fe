import type { ChildProcess } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { stringify } from "yaml";

import { nextKeys, only, signingFile } from "../../../components/kubeadm/rotations";
import { Api, ApiUser, kubeconfigOf } from "../../../tools/local-azure/machines/simulated/api";
import {
  apiIsReady,
  apiServerFlags,
  ended,
  quickAlgorithm,
  spawned,
} from "../../support/api-server";
import { FakeMachine, realKubeadm } from "../../support/fake-machine";
import { freePort } from "../../support/listen";
import {
  Fixture,
  newFixture,
  trusting,
} from "../../../tools/local-azure/tests/support/simulated/fixture";
import { built, output } from "../../support/tools";
import { asRoot, describeUnless } from "../../support/unless";

const apiName = "demo.westeurope.cloudapp.azure.com";
const name = "demo-cp-1";
/** No longer one follows from any settings. */
const workerName = `${"d".repeat(40)}-${"w".repeat(16)}-10000`;
const rbac = "rbac.authorization.k8s.io";

/** What kubeadm binds for kubelets when it initializes. */
const kubeletsRenew = {
  apiVersion: `${rbac}/v1`,
  kind: "ClusterRoleBinding",
  metadata: { name: "kubeadm:node-autoapprove-certificate-rotation" },
  roleRef: {
    apiGroup: rbac,
    kind: "ClusterRole",
    name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
  },
  subjects: [{ apiGroup: rbac, kind: "Group", name: "system:nodes" }],
};

const deployment = (namespace: string) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "it", namespace },
  spec: {
    selector: { matchLabels: { app: "it" } },
    template: {
      metadata: { labels: { app: "it" } },
      spec: { containers: [{ name: "it", image: "it" }] },
    },
  },
});

const conf = "/etc/kubernetes/admin.conf";
const kubeletPem = "/var/lib/kubelet/pki/kubelet-client-current.pem";

const configMaps = "/api/v1/namespaces/kube-system/configmaps";

/** The certificates of a file. */
const certificatesIn = (file: string) =>
  file
    .split(/(?<=-----END CERTIFICATE-----)\s*/)
    .filter((text) => text !== "")
    .map((text) => new X509Certificate(text).fingerprint256)
    .sort();

/** What the first of the CAs in a file has signed. */
const isOf = (fixture: Fixture, certificate: string) =>
  new X509Certificate(certificate).verify(new X509Certificate(fixture.pki["ca.crt"]!).publicKey);

describeUnless(asRoot)("the real API server, controller manager, etcd and kubeadm", () => {
  const machine = new FakeMachine({
    kubeadm: realKubeadm(),
    kubectl: `exec ${built("kubectl")} "$@"`,
  });
  const worker = new FakeMachine({});
  const running = new Map<string, ChildProcess>();
  const ports = { api: 0, etcd: 0, peer: 0, manager: 0 };
  let born: Fixture;
  let later: Fixture;

  const pki = (file: string) => join(machine.root, "etc/kubernetes/pki", file);

  const start = async (program: string, flags: Readonly<Record<string, string>>) => {
    await ended(running.get(program));
    running.set(program, spawned(program, flags, join(machine.root, `${program}.log`)));
  };

  const startEtcd = () =>
    start("etcd", {
      "data-dir": join(machine.root, "data"),
      "listen-client-urls": `https://127.0.0.1:${ports.etcd}`,
      "advertise-client-urls": `https://127.0.0.1:${ports.etcd}`,
      "listen-peer-urls": `http://127.0.0.1:${ports.peer}`,
      "client-cert-auth": "true",
      "trusted-ca-file": pki("etcd/ca.crt"),
      "cert-file": pki("etcd/server.crt"),
      "key-file": pki("etcd/server.key"),
      "unsafe-no-fsync": "true",
    });

  const startApi = async () => {
    const etcd = `https://127.0.0.1:${ports.etcd}`;
    await start("kube-apiserver", {
      ...apiServerFlags(etcd, ports.api, join(machine.root, "etc/kubernetes/pki")),
      "etcd-cafile": pki("etcd/ca.crt"),
      "etcd-certfile": pki("apiserver-etcd-client.crt"),
      "etcd-keyfile": pki("apiserver-etcd-client.key"),
      "authorization-mode": "Node,RBAC",
      "requestheader-client-ca-file": pki("front-proxy-ca.crt"),
      "proxy-client-cert-file": pki("front-proxy-client.crt"),
      "proxy-client-key-file": pki("front-proxy-client.key"),
      "kubelet-certificate-authority": pki("ca.crt"),
    });
    await untilReady();
  };

  const startManager = () =>
    start("kube-controller-manager", {
      kubeconfig: join(machine.root, "etc/kubernetes/admin.conf"),
      "leader-elect": "false",
      "bind-address": "127.0.0.1",
      "secure-port": `${ports.manager}`,
      controllers:
        "certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller,root-ca-certificate-publisher-controller",
      "root-ca-file": pki("ca.crt"),
      "cluster-signing-cert-file": machine.root + signingFile,
      "cluster-signing-key-file": pki("ca.key"),
    });

  const admin = () => kubeconfigOf(machine.read(conf));
  const apiFor = (ca: string, user: ApiUser) =>
    new Api({ host: "127.0.0.1", port: ports.api, serverName: apiName, ca }, user);
  const api = () => apiFor(admin().ca, admin().user);

  const untilReady = () =>
    apiIsReady(
      running.get("kube-apiserver")!,
      () => api().isReady(),
      join(machine.root, "kube-apiserver.log"),
    );

  /** Whether the API server trusts a user, and is trusted by those who know this CA. */
  const isAdmitted = (ca: string, user: ApiUser): Promise<boolean> =>
    apiFor(ca, user)
      .get("/api/v1/namespaces")
      .then(
        () => true,
        () => false,
      );

  const succeeds = async (on: FakeMachine, ...what: string[]) => {
    const { code, stdout, stderr } = await on.run("/script.sh", what);
    expect(code === 0 ? "" : `${what[0]}: ${stdout}${stderr}`).toBe("");
  };

  /** Gives both machines the script with these CAs. */
  function ship({ pki: files }: Fixture): void {
    const payload = {
      modules: [],
      files: Object.entries(files).map(([file, content]) => ({
        path: `/etc/kubernetes/pki/${file}`,
        mode: "0600",
        content,
      })),
    };
    machine.ship("bootstrap.sh", "/script.sh", `${JSON.stringify(payload)}\n`);
    worker.ship("bootstrap.sh", "/script.sh", "{}\n");
    const data = Buffer.from(files["ca.crt"]!).toString("base64");
    worker.write(
      "/etc/zoned/discovery.conf",
      JSON.stringify({ clusters: [{ cluster: { "certificate-authority-data": data } }] }),
    );
    const variables = (own: string, role: string) =>
      `machine=${own}\nrole=${role}\napi_name=${apiName}\napi_port=${ports.api}\n`;
    machine.write("/run/zoned/variables", variables(name, "control-plane"));
    worker.write("/run/zoned/variables", variables(workerName, "worker"));
  }

  const kubeadmRuns = async (...words: string[]) => {
    const { code, stderr } = await machine.run("/programs/kubeadm", words);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  };

  /** A user whose certificate these CAs sign. */
  async function userOf(fixture: Fixture, user: string, group: string): Promise<ApiUser> {
    const signer = new FakeMachine({ kubeadm: realKubeadm() });
    for (const [file, text] of Object.entries(fixture.pki))
      signer.write(`/etc/kubernetes/pki/${file}`, text);
    signer.write("/etc/kubernetes/init.yaml", machine.read("/etc/kubernetes/init.yaml"));
    const { stdout } = await signer.run("/programs/kubeadm", [
      ...["kubeconfig", "user", "--config", "/etc/kubernetes/init.yaml"],
      ...["--client-name", user, "--org", group],
    ]);
    return kubeconfigOf(stdout).user;
  }

  beforeAll(async () => {
    [born, later] = [await newFixture(apiName), await newFixture(apiName)];
    for (const port of ["api", "etcd", "peer", "manager"] as const) ports[port] = await freePort();
    worker.program("sleep", "exec /bin/sleep 0.5");
    worker.program("curl", `exec /usr/bin/curl --resolve ${apiName}:${ports.api}:127.0.0.1 "$@"`);
    machine.write(
      "/etc/kubernetes/init.yaml",
      stringify({
        apiVersion: "kubeadm.k8s.io/v1beta4",
        kind: "ClusterConfiguration",
        kubernetesVersion: "v1.36.3",
        controlPlaneEndpoint: `${apiName}:${ports.api}`,
        encryptionAlgorithm: quickAlgorithm,
        apiServer: { certSANs: [apiName, "127.0.0.1"] },
      }),
    );
    machine.write("/etc/zoned/kubeadm-init.yaml", machine.read("/etc/kubernetes/init.yaml"));
    for (const [file, text] of Object.entries(born.pki))
      machine.write(`/etc/kubernetes/pki/${file}`, text);
    machine.write(signingFile, born.pki["ca.crt"]!);
    for (const one of [machine, worker])
      mkdirSync(join(one.root, "var/lib/kubelet/pki"), { recursive: true });
    mkdirSync(join(worker.root, "etc/kubernetes/pki"), { recursive: true });
    const config = ["--config", "/etc/kubernetes/init.yaml"];
    for (const what of [
      ...["apiserver", "apiserver-kubelet-client", "front-proxy-client"],
      ...["etcd-server", "etcd-peer", "etcd-healthcheck-client", "apiserver-etcd-client"],
    ])
      await kubeadmRuns("init", "phase", "certs", what, ...config);
    for (const what of ["admin", "super-admin", "controller-manager", "scheduler"])
      await kubeadmRuns("init", "phase", "kubeconfig", what, ...config);
    leadHere();
    await startEtcd();
    await startApi();
    await startManager();
    await api().post(`/apis/${rbac}/v1/clusterrolebindings`, kubeletsRenew);
    await api().post("/api/v1/namespaces/kube-public/configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "cluster-info", namespace: "kube-public" },
      data: {
        kubeconfig: "clusters:\n- cluster:\n    certificate-authority-data: b2xk\n    server: x\n",
      },
    });
    for (const namespace of ["kube-system", "default"])
      await api().post(`/apis/apps/v1/namespaces/${namespace}/deployments`, deployment(namespace));
  });

  /** admin.conf leads to this machine's own API server, as its name does on a control plane. */
  const leadHere = () =>
    machine.write(
      conf,
      machine
        .read("/etc/kubernetes/super-admin.conf")
        .replace(/server: .*/, `server: https://127.0.0.1:${ports.api}`),
    );

  it("admit whom the old CA signed until the last stage, whom the new one signed from the first, and nobody is left without the API", async () => {
    const users = {
      old: await userOf(born, "operator", "system:masters"),
      new: await userOf(later, "operator", "system:masters"),
    };
    const seen: object[] = [];
    const look = async (stage: string) => {
      const both = `${born.pki["ca.crt"]}\n${later.pki["ca.crt"]}`;
      const [oldUser, newUser, oldCa, newCa] = [
        await isAdmitted(both, users.old),
        await isAdmitted(both, users.new),
        await isAdmitted(born.pki["ca.crt"]!, admin().user),
        await isAdmitted(later.pki["ca.crt"]!, admin().user),
      ];
      seen.push({ stage, oldUser, newUser, oldCa, newCa });
    };
    await look("made");

    // The worker's kubelet joined with a certificate of the old CA.
    const joined = await userOf(born, `system:node:${workerName}`, "system:nodes");
    worker.write(kubeletPem, `${joined.cert}${joined.key}`);
    worker.write("/etc/kubernetes/pki/ca.crt", born.pki["ca.crt"]!);
    worker.write("/etc/kubernetes/kubelet.conf", "    certificate-authority-data: b2xk\n");
    machine.write(kubeletPem, `${joined.cert}${joined.key}`);

    let keys = only(1);
    for (const stage of ["trust", "sign", "drop"]) {
      keys = nextKeys(keys, 2);
      const [first, other] = keys.keys.map((number) => (number === 1 ? born : later));
      const fixture = trusting(first!, other ?? first!, born);
      const files = other ? fixture : { ...fixture, pki: { ...fixture.pki, ...onlyOf(first!) } };
      ship(files);

      await succeeds(machine, "take_authorities");
      // What runs goes on with what it has, and kubeadm asks it.
      expect(await api().isReady()).toBe(true);
      await kubeadmRuns("certs", "renew", "all", "--config", "/etc/kubernetes/init.yaml");
      leadHere();
      await startEtcd();
      // The API server of the stage before, by etcd of this one.
      await untilReady();
      await startApi();
      await startManager();
      await succeeds(machine, "trust_authorities", join(machine.root, conf));
      await succeeds(machine, "renew_kubelet_certificate");
      await succeeds(worker, "take_authorities");
      await succeeds(worker, "renew_kubelet_certificate");
      await look(stage);

      for (const one of [machine, worker]) {
        expect(isOf(first!, one.read(kubeletPem))).toBe(true);
        expect(one.read("/etc/kubernetes/pki/ca.crt")).toBe(files.pki["ca.crt"]);
      }
      expect(kubeconfigOf(machine.read(conf)).ca).toBe(files.pki["ca.crt"]);
      // The controller manager gives pods what it trusts.
      const published = () => machine.run("/script.sh", ["authorities_are_published"]);
      for (let tries = 0; tries < 30 && (await published()).code !== 0; tries++) await wait(1000);
      await succeeds(machine, "authorities_are_published");
      await succeeds(machine, "publish_authorities");
      const info = await api().get("/api/v1/namespaces/kube-public/configmaps/cluster-info");
      const data = Buffer.from(files.pki["ca.crt"]!).toString("base64");
      expect(info.data.kubeconfig).toBe(
        `clusters:\n- cluster:\n    certificate-authority-data: ${data}\n    server: x\n`,
      );
      // The API server adds its own there, and takes none away.
      await succeeds(machine, "publish_client_authorities");
      const asked = await api().get(`${configMaps}/extension-apiserver-authentication`);
      for (const [key, file] of [
        ["client-ca-file", "ca.crt"],
        ["requestheader-client-ca-file", "front-proxy-ca.crt"],
      ] as const)
        expect(certificatesIn(asked.data[key])).toEqual(certificatesIn(files.pki[file]!));
    }

    expect(seen).toEqual([
      { stage: "made", oldUser: true, newUser: false, oldCa: true, newCa: false },
      { stage: "trust", oldUser: true, newUser: true, oldCa: true, newCa: false },
      { stage: "sign", oldUser: true, newUser: true, oldCa: false, newCa: true },
      { stage: "drop", oldUser: false, newUser: true, oldCa: false, newCa: true },
    ]);
  });

  it("let the script restart what runs in the namespaces kube-*, and nothing else", async () => {
    const restarted = async (namespace: string) => {
      const { spec } = await api().get(`/apis/apps/v1/namespaces/${namespace}/deployments/it`);
      return spec.template.metadata.annotations?.["kubectl.kubernetes.io/restartedAt"];
    };

    await succeeds(machine, "restart_pods");

    expect(await restarted("kube-system")).toMatch(/^20/);
    expect(await restarted("default")).toBeUndefined();
  });

  it("have the script give up the member of a machine that joins again, and no other, and none where it never joined", async () => {
    const ask = (verb: string, data: object) => {
      const said = output("curl", [
        ...["--silent", "--max-time", "10", "--cacert", pki("etcd/ca.crt")],
        ...["--cert", pki("etcd/healthcheck-client.crt")],
        ...["--key", pki("etcd/healthcheck-client.key"), "--data", JSON.stringify(data)],
        `https://127.0.0.1:${ports.etcd}/v3/cluster/member/${verb}`,
      ]);
      return JSON.parse(said) as { members: { peerURLs: string[] }[] };
    };
    machine.write("/run/zoned/variables", "machine=demo-cp-2\naddress=172.16.2.4\n");
    machine.write("/run/zoned/etcd-endpoints", `https://127.0.0.1:${ports.etcd}\n`);
    const before = ask("list", {}).members;
    ask("add", { peerURLs: ["https://172.16.2.4:2380"], isLearner: true });
    expect(ask("list", {}).members).toHaveLength(2);

    for (const _ of ["has joined", "never joined"]) {
      await succeeds(machine, "forget_member");
      expect(ask("list", {}).members).toEqual(before);
    }
  });

  const onlyOf = ({ pki: files }: Fixture) =>
    Object.fromEntries(
      ["ca.crt", "front-proxy-ca.crt", "etcd/ca.crt"].map((file) => [file, files[file]!]),
    );
});
