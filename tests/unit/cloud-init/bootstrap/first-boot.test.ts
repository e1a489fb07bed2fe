import {
  bootstrap,
  deeds,
  machineIn,
  runStep,
  worker,
} from "../../../support/bootstrapped-machine";

describe("the first boot", () => {
  const done = "/var/lib/zoned/first-boot.done";
  const failed = "/var/lib/zoned/first-boot.failed";
  const unbooted = () => {
    const machine = machineIn({}, worker);
    machine.removeFile(done);
    machine.write(
      "/opt/zoned/first-boot.sh",
      `#!/bin/bash\n(($# == 0)) || exit 0\ntouch "$ZONED_ROOT/ran"\nrm -f "$ZONED_ROOT${failed}"\ntouch "$ZONED_ROOT${done}"\n`,
      0o700,
    );
    return machine;
  };

  it("is waited for", async () => {
    const machine = unbooted();
    machine.program(
      "cloud-init",
      `echo x >>"$root/asked"; [[ $(wc -l <"$root/asked") -lt 4 ]] || touch "$root${done}"; echo "status: running"`,
    );

    expect((await runStep(machine, "await_first_boot")).code).toBe(0);

    expect(machine.has("/ran")).toBe(false);
  });

  it("stops the step when it fails, and its failing step is named", async () => {
    const machine = unbooted();
    machine.program(
      "cloud-init",
      `echo "images, exit code 100" >"$root${failed}"; echo "status: running"`,
    );

    const outcome = await bootstrap(machine);

    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      "first boot failed: images, exit code 100",
      'step "first boot" failed with exit code 1',
    ]);
    expect(deeds(machine)).toEqual([]);
  });

  it("runs again when it had failed before, so that a fixed cause needs no new machine", async () => {
    const machine = unbooted();
    machine.write(failed, "images, exit code 100\n");

    expect((await runStep(machine, "await_first_boot")).code).toBe(0);

    expect(machine.has("/ran")).toBe(true);
  });

  // What it prints where nothing runs any more (cloud-init status --help).
  it.each(["done", "error", "degraded", "disabled"])(
    "runs again when a reboot broke it off (%s)",
    async (status) => {
      const machine = unbooted();
      machine.program("cloud-init", `echo "status: ${status}"`);

      expect((await runStep(machine, "await_first_boot")).code).toBe(0);

      expect(machine.has("/ran")).toBe(true);
    },
  );
});
