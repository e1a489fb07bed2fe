import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createListener } from "node:net";
import { join } from "node:path";

import { firstBootFiles, proxyFiles } from "../../../components/machine/custom-data";
import type { HttpProxy } from "../../../components/settings/settings";
import { bootstrap, machineIn, programs, worker } from "../../support/bootstrapped-machine";
import {
  FakeMachine,
  firstBootPrograms,
  shipFirstBoot,
  systemctl,
} from "../../support/fake-machine";
import { listen, serve } from "../../support/listen";
import { validSettings } from "../../support/sample";
import { installed, Outcome, run } from "../../support/tools";

const aptConf = "/etc/apt/apt.conf.d/95zoned-proxy";
const caFile = "/usr/local/share/ca-certificates/zoned-proxy.crt";

const setProxy = (machine: FakeMachine, httpProxy: Partial<HttpProxy> | undefined) => {
  const given = httpProxy && { http: "", https: "", noProxy: [], ca: "", ...httpProxy };
  const settings = { ...validSettings, httpProxy: given };
  for (const { path, content } of proxyFiles(settings, "api.example")) machine.write(path, content);
};

const machineWith = (httpProxy: Partial<HttpProxy> | undefined, mirror = ""): FakeMachine => {
  const machine = new FakeMachine({ "apt-get": "", "update-ca-certificates": "", systemctl });
  shipFirstBoot(machine, { MIRROR: mirror });
  machine.ship("bootstrap.sh", "/script.sh", "{}\n");
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
    const machine = machineWith({ http: address }, "http://packages.invalid");

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

  it("is not asked by apt for https where it is http's alone", async () => {
    const machine = machineWith({ http: address });
    const { root } = machine;
    await firstBoot(machine, "set_proxy");
    let connections = 0;
    const source = createListener((socket) => {
      connections++;
      socket.destroy();
    });
    machine.write("/sources", `deb [trusted=yes] https://127.0.0.1:${await listen(source)} /\n`);
    mkdirSync(join(root, "lists/partial"), { recursive: true });

    await run(installed("apt-get", "apt"), [
      ...["-o", `Dir::Etc::SourceList=${root}/sources`, "-o", "Dir::Etc::SourceParts=-"],
      ...["-o", `Dir::State::Lists=${root}/lists`, "--config-file", `${root}${aptConf}`, "update"],
    ]);

    expect(connections).toBeGreaterThan(0);
  });

  it("is all that has to be connected to for a first boot to begin", async () => {
    const machine = machineWith({ http: address, https: address });

    expect(await firstBoot(machine, "check_egress")).toEqual(well);
  });
});

it("is named, with its port, where it cannot be connected to", async () => {
  const machine = machineWith({ https: "http://127.0.0.1:9" });

  const { code, stdout } = await machine.run("/opt/zoned/first-boot.sh", ["check_egress"]);

  expect(code).not.toBe(0);
  expect(stdout).toMatch(/no connection to 127\.0\.0\.1 port 9: .*zoned:httpProxy/);
});

