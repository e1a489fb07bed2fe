import { statSync } from "node:fs";
import { join } from "node:path";

import {
  asInitial,
  beforeJoining,
  bootstrap,
  controlPlane,
  machineIn,
  programs,
  script,
  worker,
} from "../../../support/bootstrapped-machine";

jest.setTimeout(120_000);

describe("secrets", () => {
  it("that came with a step are gone from its script when it has failed", async () => {
    const machine = machineIn({ failing: { join: 9 } });

    expect((await bootstrap(machine)).code).not.toBe(0);

    expect(machine.read(script)).not.toContain("secret of the CA");
    expect(machine.callsOf("first-boot").at(-1)).toBe("resume_upgrades");
  });

  it.each([controlPlane, worker])("stand on no command line ($role)", async (payload) => {
    const machine = machineIn({ failing: { join: 1 }, node: true }, payload);
    await bootstrap(machine);

    const words = machine.calls.flat().join("\n");

    expect(words).toContain("kubeadm");
    expect(words).not.toMatch(/secret of the CA|abcdef\.|PRIVATE KEY|"files"/);
  });

  it("that kubeadm prints of its own accord stand in no log", async () => {
    const machine = machineIn({ ...asInitial, api: "silent" });
    const prints =
      '[[ $* == *--skip-token-print* ]] || echo "kubeadm join --token abcdef.of-its-own";';
    machine.program("kubeadm", programs.kubeadm.replace("    init*)", `    init*) ${prints}`));

    const { code, stdout, stderr } = await bootstrap(machine);

    expect(code).toBe(0);
    expect(stdout + stderr + machine.read("/var/log/zoned.log")).not.toContain("abcdef.of-its-own");
  });

  it("are written for root alone", async () => {
    const machine = machineIn();
    beforeJoining(
      machine,
      'stat -c "%a %n" "$root"/etc/zoned/* "$root"/etc/kubernetes/pki/*.key >"$root/modes"',
    );
    await bootstrap(machine);

    const modes = machine.read("/modes").trim().split("\n");

    expect(modes.length).toBeGreaterThan(4);
    expect(modes.filter((line) => !line.startsWith("600 "))).toEqual([]);
    expect(statSync(join(machine.root, "var/log/zoned.log")).mode & 0o777).toBe(0o600);
  });
});
