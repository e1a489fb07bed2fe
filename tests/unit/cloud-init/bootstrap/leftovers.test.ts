import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";

import {
  bootstrap,
  controlPlane,
  machineIn,
  programs,
} from "../../../support/bootstrapped-machine";
import type { FakeMachine } from "../../../support/fake-machine";

jest.setTimeout(120_000);

describe("a bootstrap step", () => {
  let machine: FakeMachine;
  beforeAll(async () => {
    machine = machineIn();
    machine.write("/run/zoned/etcd-endpoints", "https://172.16.9.9:2379\n");
    const data = { [controlPlane.machine]: "update 2999-01-01T00:00:00Z" };
    machine.write("/turns", `${JSON.stringify({ metadata: {}, data })}\n200`);
    const turns = `[[ $* != *zoned-maintenance* ]] || { cat "$root/turns"; exit; }`;
    machine.program("curl", `${turns}\n${programs.curl}`);
    machine.program("renewal", '/bin/sleep 300 >/dev/null 2>&1 & echo $! >"$root/daemon"');
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
  });
});