describe("the login at a proxy", () => {
  const password = "p:ss/w%rd";
  const login = `me%40firm.example:${encodeURIComponent(password)}`;
  const header = `Basic ${Buffer.from(`me@firm.example:${password}`).toString("base64")}`;

  /** A proxy that lets in who logs in with the right password, and what it was asked for. */
  /** One whose name is no proxy's exception; that it listens is all that is asked of it directly. */
  const mirrorServer = createListener((socket) => socket.destroy());
  let mirror: string;
  let address: string;
  const asked: string[] = [];
  let admitted: string;

  beforeAll(async () => {
    const isAdmitted = (given: string | undefined) => given === admitted;
    const server = createServer(({ url = "", headers }, reply) => {
      const isIn = isAdmitted(headers["proxy-authorization"]);
      asked.push(`${isIn ? 200 : 407} ${url}`);
      if (isIn) reply.end("-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
      else reply.writeHead(407, { "Proxy-Authenticate": "Basic realm=proxy" }).end();
    });
    address = `127.0.0.1:${await listen(server)}`;
    await new Promise<void>((resolve) => mirrorServer.listen(0, "127.0.0.2", resolve));
    mirror = `http://127.0.0.2:${(mirrorServer.address() as AddressInfo).port}`;
  });
  beforeEach(() => {
    asked.length = 0;
    admitted = header;
  });
  afterAll(() => void mirrorServer.close());

  const behind = (proxy: string) => ({
    ...validSettings,
    containerRuntime: "containerd" as const,
    httpProxy: { http: proxy, https: proxy, noProxy: [], ca: "" },
  });

  const modeOf = (machine: FakeMachine, path: string) =>
    (statSync(join(machine.root, path)).mode & 0o777).toString(8);

  /** The password as it was given, and as it is written. */
  const isIn = (text: string) =>
    [password, encodeURIComponent(password)].some((one) => text.includes(one));

  const environmentFile = "/kubeadm-environment";

  /** A machine of which nothing but its payload says how it is to boot. */
  function unbooted(): FakeMachine {
    // A mirror whose downloads need no TLS, and that the proxy is asked for, as it is for what is no mirror.
    const files = firstBootFiles(behind(`http://${login}@${address}`), "api.example").map(
      (file) => ({
        ...file,
        content: file.content.replace("MIRROR=''", `MIRROR=${mirror}`),
      }),
    );
    const machine = machineIn({}, { ...worker, files: [...worker.files, ...files] });
    machine.removeFile("/var/lib/zoned/first-boot.done");
    machine.removeFile("/opt/zoned/first-boot.sh");
    const { kubelet: _, kubectl: _1, ...firstBoot } = firstBootPrograms([]);
    const others = {
      ...firstBoot,
      "cloud-init": 'echo "status: done"',
      kubeadm: `env >>"$root${environmentFile}-$1"
      case $* in "config images list"*) echo registry.k8s.io/pause:3.99; exit ;; esac
      ${programs.kubeadm}`,
      "update-ca-certificates": "",
    };
    for (const [name, text] of Object.entries(others)) machine.program(name, text);
    return machine;
  }

  describe("a proxy with a login", () => {
    let machine: FakeMachine;
    let outcome: Outcome;
    let askedFor: readonly string[];
    beforeAll(async () => {
      admitted = header;
      machine = unbooted();
      machine.program(
        "chmod",
        'case $* in *zoned-proxy.new | *zoned/proxy.new) stat --format %a "$2" >>"$root/modes" ;; esac; exec /bin/chmod "$@"',
      );
      outcome = await bootstrap(machine);
      askedFor = [...asked];
    });

    it("is known to a machine before its first boot, which the bootstrap step then runs", () => {
      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      expect(machine.has("/var/lib/zoned/first-boot.done")).toBe(true);
      expect(askedFor).toEqual([`200 ${mirror}/apt/Release.key`]);
      expect(isIn(outcome.stdout + machine.read("/var/log/zoned.log"))).toBe(false);
    });

    it("is no variable of the kubeadm that writes manifests, into which it would copy it", () => {
      expect(machine.read(`${environmentFile}-config`)).toMatch(/^https_proxy=/m);
      expect(machine.read(`${environmentFile}-join`)).not.toMatch(/_proxy=/i);
    });

    it("is in files that only root reads, also while they are written", () => {
      for (const path of [
        "/etc/zoned/proxy.env",
        "/etc/apt/apt.conf.d/95zoned-proxy",
        "/var/lib/zoned/proxy",
      ]) {
        expect(isIn(machine.read(path))).toBe(true);
        expect(modeOf(machine, path)).toBe("600");
      }
      expect(machine.read("/modes")).toBe("600\n600\n");
      const unit = "/etc/systemd/system/containerd.service.d/zoned-proxy.conf";
      expect(isIn(machine.read(unit))).toBe(false);
    });

    it.each(["apt", "curl", "python3"] as const)(
      "is what %s logs in at, as it is written",
      async (program) => {
        const { root } = machine;
        const url = "http://packages.invalid/it";
        const inEnvironment = (command: string) =>
          run("bash", ["-c", `set -a; . ${root}/etc/zoned/proxy.env; ${command}`]);
        const ask = {
          apt: () => {
            mkdirSync(join(root, "lists/partial"), { recursive: true });
            writeFileSync(join(root, "sources"), `deb [trusted=yes] ${url} /\n`);
            return run(installed("apt-get", "apt"), [
              ...["-o", `Dir::Etc::SourceList=${root}/sources`, "-o", "Dir::Etc::SourceParts=-"],
              ...["-o", `Dir::State::Lists=${root}/lists`],
              ...["--config-file", join(root, "etc/apt/apt.conf.d/95zoned-proxy"), "update"],
            ]);
          },
          curl: () => inEnvironment(`curl --silent ${url}`),
          python3: () =>
            inEnvironment(`python3 -c 'import urllib.request as r; r.urlopen("${url}")'`),
        };

        await ask[program]();

        expect(asked[0]).toMatch(/^200 http:\/\/packages\.invalid\/it/);
        expect(asked.filter((one) => !one.startsWith("200 "))).toEqual([]);
      },
    );

    it("is named without its password where nothing listens", async () => {
      const elsewhere = behind(`http://${login}@127.0.0.1:9`);
      for (const { path, content } of proxyFiles(elsewhere, "api.example"))
        machine.write(path, content);

      const { code, stdout, stderr } = await machine.run("/opt/zoned/first-boot.sh", [
        "check_egress",
      ]);

      expect(code).not.toBe(0);
      expect(stdout).toMatch(/no connection to 127\.0\.0\.1 port 9: /);
      expect(isIn(stdout + stderr)).toBe(false);
    });

    it("is named without its password where it refuses, in the log, in the error and on command lines", async () => {
      admitted = "";
      const refused = unbooted();

      const { code, stdout, stderr } = await bootstrap(refused);

      expect(code).not.toBe(0);
      expect(new Set(asked)).toEqual(new Set([`407 ${mirror}/apt/Release.key`]));
      expect(stderr).toContain("HTTP Error 407: Proxy Authentication Required");
      expect(stderr).toContain("first boot failed: package source, exit code 1");
      const said = [stdout, stderr, refused.read("/var/log/zoned.log"), ...refused.calls.flat()];
      expect(said.filter(isIn)).toEqual([]);
    });
  });

  it("leaves what it says readable where it has no password", async () => {
    const machine = unbooted();
    for (const { path, content, mode } of proxyFiles(behind(`http://${address}`), "api.example"))
      machine.write(path, content, parseInt(mode, 8));
    machine.ship("first-boot.sh", "/opt/zoned/first-boot.sh");
    const settings = firstBootFiles(validSettings, "api.example");
    const { path, content } = settings.find((file) => file.path.endsWith("first-boot.env"))!;
    machine.write(path, content);

    expect((await machine.run("/opt/zoned/first-boot.sh", ["set_proxy"])).code).toBe(0);

    for (const file of ["/etc/zoned/proxy.env", "/etc/apt/apt.conf.d/95zoned-proxy"])
      expect(modeOf(machine, file)).toBe("644");
  });
});
