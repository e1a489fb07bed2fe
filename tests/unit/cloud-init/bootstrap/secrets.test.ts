import { statSync } from "node:fs";
import { join } from "node:path";

import {
  beforeJoining,
  bootstrap,
  controlPlane,
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
