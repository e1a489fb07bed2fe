import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";

import {
  asInitial,
  bootstrap,
  controlPlane,
  deeds,
  lastLine,
  machineIn,
  programs,
} from "../../../support/bootstrapped-machine";
import type { FakeMachine } from "../../../support/fake-machine";
import { installed } from "../../../support/tools";

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
    expect(asked).toEqual([expect.stringContaining("--retry 5")]);
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
