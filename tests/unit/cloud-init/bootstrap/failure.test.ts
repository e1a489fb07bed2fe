import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";

import { Payload } from "../../../../components/machine/payload";
import {
  asInitial,
  beforeJoining,
  bootstrap,
  bootstrapDespite,
  controlPlane,
  deeds,
  endedWell,
  lastLine,
  machineIn,
  programs,
  script,
  ship,
  worker,
  World,
} from "../../../support/bootstrapped-machine";
import { type FakeMachine, killsItsScript } from "../../../support/fake-machine";
import { serve } from "../../../support/listen";
import { installed } from "../../../support/tools";

describe("a failure", () => {
  /** An initial control plane whose kubeadm does this when it initializes. */
  const initializing = (does: string) => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    machine.program("kubeadm", programs.kubeadm.replace("    init*)", `    init*) ${does};`));
    return machine;
  };

  it("ends with the log's end, the step and its exit code, in the 4 KB that Azure shows", async () => {
    const outcome = await bootstrap(initializing("seq 100000; echo it went wrong >&2; exit 7"));

    expect(outcome.code).toBe(7);
    expect(lastLine(outcome)).toBe('step "kubeadm init" failed with exit code 7');
    expect(Buffer.byteLength(outcome.stderr)).toBeLessThan(4096);
    expect(outcome.stdout).toContain("exit code 7, next try");
    expect(outcome.stderr).toContain("\n100000\nit went wrong\n");
    expect(
      outcome.stdout.split("\n").filter((line) => !/^(\S+Z bootstrap: .*)?$/.test(line)),
    ).toEqual([]);
  });

  it("by a program that was killed, as for lack of memory, is not reported as a lack of time", async () => {
    const { stdout, stderr } = await bootstrap(initializing("exit 137"));

    expect(stderr).toMatch(/step "kubeadm init" failed with exit code 137\n$/);
    expect(stdout).not.toContain("were not enough");
  });

  it.each<[string, Partial<World>, Payload, Record<string, number>]>([
    ["a worker that joins", {}, worker, { load_modules: 1, match_version: 3, join: 5, finish: 1 }],
    [
      "a control plane that joins",
      {},
      controlPlane,
      { load_modules: 1, match_version: 3, join: 3, keep_certificates: 2 },
    ],
    [
      "the initial control plane",
      { ...asInitial, api: "silent" },
      controlPlane,
      { load_modules: 1, match_version: 3, initialize: 1, keep_certificates: 2 },
    ],
  ])(
    "of %s ends nothing before it has come this often in a row",
    async (_, world, payload, tries) => {
      expect(await bootstrapDespite(machineIn(world, payload), tries)).toEqual(endedWell);
    },
  );

  it("is reported, with its step, also where the step has filled the disk", async () => {
    const machine = machineIn();
    machine.mount("/var", 256);
    machine.write("/var/lib/zoned/first-boot.done", "");
    machine.program("modprobe", 'yes >>"$root/var/log/zoned.log"');

    const outcome = await bootstrap(machine);

    expect(outcome.stderr).toContain("--- end of /var/log/zoned.log");
    expect(outcome.stderr).toMatch(/^no space left on device: .+ 256K +256K .+zoned:osDiskSizeGb/m);
    expect(lastLine(outcome)).toBe('step "kernel modules" failed with exit code 1');
  });

  it("names the module that kube-proxy's mode needs and the kernel has not", async () => {
    const machine = machineIn();
    machine.program("modprobe", "[[ $1 != ip_vs_wlc ]]");

    const outcome = await bootstrap(machine);

    expect(outcome.stderr).toContain("has no module ip_vs_wlc");
    expect(outcome.stderr).toContain("zoned:proxyScheduler");
    expect(lastLine(outcome)).toBe('step "kernel modules" failed with exit code 1');
    expect(deeds(machine)).toEqual([]);
  });

  it("looks for the modules of another mode on a machine that is a member, and keeps them for every boot", async () => {
    const machine = machineIn();
    machine.write("/var/lib/zoned/joined", "joined\n");
    machine.write("/var/lib/zoned/configuration", "now\n");
    machine.write("/etc/cni/net.d/10-it.conflist", "");
    machine.write("/etc/kubernetes/manifests/kube-apiserver.yaml", "");
    machine.program("modprobe", "[[ $1 != ip_vs_sh ]]");

    ship(machine, { ...controlPlane, modules: ["ip_vs", "ip_vs_sh"] });
    const missing = await bootstrap(machine);
    expect(missing.stderr).toContain("has no module ip_vs_sh");
    expect(machine.has("/etc/modules-load.d/zoned-proxy.conf")).toBe(false);

    ship(machine, { ...controlPlane, modules: ["nf_tables"] });
    expect((await bootstrap(machine)).code).toBe(0);
    expect(machine.read("/etc/modules-load.d/zoned-proxy.conf")).toBe("nf_tables\n");
    expect(deeds(machine)).toEqual([]);
  });

  it("gives all steps together 85 of the 90 minutes that Azure gives the script", async () => {
    const machine = machineIn({}, worker);
    machine.program("modprobe", 'echo "$ZONED_DEADLINE" >"$root/deadline"; exit 1');
    const before = Math.floor(Date.now() / 1000);

    await bootstrap(machine);

    const minutes = (Number(machine.read("/deadline")) - before) / 60;
    expect(minutes).toBeGreaterThanOrEqual(85);
    expect(minutes).toBeLessThan(88);
  });

  it("of the script, which somebody kills, has the next run wait for the step that is at work", async () => {
    const machine = machineIn({}, worker);
    machine.program("modprobe", killsItsScript);

    await expect(bootstrap(machine)).rejects.toThrow();
    expect((await bootstrap(machine)).code).toBe(0);

    expect(machine.read("/var/log/zoned.log")).toMatch(/the step has ended[^]* payload: begins/);
  });

  it("comes before Azure's own time limit, which would say nothing", async () => {
    const machine = machineIn({ api: "silent" }, worker);

    const outcome = await bootstrap(machine, {
      ZONED_DEADLINE: `${Math.floor(Date.now() / 1000) + 1}`,
    });

    expect(lastLine(outcome)).toMatch(/^step ".*" failed with exit code 124$/);
  });
});

