import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { proxyFiles } from "../../../components/machine/custom-data";
import type { HttpProxy } from "../../../components/settings/settings";
import { bootstrap, machineIn } from "../../support/bootstrapped-machine";
import { FakeMachine, systemctl } from "../../support/fake-machine";
import { listen, serve } from "../../support/listen";
import { validSettings } from "../../support/sample";
import { installed, run } from "../../support/tools";

const programs = { "apt-get": "", "update-ca-certificates": "", systemctl };
const aptConf = "/etc/apt/apt.conf.d/95zoned-proxy";
const caFile = "/usr/local/share/ca-certificates/zoned-proxy.crt";

const setProxy = (machine: FakeMachine, httpProxy: Partial<HttpProxy> | undefined) => {
  const given = httpProxy && { http: "", https: "", noProxy: [], ca: "", ...httpProxy };
  const settings = { ...validSettings, httpProxy: given };
  for (const { path, content } of proxyFiles(settings, "api.example")) machine.write(path, content);
};

const machineWith = (httpProxy: Partial<HttpProxy> | undefined, mirror = ""): FakeMachine => {
  const machine = new FakeMachine(programs);
  machine.ship("first-boot.sh", "/opt/zoned/first-boot.sh");
  machine.ship("bootstrap.sh", "/script.sh", "{}\n");
  machine.write(
    "/etc/zoned/first-boot.env",
    `KUBERNETES_VERSION=1.36.3 CONTAINER_RUNTIME=docker CONTAINERD_AT_LEAST=1 DOCKER_AT_LEAST=1 ETCD_IMAGE_TAG= CRI_DOCKERD_VERSION=1 CREDENTIAL_PROVIDER_VERSION= MIRROR=${mirror}\n`,
  );
  setProxy(machine, httpProxy);
  return machine;
};

const firstBoot = async (machine: FakeMachine, what: string) => {
  const { code, stderr } = await machine.run("/opt/zoned/first-boot.sh", [what]);
  return { code, stderr };
};
const well = { code: 0, stderr: "" };

/** Whether the bootstrap step has something to do about it. */
const isOther = async (machine: FakeMachine) =>
  (await machine.run("/script.sh", ["has_other_proxy"])).code === 0;

const proxy = "http://proxy.example:3128";

it("is what apt asks, what pulls images inherits, and whose CA the machine trusts", async () => {
  const machine = machineWith({ http: proxy, https: "http://tls.example:3129", ca: "a CA\n" });

  expect(await firstBoot(machine, "set_proxy")).toEqual(well);

  expect(machine.read(aptConf)).toBe(
    `Acquire::http::Proxy "${proxy}";\nAcquire::https::Proxy "http://tls.example:3129";\n`,
  );
  for (const unit of ["containerd", "docker"]) {
    const settings = machine.read(`/etc/systemd/system/${unit}.service.d/zoned-proxy.conf`);
    expect(settings).toContain("EnvironmentFile=-/etc/zoned/proxy.env");
  }
  expect(machine.read(caFile)).toBe("a CA\n");
  expect(machine.callsOf("update-ca-certificates")).toEqual(["--fresh"]);
});

it.each([
  ["neither, as in Azure's images,", []],
  ["containerd alone", ["containerd.service"]],
  ["both", ["containerd.service", "docker.service"]],
])("restarts what pulls images where it runs: %s", async (_, units) => {
  const machine = machineWith({ http: proxy });
  for (const unit of units) machine.write(`/usr/lib/systemd/system/${unit}`, "");

  expect(await firstBoot(machine, "set_proxy")).toEqual(well);

  const calls = machine.callsOf("systemctl").filter((call) => !call.startsWith("is-active"));
  expect(calls).toEqual(["daemon-reload", ...units.map((unit) => `restart ${unit}`)]);
  expect(machine.has("/var/lib/zoned/proxy")).toBe(true);
});

