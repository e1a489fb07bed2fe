import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import {
  bootstrap,
  calm,
  controlPlane,
  deeds,
  leaseOf,
  machineIn,
  programs,
  runStep,
  ship,
  worker,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";
import {
  registryCredentialFiles,
  registryHostFiles,
} from "../../../../components/kubeadm/registries";
import type { Payload } from "../../../../components/machine/payload";

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
  let machine: FakeMachine;
  beforeAll(async () => {
    machine = machineIn({}, payload);
    expect((await bootstrap(machine)).code).toBe(0);
  });
  beforeEach(() => {
    machine.write("/ready", calm.ready);
    machine.write("/etc/cni/net.d/10-it.conflist", "");
    machine.forgetCalls();
    ship(machine, payload);
  });

  it("changes nothing", async () => {
    const before = ["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)));

    expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

    expect(deeds(machine)).toEqual([]);
    expect(machine.callsOf("kubeadm")).toEqual([]);
    expect(["etc", "var/lib"].flatMap((folder) => contents(join(machine.root, folder)))).toEqual(
      before,
    );
  });

  it("is not reset when it is not well, and the step says what it waited for", async () => {
    machine.write("/ready", "False KubeletNotReady the runtime is down");

    const outcome = await bootstrap(machine, { HANGS: "await_node" });

    expect(deeds(machine)).toEqual([]);
    expect(outcome.stderr.trim().split("\n").slice(-2)).toEqual([
      `node ${payload.machine}: Ready is False KubeletNotReady the runtime is down`,
      'step "node" failed with exit code 124',
    ]);
  });

  it("is well only when it is Ready and its kubelet has reported since, whatever the node's condition still says", async () => {
    machine.write("/ready", "False KubeletNotReady");
    machine.write("/lease", leaseOf("2020-01-01T00:00:00.000000Z"));
    machine.program(
      "sleep",
      `grep --quiet True "$root/ready" && echo '${leaseOf("2999-01-01T00:00:00.000000Z")}' >"$root/lease"
      echo "True KubeletReady" >"$root/ready"`,
    );

    const { code, stdout } = await runStep(machine, "await_node");

    expect(code).toBe(0);
    expect(stdout).toContain("the kubelet last reported at 2020-01-01T00:00:00.000000Z");
    const looks = machine.callsOf("curl").map((call) => /nodes|leases/.exec(call)?.[0]);
    // The last one is for its size.
    expect(looks).toEqual(["nodes", "nodes", "leases", "nodes", "leases", "nodes"]);
  });

  it("asks nobody whether it is Ready while it has no pod network, without which it cannot be", async () => {
    machine.removeFile("/etc/cni/net.d/10-it.conflist");

    const { code, stdout } = await runStep(machine, "node_is_ready");

    expect(code).toBe(1);
    expect(stdout).toContain(`node ${payload.machine}: no pod network yet`);
    expect(machine.callsOf("curl")).toEqual([]);
  });
});

const path = "/var/lib/kubelet/config.json";

const pullingBy = (password: string): Payload => ({
  ...worker,
  tasks: ["registry-credentials"],
  files: [
    ...worker.files,
    ...registryCredentialFiles({
      registryCredentials: { "ghcr.io": { username: "robot", password } },
    }),
  ],
});

it("credentials of registries are there before the kubelet, change under it, and go with the setting", async () => {
  const machine = machineIn({}, pullingBy("first"));
  machine.program(
    "kubeadm",
    `cp "$root${path}" "$root/at-join"
${programs.kubeadm}`,
  );

  expect(await bootstrap(machine)).toMatchObject({ code: 0 });
  expect(machine.read("/at-join")).toContain("first");

  machine.forgetCalls();
  ship(machine, pullingBy("second"));
  expect(await bootstrap(machine)).toMatchObject({ code: 0 });
  expect(machine.read(path)).toContain("second");
  expect(machine.callsOf("systemctl").filter((call) => call.includes("kubelet"))).toEqual([]);

  ship(machine, worker);
  expect(await bootstrap(machine)).toMatchObject({ code: 0 });
  expect(machine.has(path)).toBe(false);
});

it("containerd is told to ask no mirror for their images, on a living machine too", async () => {
  const registryCredentials = { "registry.example:5000/team": { username: "a", password: "b" } };
  const hosts = registryHostFiles({ mirror: "http://10.0.0.4", registryCredentials }, []);
  const machine = machineIn({}, { ...worker, files: [...worker.files, ...hosts] });
  machine.write("/var/lib/zoned/joined", "");

  await bootstrap(machine);

  expect(machine.read("/etc/containerd/certs.d/registry.example:5000/hosts.toml")).toBe("");
});

it("credentials that somebody else has put there stay", async () => {
  const machine = machineIn({}, worker);
  machine.write(path, "theirs");

  await bootstrap(machine);

  expect(machine.read(path)).toBe("theirs");
});