describe("a bootstrap step", () => {
  let machine: FakeMachine;
  beforeAll(async () => {
    machine = machineIn();
    machine.write("/run/zoned/etcd-endpoints", "https://172.16.9.9:2379\n");
    const data = { [controlPlane.machine]: "update 2999-01-01T00:00:00Z" };
    machine.write("/turns", `${JSON.stringify({ metadata: {}, data })}\n200`);
    const turns = `[[ $* != *zoned-maintenance* ]] || { cat "$root/turns"; exit; }`;
    machine.program("curl", `${turns}\n${programs.curl}`);
    machine.program(
      "renewal",
      `stat --format %a "$root/run/zoned" >"$root/mode"; /bin/sleep 300 >/dev/null 2>&1 & echo $! >"$root/daemon"`,
    );
    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });
  });
  afterAll(() => process.kill(Number(machine.read("/daemon"))));

  it("believes nothing of what a run has left that was killed", () => {
    expect(machine.callsOf("curl").join()).not.toContain("172.16.9.9");
  });

  it("gives back its turn to be down", () => {
    expect(machine.callsOf("curl").join()).toContain(`"${controlPlane.machine}":null`);
  });

  it("leaves its lock to nothing that it has started, which the next one would wait for", () => {
    const lock = join(machine.root, "run/zoned-bootstrap.lock");
    expect(spawnSync("flock", ["--nonblock", lock, "true"]).status).toBe(0);
  });

  it("lets root alone look into the folders of what is secret", () => {
    const modeOf = (path: string) => statSync(join(machine.root, path)).mode & 0o777;
    expect([modeOf("etc/kubernetes"), modeOf("etc/kubernetes/pki")]).toEqual([0o755, 0o700]);
    expect(machine.read("/mode")).toBe("700\n");
  });

  it("asks the metadata service again, since a step that looks for the API is begun once", () => {
    const asked = machine.callsOf("curl").filter((call) => call.includes("vmId"));
    expect(asked).toHaveLength(1);
    // Its own update takes up to 70 seconds; curl waits a second, and twice as long each time.
    const [, tries] = /--retry (\d+) /.exec(asked[0]!) ?? [];
    expect(2 ** Number(tries) - 1).toBeGreaterThan(70);
  });

  it("asks the metadata service again while that is being updated", async () => {
    const answers = [410, 404, 200];
    const service = await serve((_, reply) => {
      reply.writeHead(answers.shift() ?? 500).end("the-id");
    });
    const asking = machineIn();
    asking.ship("bootstrap.sh", "/script.sh", "{}\n");
    asking.program(
      "curl",
      `exec ${installed("curl", "curl")} "$@" --connect-to ::${new URL(service).host}`,
    );

    expect(await asking.run("/script.sh", ["own_id"])).toMatchObject({ code: 0, stdout: "the-id" });
  });
});

