import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { parse, parseAllDocuments, stringify } from "yaml";

import { kubeadmFiles, type KubeadmMachine } from "../../../components/kubeadm/kubeadm";
import { machine as controlPlane, specOf, validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import { built, output } from "../../support/tools";

const worker: KubeadmMachine = { ...controlPlane, name: "zoned-test-workers-1", role: "worker" };

/** Files as the real kubeadm writes them for a kubelet, by their names, and what it said. */
function startKubelet(
  machine: KubeadmMachine,
  holdsKey: boolean,
  patches: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const folder = testFolder();
  const [pki, config, dry] = [join(folder, "pki"), join(folder, "it.yaml"), join(folder, "dry")];
  const path = "/etc/zoned/kubeadm-kubelet.yaml";
  const version = `v${validSettings.kubernetesVersion}`;
  const make = ["init", "phase", "certs", "ca", "--kubernetes-version", version];
  output(built("kubeadm"), [...make, "--cert-dir", pki]);
  if (!holdsKey) rmSync(join(pki, "ca.key"));
  mkdirSync(dry);
  mkdirSync(join(folder, "patches"));
  for (const [name, text] of Object.entries(patches))
    writeFileSync(join(folder, "patches", name), text);
  const rendered = kubeadmFiles(specOf(), machine).find((file) => file.path === path);
  const documents = parseAllDocuments(rendered!.content).map(
    (document) => document.toJS() as Record<string, unknown>,
  );
  // Where the file names no folder of certificates, it is the machine's own.
  const here = documents.map((one) =>
    one["kind"] === "ClusterConfiguration" ? { certificatesDir: pki, ...one } : one,
  );
  const text = here.map((one) => stringify(one)).join("---\n");
  writeFileSync(config, text.replace("/etc/zoned/patches", join(folder, "patches")));
  const command = [built("kubeadm"), "init", "phase", "kubelet-start", "--dry-run"];
  output("env", [`KUBEADM_INIT_DRYRUN_DIR=${dry}`, ...command, "--config", config]);
  return Object.fromEntries(
    ["config.yaml", "kubeadm-flags.env"].map((name) => [
      name,
      readFileSync(join(dry, name), "utf8").replaceAll(pki, "/etc/kubernetes/pki"),
    ]),
  );
}

it("a worker's kubelet reserves what the operator's patch says, before what its bootstrap step calculates", () => {
  const calculated = '{"kubeReserved": {"cpu": "100m", "memory": "2250Mi"}}';
  const reservedOf = (patches: Record<string, string>) =>
    parse(startKubelet(worker, false, patches)["config.yaml"]!).kubeReserved;
  const ours = { "kubeletconfiguration!reserved.json": calculated };

  expect(reservedOf(ours)).toEqual({ cpu: "100m", memory: "2250Mi" });
  for (const name of ["kubeletconfiguration+merge.yaml", "kubeletconfiguration0.yaml"])
    expect(reservedOf({ ...ours, [name]: "kubeReserved: {memory: 1Gi}" })).toEqual({
      cpu: "100m",
      memory: "1Gi",
    });
});

it.each([
  ["a worker's, which has the CA without its key", worker, false],
  ["a control plane's", controlPlane, true],
])("%s kubelet is configured anew by the real kubeadm", (_, machine, holdsKey) => {
  const written = startKubelet(machine, holdsKey);

  expect(parse(written["config.yaml"]!)).toMatchObject({
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: "/etc/kubernetes/pki/ca.crt" },
    },
    rotateCertificates: true,
  });
  expect(written["kubeadm-flags.env"]).toContain(`--node-ip=${machine.address}`);
});
