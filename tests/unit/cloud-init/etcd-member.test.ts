import { ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { encryptionAlgorithm } from "../../../components/key-algorithm";
import { kubeadmFiles } from "../../../components/kubeadm/kubeadm";
import { machinesOf } from "../../../components/settings/topology";
import { quickAlgorithm } from "../../support/api-server";
import { FakeMachine } from "../../support/fake-machine";
import { freePort } from "../../support/listen";
import { specOf, validSettings } from "../../support/sample";
import { built, output } from "../../support/tools";

const [initialControlPlane, joiner] = machinesOf(validSettings) as [
  ReturnType<typeof machinesOf>[number],
  ReturnType<typeof machinesOf>[number],
];

/** The joiner's script beside the real etcd of its peer, with certificates of the real kubeadm. */
describe("the real etcd", () => {
  const machine = new FakeMachine({});
  const pki = join(machine.root, "etc/kubernetes/pki");
  let etcd: ChildProcess;
  let url: string;

  beforeAll(async () => {
    const init = kubeadmFiles(specOf(), initialControlPlane).find(
      ({ path }) => path === "/etc/zoned/kubeadm-init.yaml",
    )!.content;
    machine.write(
      "/init.yaml",
      init
        .replace("\nnetworking:", `\ncertificatesDir: ${pki}\nnetworking:`)
        .replace(encryptionAlgorithm, quickAlgorithm),
    );
    for (const phase of ["etcd-ca", "etcd-server", "etcd-peer", "etcd-healthcheck-client"]) {
      output(built("kubeadm"), [
        "init",
        "phase",
        "certs",
        phase,
        "--config",
        join(machine.root, "init.yaml"),
      ]);
    }

    url = `https://127.0.0.1:${await freePort()}`;
    const peerUrl = `https://127.0.0.1:${await freePort()}`;
    const flags: Record<string, string> = {
      name: initialControlPlane.name,
      "data-dir": join(machine.root, "data"),
      "listen-client-urls": url,
      "advertise-client-urls": url,
      "listen-peer-urls": peerUrl,
      "initial-advertise-peer-urls": peerUrl,
      "initial-cluster": `${initialControlPlane.name}=${peerUrl}`,
      "cert-file": `${pki}/etcd/server.crt`,
      "key-file": `${pki}/etcd/server.key`,
      "trusted-ca-file": `${pki}/etcd/ca.crt`,
      "client-cert-auth": "true",
      "peer-cert-file": `${pki}/etcd/peer.crt`,
      "peer-key-file": `${pki}/etcd/peer.key`,
      "peer-trusted-ca-file": `${pki}/etcd/ca.crt`,
      "peer-client-cert-auth": "true",
    };
    etcd = spawn(
      built("etcd"),
      Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
      { stdio: "ignore" },
    );
    const pods = {
      items: [
        { metadata: { annotations: { "kubeadm.kubernetes.io/etcd.advertise-client-urls": url } } },
      ],
    };
    machine.program("kubectl", `echo '${JSON.stringify(pods)}'`);
    machine.ship("bootstrap.sh", "/script.sh");
    machine.write("/run/zoned/variables", `machine=${joiner.name}\naddress=${joiner.address}\n`);
    for (let tries = 0; (await members()).length === 0 && tries < 100; tries++) await wait(200);
  });

  afterAll(async () => {
    const ended = new Promise((resolve) => etcd.once("exit", resolve));
    etcd.kill("SIGKILL");
    await ended;
  });

  const ask = (verb: string, data: object): any => {
    const said = output("curl", [
      ...["--silent", "--max-time", "10", "--cacert", `${pki}/etcd/ca.crt`],
      ...["--cert", `${pki}/etcd/healthcheck-client.crt`],
      ...["--key", `${pki}/etcd/healthcheck-client.key`],
      ...["--data", JSON.stringify(data), `${url}/v3/cluster/member/${verb}`],
    ]);
    return JSON.parse(said);
  };

  const members = async (): Promise<{ peerURLs: string[] }[]> => {
    try {
      return ask("list", {}).members ?? [];
    } catch {
      return [];
    }
  };

  it("gives up the member of a machine that joins again, and no other", async () => {
    ask("add", { peerURLs: [`https://${joiner.address}:2380`], isLearner: true });
    expect(await members()).toHaveLength(2);

    const outcome = await machine.run("/script.sh", ["forget_member"]);

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect((await members()).map(({ peerURLs }) => peerURLs)).toEqual([
      [expect.stringContaining("https://127.0.0.1:")],
    ]);
  });

  it("has nothing to give up where the machine never joined", async () => {
    const outcome = await machine.run("/script.sh", ["forget_member"]);

    expect(outcome.code).toBe(0);
    expect(await members()).toHaveLength(1);
  });
});
