import { Payload } from "../../../../components/machine/payload";
import {
  asInitial,
  bootstrap,
  bootstrapDespite,
  controlPlane,
  deeds,
  endedWell,
  lastLine,
  machineIn,
  programs,
  ship,
  worker,
  World,
} from "../../../support/bootstrapped-machine";

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
    ["a worker that joins", {}, worker, { load_modules: 1, match_version: 3, join: 5 }],
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

  it("comes before Azure's own time limit, which would say nothing", async () => {
    const machine = machineIn({ api: "silent" }, worker);

    const outcome = await bootstrap(machine, {
      ZONED_DEADLINE: `${Math.floor(Date.now() / 1000) + 1}`,
    });

    expect(lastLine(outcome)).toMatch(/^step ".*" failed with exit code 124$/);
  });
});