it("is set once, and again when it is another one, has another CA, or is gone", async () => {
  const machine = machineWith({ https: proxy });
  expect(await isOther(machine)).toBe(true);
  await firstBoot(machine, "set_proxy");
  expect(await isOther(machine)).toBe(false);

  for (const change of [{ https: "http://b:1" }, { https: "http://b:1", ca: "b" }, undefined]) {
    setProxy(machine, change);
    expect(await isOther(machine)).toBe(true);
    expect(await firstBoot(machine, "set_proxy")).toEqual(well);
    expect(await isOther(machine)).toBe(false);
  }

  expect(machine.read(aptConf)).toBe("");
  expect(machine.has(caFile)).toBe(false);
});

it("is set by the bootstrap step that brings another one", async () => {
  const machine = machineIn();
  setProxy(machine, { https: proxy });

  expect((await bootstrap(machine)).code).toBe(0);

  expect(machine.callsOf("first-boot")).toContain("set_proxy");
});

it("is no concern of a machine that never had one", async () => {
  expect(await isOther(machineWith(undefined))).toBe(false);
});

describe("a proxy that answers", () => {
  let address: string;
  const asked: string[] = [];

  beforeAll(async () => {
    address = await serve(({ url = "" }, reply) => {
      asked.push(url);
      reply.end("-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
    });
  });

  it("is asked for what the script downloads, whose names this machine need not know", async () => {
    const machine = machineWith({ http: address });
    machine.write(
      "/etc/zoned/first-boot.env",
      machine
        .read("/etc/zoned/first-boot.env")
        .replace("MIRROR=", "MIRROR=http://packages.invalid"),
    );

    expect(await firstBoot(machine, "add_package_source")).toEqual(well);

    expect(asked).toEqual(["http://packages.invalid/apt/Release.key"]);
    expect(machine.read("/etc/apt/keyrings/zoned.asc")).toContain("PGP PUBLIC KEY");
  });

  it("is asked by upgrades in the background for nothing that noProxy names", async () => {
    const direct: string[] = [];
    const mirror = createServer(({ url = "" }, reply) => {
      direct.push(url);
      reply.writeHead(404).end();
    });
    const port = await listen(mirror);
    const machine = machineWith({ http: address, noProxy: ["localhost"] });
    const { root } = machine;
    await firstBoot(machine, "set_proxy");
    const unit = machine.read("/etc/systemd/system/apt-daily.service.d/zoned-proxy.conf");
    const [, inherited] = /^EnvironmentFile=-(.+)$/m.exec(unit) ?? [];
    mkdirSync(join(root, "lists/partial"), { recursive: true });
    const get = async (environment: string, host: string) => {
      machine.write("/sources", `deb [trusted=yes] http://${host}:${port} /\n`);
      asked.length = direct.length = 0;
      const apt =
        `${installed("apt-get", "apt")} -o Dir::Etc::SourceList=${root}/sources -o Dir::Etc::SourceParts=- ` +
        `-o Dir::State::Lists=${root}/lists --config-file ${root}${aptConf} update`;
      await run("bash", ["-c", `set -a; . ${environment}; ${apt}`]);
      return [asked.length > 0, direct.length > 0];
    };

    expect(await get(`${root}${inherited}`, "localhost")).toEqual([false, true]);
    expect(await get(`${root}${inherited}`, "127.0.0.2")).toEqual([true, false]);
    expect(await get("/dev/null", "localhost")).toEqual([true, false]);
  });

  it("is all that has to be connected to for a first boot to begin", async () => {
    expect(await firstBoot(machineWith({ http: address }), "check_egress")).toEqual(well);
  });
});

it("is named, with its port, where it cannot be connected to", async () => {
  const machine = machineWith({ https: "http://127.0.0.1:9" });

  const { code, stdout } = await machine.run("/opt/zoned/first-boot.sh", ["check_egress"]);

  expect(code).not.toBe(0);
  expect(stdout).toMatch(/no connection to 127\.0\.0\.1 port 9: .*zoned:httpProxy/);
});
