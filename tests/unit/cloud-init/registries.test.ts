import { execFileSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import { registryCredentialFiles, registryHostFiles } from "../../../components/kubeadm/registries";
import { proxyFiles } from "../../../components/machine/custom-data";
import type { Payload } from "../../../components/machine/payload";
import { bootstrap, machineIn, programs, ship, worker } from "../../support/bootstrapped-machine";
import { FakeMachine, setFirstBoot, shipFirstBoot } from "../../support/fake-machine";
import { validSettings } from "../../support/sample";

describe("the program by which a kubelet logs in to Azure's registries", () => {
  const program = "azure-acr-credential-provider";
  const plugin = "/opt/zoned/credential-providers/acr-credential-provider";

  /** It says which one it is, and whom it would ask by which proxy. */
  const providerOf = (version: string) => `#!/bin/sh
echo "${version} $@ by $HTTPS_PROXY but for $NO_PROXY: $(cat)"
`;

  const ask = (machine: FakeMachine): string =>
    execFileSync(join(machine.root, plugin), ["config.json"], {
      ...{ input: "an image", encoding: "utf8" },
    });

  function machineWith(version: string, httpProxy = validSettings.httpProxy): FakeMachine {
    const machine = new FakeMachine({
      ...{ dpkg: "echo amd64", curl: "", systemctl: "" },
      python3: 'echo "$3" >>"$root/fetched"; cp "$root/archive.tar.gz" "$4"',
    });
    shipFirstBoot(machine, { CREDENTIAL_PROVIDER_VERSION: version });
    for (const { path, content } of proxyFiles({ ...validSettings, httpProxy }, "the-api")) {
      machine.write(path, content);
    }
    publish(machine, version);
    return machine;
  }

  /** What is there to be downloaded. */
  function publish(machine: FakeMachine, version: string): void {
    machine.write(`/shelf/${program}`, providerOf(version), 0o755);
    const shelf = join(machine.root, "shelf");
    execFileSync("tar", ["-czf", join(machine.root, "archive.tar.gz"), "-C", shelf, program]);
  }

  const install = (machine: FakeMachine) =>
    machine.run("/opt/zoned/first-boot.sh", ["install_credential_provider"]);

  /** Has another one wanted, and there to be downloaded. */
  function change(machine: FakeMachine, version: string): void {
    setFirstBoot(machine, { CREDENTIAL_PROVIDER_VERSION: version });
    publish(machine, version);
  }

  const programsOn = (machine: FakeMachine): string[] =>
    readdirSync(join(machine.root, "opt/zoned")).filter((name) => name.startsWith(program));

  const fetched = (machine: FakeMachine): string[] =>
    machine.has("/fetched") ? machine.read("/fetched").trim().split("\n") : [];

  it("comes from where AKS has it, and is not fetched again until it is to be another one", async () => {
    const machine = machineWith("v9.9.1");
    await install(machine);

    expect((await install(machine)).code).toBe(0);

    const from = "https://packages.aks.azure.com/cloud-provider-azure";
    expect(fetched(machine)).toEqual([
      `${from}/v9.9.1/binaries/azure-acr-credential-provider-linux-amd64-v9.9.1.tar.gz`,
    ]);

    change(machine, "v9.10.0");
    expect((await install(machine)).code).toBe(0);

    expect(fetched(machine)).toHaveLength(2);
    expect(ask(machine)).toMatch(/^v9\.10\.0 /);
    expect(programsOn(machine)).toEqual([`${program}-v9.10.0`]);
  });

  it.each(["tar", "install", "mv", "chmod"])(
    "goes on answering where its change stops at %s, and is another one when the step has run again",
    async (command) => {
      const machine = machineWith("v9.9.1");
      await install(machine);
      change(machine, "v9.10.0");
      machine.program(command, "exit 1");

      expect((await install(machine)).code).not.toBe(0);
      expect(ask(machine)).toMatch(/^v9\.9\.1 config\.json/);

      machine.removeFile(`/programs/${command}`);
      expect((await install(machine)).code).toBe(0);
      expect(ask(machine)).toMatch(/^v9\.10\.0 config\.json/);
      expect(programsOn(machine)).toEqual([`${program}-v9.10.0`]);
    },
  );

  it("goes by the proxy of now, which a kubelet itself does not, and to the metadata service without one", async () => {
    const proxy = "http://me:p%27ss@proxy.example:3128";
    const httpProxy = { http: proxy, https: proxy, noProxy: [], ca: "" };
    const machine = machineWith("v9.9.1", httpProxy);
    await install(machine);

    expect(ask(machine)).toMatch(
      /^v9\.9\.1 config\.json by http:\/\/me:p%27ss@proxy\.example:3128 /,
    );
    expect(ask(machine)).toMatch(/,169\.254\.169\.254,.*: an image\n$/);
    expect(statSync(join(machine.root, plugin)).mode & 0o777).toBe(0o755);
  });

  it("is installed by the bootstrap step before the kubelet joins", async () => {
    const machine = machineIn({}, { ...worker, tasks: ["registries"] });

    expect((await bootstrap(machine)).code).toBe(0);

    const calls = machine.calls.map((words) => words.slice(0, 2).join(" "));
    expect(calls.filter((call) => /install_credential_provider|kubeadm join/.test(call))).toEqual([
      "first-boot install_credential_provider",
      "kubeadm join",
    ]);
  });
});

describe("what a machine has of other registries", () => {
  const path = "/var/lib/kubelet/config.json";

  const pullingBy = (password: string): Payload => ({
    ...worker,
    tasks: ["registry-credentials"],
    files: [
      ...worker.files,
      ...registryCredentialFiles({
        registryCredentials: { "ghcr.io": { username: "robot", password } },
      }),
    ],
  });

  it("credentials of registries are there before the kubelet, change under it, and go with the setting", async () => {
    const machine = machineIn({}, pullingBy("first"));
    machine.program(
      "kubeadm",
      `cp "$root${path}" "$root/at-join"
${programs.kubeadm}`,
    );

    expect(await bootstrap(machine)).toMatchObject({ code: 0 });
    expect(machine.read("/at-join")).toContain("first");

    machine.forgetCalls();
    ship(machine, pullingBy("second"));
    expect(await bootstrap(machine)).toMatchObject({ code: 0 });
    expect(machine.read(path)).toContain("second");
    expect(machine.callsOf("systemctl").filter((call) => call.includes("kubelet"))).toEqual([]);

    ship(machine, worker);
    expect(await bootstrap(machine)).toMatchObject({ code: 0 });
    expect(machine.has(path)).toBe(false);
  });

  it("containerd is told to ask no mirror for their images, on a living machine too, and to ask it again without the setting", async () => {
    const registryCredentials = { "registry.example:5000/team": { username: "a", password: "b" } };
    const hosts = registryHostFiles({ mirror: "http://10.0.0.4", registryCredentials }, []);
    const machine = machineIn({}, { ...worker, files: [...worker.files, ...hosts] });
    const folder = "/etc/containerd/certs.d";
    machine.write("/var/lib/zoned/joined", "");
    machine.write(`${folder}/theirs.example/hosts.toml`, "[host]");

    await bootstrap(machine);
    expect(machine.read(`${folder}/registry.example:5000/hosts.toml`)).toBe("");

    ship(machine, worker);
    await bootstrap(machine);
    expect(machine.has(`${folder}/registry.example:5000/hosts.toml`)).toBe(false);
    expect(machine.read(`${folder}/theirs.example/hosts.toml`)).toBe("[host]");
  });

  it("credentials that somebody else has put there stay", async () => {
    const machine = machineIn({}, worker);
    machine.write(path, "theirs");

    await bootstrap(machine);

    expect(machine.read(path)).toBe("theirs");
  });
});
