import { statSync } from "node:fs";
import { join } from "node:path";

import {
  beforeJoining,
  bootstrap,
  controlPlane,
  lastLine,
  machineIn,
  script,
  worker,
} from "../../../support/bootstrapped-machine";

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
