import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

import { Reboots, sentinelScript } from "../../../components/add-ons/reboots";
import { dependenciesOf, Recorder } from "../../support/record";
import { testFolder } from "../../support/test-folder";

const window = { days: ["tue", "sat"], from: "02:00", to: "05:00" };

async function build() {
  const recorder = await Recorder.start();
  new Reboots(
    "reboots",
    { settings: { drainMinutes: 20 }, window },
    { transformations: [recorder.watch] },
  );
  const daemonSet = await recorder.object("DaemonSet", "kured");
  const { spec } = daemonSet.inputs.spec.template;
  const flags: string[] = spec.containers[0].args;
  return { recorder, daemonSet, spec, flags };
}

describe("kured", () => {
  it("reboots in the window alone, one machine at a time", async () => {
    const { flags } = await build();

    expect(flags).toEqual(
      expect.arrayContaining([
        "--reboot-days=tue,sat",
        "--start-time=02:00",
        "--end-time=05:00",
        "--time-zone=UTC",
        "--concurrency=1",
      ]),
    );
  });

  it("gives pods and their budgets as long as every other drain, and forces none", async () => {
    const { flags } = await build();

    expect(flags).toContain("--drain-timeout=20m");
    expect(flags.join()).not.toContain("force-reboot");
  });

  it("keeps its lock over a long repair, since it uncordons nothing without, and not for ever", async () => {
    const { flags } = await build();

    const [, minutes] = /--lock-ttl=(\d+)m/.exec(flags.join(" ")) ?? [];
    expect(Number(minutes)).toBe(20 + 12 * 60);
  });

  it("runs on every machine, whatever its taints", async () => {
    const { spec } = await build();

    expect(spec.tolerations).toEqual([{ operator: "Exists" }]);
    expect(spec.nodeSelector).toEqual({ "kubernetes.io/os": "linux" });
    expect(spec.priorityClassName).toBe("system-node-critical");
  });

  it("locks by its own DaemonSet, and may change no other, nor this one before a policy says what of it", async () => {
    const { recorder } = await build();

    const role = await recorder.object("Role", "kured");
    const [before] = await dependenciesOf(role);
    expect(before!.constructor.name).toBe("ValidatingAdmissionPolicyBinding");
    expect(role.inputs.rules).toEqual([
      {
        apiGroups: ["apps"],
        resources: ["daemonsets"],
        resourceNames: ["kured"],
        verbs: ["update"],
      },
    ]);
  });

  it("may drain and cordon, as its makers' own kured-rbac.yaml allows it, and nothing else", async () => {
    const { recorder, daemonSet } = await build();

    const { rules } = (await recorder.object("ClusterRole", "kured")).inputs;
    const allowed = rules.map(
      ({ apiGroups, resources, verbs }: Record<string, string[]>) =>
        `${apiGroups}/${resources}: ${[...verbs!].sort()}`,
    );
    expect(allowed.sort()).toEqual([
      "/nodes: get,patch",
      "/pods/eviction: create",
      "/pods: delete,get,list",
      "apps/daemonsets: get",
    ]);
    const { serviceAccountName } = daemonSet.inputs.spec.template.spec;
    for (const [binding, role] of [
      ["ClusterRoleBinding", "ClusterRole"],
      ["RoleBinding", "Role"],
    ] as const) {
      const { roleRef, subjects } = (await recorder.object(binding, "kured")).inputs;
      expect(roleRef).toMatchObject({ kind: role, name: "kured" });
      expect(subjects).toEqual([
        { kind: "ServiceAccount", name: serviceAccountName, namespace: "kube-system" },
      ]);
    }
  });

  it("can enter its machine and knows which that is, and is told nothing by a Service of its name", async () => {
    const { spec, flags } = await build();

    // As in its makers' kured-ds.yaml: nsenter into the mounts of process 1.
    expect(spec).toMatchObject({ hostPID: true, enableServiceLinks: false });
    expect(spec.containers[0]).toMatchObject({
      securityContext: { privileged: true },
      env: [{ name: "KURED_NODE_ID", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
    });
    // It has the network of a pod: its metrics need not be for all others.
    expect(flags).toContain("--metrics-host=127.0.0.1");
  });

  it("looks often enough that each machine of a window has its turn", async () => {
    const { flags } = await build();

    const [, minutes] = /--period=(\d+)m/.exec(flags.join(" ")) ?? [];
    expect(Number(minutes)).toBeLessThanOrEqual(10);
  });

  it("starts with the rights that it needs", async () => {
    const { daemonSet } = await build();

    const names = (await dependenciesOf(daemonSet)).map((one) => one.constructor.name).sort();
    expect(names).toEqual([
      "ClusterRole",
      "ClusterRoleBinding",
      "Role",
      "RoleBinding",
      "ServiceAccount",
    ]);
  });
});

describe("a machine", () => {
  let root: string;
  beforeEach(() => {
    root = testFolder();
    for (const folder of ["run", "bin", "opt/zoned"]) {
      mkdirSync(join(root, folder), { recursive: true });
    }
    // Another network is entered by root alone.
    writeFileSync(join(root, "bin/nsenter"), '#!/bin/sh\nshift 3\nexec "$@"\n');
    chmodSync(join(root, "bin/nsenter"), 0o755);
  });

  const isRebooted = async () => {
    const { flags } = await build();
    const [, command = ""] =
      /^--reboot-sentinel-command=sh -c '([^']*)'$/.exec(
        flags.find((flag) => flag.includes("sentinel"))!,
      ) ?? [];
    expect(command).toBe(sentinelScript);
    const script = command.replaceAll(/(?<= )\/(run|opt)\//g, `${root}/$1/`);
    const env = { ...process.env, PATH: `${join(root, "bin")}${delimiter}${process.env["PATH"]}` };
    const { status, stderr } = spawnSync("sh", ["-c", script], { env, encoding: "utf8" });
    expect(stderr).toBe("");
    return status === 0;
  };
  const asks = () => writeFileSync(join(root, "run/reboot-required"), "");
  const says = (what: string) =>
    writeFileSync(join(root, "opt/zoned/bootstrap.sh"), `[ "$1" = may_reboot ] && ${what}\n`);

  it("is rebooted when its system asks for it", async () => {
    says("true");
    expect(await isRebooted()).toBe(false);

    asks();
    expect(await isRebooted()).toBe(true);
  });

  it("is not rebooted while it may not be down, and by nothing but its own turn", async () => {
    const { flags } = await build();
    asks();
    says("exit 1");

    expect(await isRebooted()).toBe(false);
    expect(flags).toContain(
      "--reboot-command=nsenter --target 1 --net bash /opt/zoned/bootstrap.sh reboot_in_turn",
    );
  });
});
