import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import {
  bootstrap,
  calm,
  controlPlane,
  deeds,
  machineIn,
  ship,
  worker,
  World,
} from "../../../support/bootstrapped-machine";

jest.setTimeout(120_000);

/** Every file below a folder with what is in it. */
const contents = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`)
    .sort();

describe.each([
  { role: "control plane", payload: controlPlane },
  { role: "worker", payload: worker },
])("a $role that is a member", ({ payload }) => {
  const member = async (world: Partial<World> = {}) => {
    const machine = machineIn({}, payload);
    await bootstrap(machine);
    machine.write("/api", world.api ?? calm.api);
    machine.write("/ready", world.ready ?? calm.ready);
    machine.forgetCalls();
    ship(machine, payload);
    return machine;
  };

  it("changes nothing", async () => {
    const machine = await member();
    const before = ["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)));

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual([]);
    expect(machine.callsOf("kubeadm")).toEqual([]);
    expect(["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)))).toEqual(
      before,
    );
  });

  it("is not reset when it is not well, and the step says what it waited for", async () => {
    const machine = await member({ ready: "False KubeletNotReady the runtime is down" });

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(deeds(machine)).toEqual([]);
    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      `node ${payload.machine}: Ready is False KubeletNotReady the runtime is down`,
      'step "node" failed with exit code 124',
    ]);
  });

  it("is looked at until it is Ready", async () => {
    const machine = await member({ ready: "False KubeletNotReady" });
    machine.program("sleep", 'echo "True KubeletReady" >"$root/ready"');

    expect((await bootstrap(machine)).code).toBe(0);

    const looks = machine.callsOf("curl").filter((call) => call.includes("/api/v1/nodes/"));
    expect(looks).toHaveLength(2);
  });

  it("asks nobody whether it is Ready while it has no pod network, without which it cannot be", async () => {
    const machine = await member();
    machine.removeFile("/etc/cni/net.d/10-it.conflist");

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(outcome.stderr).toContain(`node ${payload.machine}: no pod network yet`);
    expect(machine.callsOf("curl").filter((call) => call.includes("/nodes/"))).toEqual([]);
  });

  it("is well only if its kubelet has reported since, whatever the node's condition still says", async () => {
    const machine = await member();
    machine.write("/lease", "2020-01-01T00:00:00.000000Z");

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(outcome.stderr).toContain("the kubelet last reported at 2020-01-01T00:00:00.000000Z");
  });
});