it("waits for the end of the one before, as that of an update that was killed, and goes on from there", async () => {
  const machine = machineIn();
  machine.ship("bootstrap.sh", "/next.sh", `${JSON.stringify(controlPlane)}\n`);
  machine.program(
    "flock",
    `echo it >>"$root/flocks"; exec ${installed("flock", "util-linux")} "$@"`,
  );
  machine.program("modprobe", 'until (($(wc -l <"$root/flocks") > 1)); do sleep 1; done');

  const outcomes = await Promise.all([bootstrap(machine), machine.run("/next.sh")]);

  const well = { code: 0, stderr: "" };
  expect(outcomes).toEqual([expect.objectContaining(well), expect.objectContaining(well)]);
  expect(deeds(machine).filter((deed) => deed === "join")).toHaveLength(1);
});

it("begins nothing again when Azure's time is up, so that the reason is that of the step", async () => {
  const machine = machineIn({ failing: { join: 9 } });
  const soon = `${Math.floor(Date.now() / 1000) + 59}`;

  const outcome = await bootstrap(machine, { ZONED_DEADLINE: soon });

  expect(lastLine(outcome)).toBe('step "kubeadm join" failed with exit code 7');
  expect(deeds(machine).filter((deed) => deed === "join")).toHaveLength(1);
});

it("has initialized the cluster also where that cannot be noted, which who joins does then", async () => {
  const machine = machineIn({ ...asInitial, api: "silent" });
  machine.program("kubectl", `[[ $* != *annotate* ]] || exit 1\n${programs.kubectl}`);

  expect((await bootstrap(machine)).code).toBe(0);

  expect(deeds(machine).filter((deed) => deed === "init")).toHaveLength(1);
});

describe("secrets", () => {
  it("that came with a step are gone from its script when it has failed", async () => {
    const machine = machineIn();
    machine.program("modprobe", "exit 1");

    expect((await bootstrap(machine)).code).not.toBe(0);

    expect(machine.read(script)).not.toContain("secret of the CA");
    expect(machine.callsOf("first-boot").at(-1)).toBe("resume_upgrades");
  });

  it("are gone also where the step has filled the disk, and so is the snapshot that it has fetched", async () => {
    const machine = machineIn();
    machine.mount("/var", 256);
    machine.write("/var/lib/zoned/first-boot.done", "");
    machine.write("/var/lib/zoned/snapshot.db", "every Secret");
    machine.ship("bootstrap.sh", "/var/script.sh", `${JSON.stringify(controlPlane)}\n`);
    machine.program("modprobe", 'yes >>"$root/var/log/zoned.log"');

    const outcome = await machine.run("/var/script.sh");

    expect(lastLine(outcome)).toBe('step "kernel modules" failed with exit code 1');
    expect(machine.read("/var/script.sh")).not.toContain("secret of the CA");
    expect(machine.has("/var/lib/zoned/snapshot.db")).toBe(false);
    expect(machine.has("/run/zoned")).toBe(false);
  });

  it.each([controlPlane, worker])(
    "stand on no command line, and in files for root alone ($role)",
    async (payload) => {
      const machine = machineIn({ failing: { join: 1 }, node: true }, payload);
      beforeJoining(
        machine,
        'find "$root"/etc/{zoned,kubernetes} -type f ! -name "*.crt" ! -path "*/patches/*" -printf "%m %f\\n" >"$root/modes"',
      );
      await bootstrap(machine);

      const words = machine.calls.flat().join("\n");
      expect(words).toContain("kubeadm");
      expect(words).not.toMatch(/secret of the CA|abcdef\.|PRIVATE KEY|"files"/);

      const modes = machine.read("/modes").trim().split("\n");
      expect(modes).toContain(payload === worker ? "600 discovery.conf" : "600 ca.key");
      expect(modes.filter((line) => !line.startsWith("600 "))).toEqual([]);
      expect(statSync(join(machine.root, "var/log/zoned.log")).mode & 0o777).toBe(0o600);
    },
  );
});
