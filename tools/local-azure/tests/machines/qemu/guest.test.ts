import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { testFolder } from "../../../../../tests/support/test-folder";
import type { VirtualMachine } from "../../../machines/machines";
import { leadToResourceManager } from "../../../machines/qemu/guest/agent";
import { Guest } from "../../../machines/qemu/guest/guest";
import { seedFiles } from "../../../machines/qemu/guest/hardware";
import { Snapshots } from "../../../machines/qemu/guest/snapshots";
import type { Host } from "../../../machines/qemu/host";
import { late, waiting } from "../../../machines/qemu/image/debian";
import type { Namespaces } from "../../../machines/qemu/network/namespaces";
import type { Plug } from "../../../machines/qemu/network/network-view";
import { niceness } from "../../../machines/qemu/sizes";
import { standIn } from "../../support/qemu/fixture";

describe("a guest", () => {
  /**
   * Stands for QEMU: it writes down its commands, its agent answers, and a script ends when its
   * exit code lies beside this file.
   */
  const machine = `
const programs = [];
const answers = {
  "guest-sync": ({ id }) => id,
  "guest-exec": ({ arg }) => ({ pid: programs.push(arg.join()) - 1 }),
  "guest-exec-status": ({ pid }) => {
    const code = __dirname + "/exit-code";
    if (!programs[pid].includes("./script.sh")) return { exited: true, exitcode: 0 };
    return fs.existsSync(code) ? { exited: true, exitcode: Number(fs.readFileSync(code)) } : { exited: false };
  },
};
serve("agent", "", (execute, given) => answers[execute]?.(given));
monitor((execute, given) => {
  fs.appendFileSync(__dirname + "/commands", JSON.stringify([execute, given ?? null]) + "\\n");
  if (execute === "query-migrate") return { status: "completed" };
});
`;

  const vm: VirtualMachine = {
    ...{ id: "/vm", name: "one", vmId: "4bd1cad0-e818", location: "southeastasia" },
    ...{ size: "Standard_B2s", resourceGroup: "rg", subscriptionId: "s", privateAddress: "" },
    ...{ image: "debian", identities: [], isOff: false },
  };
  const plug: Plug = {
    ...{ network: "n", tap: "t", mac: "00:0d:3a:00:00:01", address: "172.16.1.9" },
    ...{ isBalanced: false, isFirst: false },
    subnet: { prefix: "172.16.1.0/24", gateway: "172.16.1.1" } as Plug["subnet"],
  };
  const initialControlPlane: Plug = { ...plug, isBalanced: true, isFirst: true };
  const further: Plug = { ...plug, isBalanced: true };

  let folder: string;
  let guest: Guest;
  let hasSnapshot: boolean;
  beforeEach(() => {
    folder = testFolder();
    hasSnapshot = true;
  });
  afterEach(() => guest.remove());

  async function boot(where: Plug, image = vm.image): Promise<void> {
    const host: Host = {
      qemu: standIn(folder, machine),
      namespaces: {
        plug: async () => undefined,
        of: () => "",
        within: (_: string, command: readonly string[]) => [...command],
      } as Partial<Namespaces> as Namespaces,
      snapshots: {
        of: async () => {
          writeFileSync(join(folder, "serial"), "Linux version 6\n");
          return hasSnapshot
            ? {
                disk: { path: "", format: "qcow2" },
                memory: "/snapshot/memory",
                serial: join(folder, "serial"),
              }
            : undefined;
        },
        stop: async () => undefined,
      },
      image: { disk: "", kernel: "", initrd: "" },
      ...{
        accelerator: "tcg",
        mirror: "",
        cloudProvider: false,
        scale: 1,
        cores: 2,
        oneVcpuEach: false,
      },
      ...{ machines: folder, images: folder, sockets: folder, log: () => undefined },
    };
    guest = Guest.of({ ...vm, image }, host);
    await guest.boot(where);
    await guest.awaitAgent();
  }

  const processOf = (): number => {
    const place = readdirSync(folder).find((name) => existsSync(join(folder, name, "qemu.pid")))!;
    return JSON.parse(readFileSync(join(folder, place, "qemu.pid"), "utf8")).pid;
  };
  const wordsOf = (): string[] =>
    readFileSync(`/proc/${processOf()}/cmdline`, "utf8").split("\0").slice(0, -1);
  const commands = (): [string, object | null][] =>
    readFileSync(join(folder, "commands"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  const own = [
    { driver: "virtio-blk-pci", drive: "seed", bus: "seed-port" },
    { driver: "virtio-net-pci", netdev: "nic", mac: plug.mac, bus: "nic-port" },
  ];
  const givesWay = (): boolean => getPriority(processOf()) === niceness.givingWay;

  test("a machine gives way until its script begins, unless it is the first behind a balancer", async () => {
    await boot(initialControlPlane);
    expect(givesWay()).toBe(false);
    expect(wordsOf().join(" ")).toContain(" -smp 2 ");
    await guest.remove();

    await boot(further);
    expect(givesWay()).toBe(true);
    const running = guest.runScript("true");
    while (givesWay()) await wait(20);
    writeFileSync(join(folder, "exit-code"), "7");
    expect((await running).exitCode).toBe(7);
  });

  test("a new machine goes on from a snapshot, and gets its own seed and interface before it does", async () => {
    await boot(plug);
    expect(wordsOf().slice(-3)).toEqual(["-S", "-incoming", "file:/snapshot/memory"]);
    expect(wordsOf().join(" ")).toContain(" -smp 1 ");
    expect(commands().slice(-3)).toEqual([
      ...own.map((device) => ["device_add", device]),
      ["cont", null],
    ]);
    expect(readFileSync(guest.files.serial, "utf8")).toBe("Linux version 6\n");
  });

  test("without a snapshot it has both from the start, as one has that is switched on again", async () => {
    const atOnce = own.flatMap((device) => ["-device", JSON.stringify(device)]);
    hasSnapshot = false;
    await boot(plug);
    expect(wordsOf().slice(-4)).toEqual(atOnce);
    await guest.remove();

    hasSnapshot = true;
    await boot(plug);
    await guest.cutPower();
    await boot(plug);
    expect(wordsOf().slice(-4)).toEqual(atOnce);
  });

  test("one that was not woken, since the local Azure was killed, begins anew", async () => {
    await boot(plug);
    const first = processOf();
    renameSync(guest.files.disk, `${guest.files.disk}.new`);

    await boot(plug);

    expect(processOf()).not.toBe(first);
    expect(wordsOf()).toContain("-incoming");
  });

  test("an image is all of a machine's disk, and a machine of it goes on from no snapshot", async () => {
    const image = "/subscriptions/s/galleries/zoned/images/node/versions/1.0.0";
    await boot(plug);
    await guest.cutPower();
    await guest.capture(image);
    await guest.remove();

    await boot(plug, image);
    expect(wordsOf()).not.toContain("-incoming");
    await guest.remove();

    await expect(boot(plug, `${image}1`)).rejects.toThrow(/no disk of image .*1\.0\.01/);
  });

  test("a machine that was never switched on has not died", () => {
    guest = Guest.of(vm, { machines: folder, sockets: folder } as Host);
    expect([guest.power, guest.hasShutDown]).toEqual(["stopped", false]);
  });
});

describe("snapshots", () => {
  /**
   * Stands for QEMU: it says on its console that it waits, and writes its memory where its arguments say.
   */
  const machine = `
fs.appendFileSync(__dirname + "/booted", process.argv.join(" ") + "\\n");
if (fs.existsSync(__dirname + "/broken")) {
  console.error("no such processor");
  process.exit(1);
}
const waits = () => fs.existsSync(__dirname + "/slow") || fs.writeFileSync(pathOf("serial"), ${JSON.stringify(waiting)});
monitor((execute, given) => {
  if (execute === "migrate") fs.writeFileSync(given.uri.replace("file:", ""), "memory");
  if (execute === "query-migrate") return { status: "completed" };
}, waits);
`;

  let folder: string;
  let said: string[];
  const cache = () => join(folder, "base");
  const booted = (): string[] =>
    readFileSync(join(folder, "booted"), "utf8").trim().split("\n").filter(Boolean);

  beforeEach(() => {
    folder = testFolder();
    said = [];
    mkdirSync(cache());
    writeFileSync(join(folder, "booted"), "");
  });

  const snapshots = (accelerator: "tcg" | "kvm" = "tcg"): Snapshots =>
    new Snapshots(
      {
        qemu: standIn(folder, machine),
        accelerator,
        image: { disk: join(cache(), "disk"), kernel: "", initrd: "" },
      },
      join(folder, "run"),
      (line) => said.push(line),
    );

  const shape = { cores: 1, memoryMib: 3072 };

  test("one machine boots for all of a shape, and for those of the next start", async () => {
    const these = snapshots();
    const [first, second] = await Promise.all([these.of(shape), these.of(shape)]);
    const later = await snapshots().of(shape);

    expect(booted()).toHaveLength(1);
    expect(second).toEqual(first);
    expect(later).toEqual(first);
    expect(readFileSync(first!.memory, "utf8")).toBe("memory");
    expect(readFileSync(first!.serial, "utf8")).toContain(waiting);
    expect(existsSync(first!.disk.path)).toBe(true);
    expect(said[0]).toContain("1 processor and 3072 MiB");
  });

  test("what cannot boot is reported with its words and leaves nothing, and the next machine tries again", async () => {
    const these = snapshots();
    writeFileSync(join(folder, "broken"), "");
    await expect(these.of(shape)).rejects.toThrow("no such processor");
    expect(readdirSync(cache())).toEqual([]);
    expect(readdirSync(join(folder, "run"))).toEqual([]);

    rmSync(join(folder, "broken"));
    expect(await these.of(shape)).toBeDefined();
  });

  test("a local Azure that is stopped meanwhile ends it, and leaves nothing of it", async () => {
    const these = snapshots();
    writeFileSync(join(folder, "slow"), "");
    const made = these.of(shape);
    while (booted().length === 0) await wait(20);
    await Promise.all([these.stop(), expect(made).rejects.toThrow()]);
    expect(readdirSync(cache())).toEqual([]);
    expect(readdirSync(join(folder, "run"))).toEqual([]);
  });

  test("with KVM a machine boots by itself, which takes seconds", async () => {
    expect(await snapshots("kvm").of(shape)).toBeUndefined();
  });

  const vmId = "e1685c58-e582-44bb-a8bc-a50e4fdb7db5";

  /** Stand for what only root may do: mounting the seed's disk is copying what lies beside them. */
  const programs = {
    mount: 'case $1 in -o) cp "$root/seed/meta-data" "$4" ;; --bind) cp -f "$2" "$3" ;; esac',
    umount: 'rm "$1/meta-data"',
    date: 'echo "date $*" >>"$root/commands"',
    systemctl: 'echo "systemctl $*" >>"$root/commands"',
  };

  test("what goes on from a snapshot takes the clock, and the identity that Azure gave its machine", () => {
    const root = testFolder();
    for (const folder of ["bin", "seed", "etc", "run", "sys/class/dmi/id", "sys/class/rtc/rtc0"]) {
      mkdirSync(join(root, folder), { recursive: true });
    }
    for (const [name, body] of Object.entries(programs)) {
      writeFileSync(join(root, "bin", name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    }
    const vm = { name: "one", vmId } as Parameters<typeof seedFiles>[0];
    const plug = { subnet: { prefix: "10.0.0.0/24" } } as Parameters<typeof seedFiles>[1];
    writeFileSync(join(root, "seed/meta-data"), seedFiles(vm, plug)["meta-data"]!);
    writeFileSync(join(root, "sys/class/rtc/rtc0/since_epoch"), "1795370121\n");
    writeFileSync(join(root, "sys/class/dmi/id/product_uuid"), "another\n");
    writeFileSync(join(root, "etc/machine-id"), "another\n");
    const { text = "" } = late.find(({ path }) => path.endsWith("/become-itself")) ?? {};

    execFileSync("sh", ["-ec", text.replace(/([ >(<])\/(sys|run|etc)\//g, `$1${root}/$2/`)], {
      env: { PATH: `${join(root, "bin")}:${process.env["PATH"]}`, root },
    });

    const read = (path: string) => readFileSync(join(root, path), "utf8").trim();
    expect(read("sys/class/dmi/id/product_uuid")).toBe(vmId);
    expect(read("etc/machine-id")).toBe(vmId.replaceAll("-", ""));
    // The journal is begun anew once the identity is there, since it lies in a folder of that name.
    expect(read("commands").split("\n")).toEqual([
      "date --set=@1795370121",
      "systemctl restart systemd-journald.service",
    ]);
  });

  test("a machine finds Resource Manager at its own loopback, on the host's port, and trusts its authority", async () => {
    const authority = join(folder, "azure-ca.crt");
    writeFileSync(authority, "the authority");
    const files: Record<string, string> = {};
    const ran: string[][] = [];
    const agent = {
      write: async (path: string, text: string) => void (files[path] = text),
      run: async (...command: string[]) => {
        ran.push(command);
        return { exitCode: 0, stdout: "" };
      },
    };

    await leadToResourceManager(agent, 4711, authority);

    expect(files["/etc/ssl/certs/local-azure.pem"]).toBe("the authority");
    expect(files["/etc/systemd/system/local-azure.socket"]).toContain(
      "ListenStream=127.0.0.1:4711",
    );
    expect(files["/etc/systemd/system/local-azure.service"]).toContain(
      "socket-proxyd 198.18.3.1:443",
    );
    expect(ran).toEqual([["/usr/bin/systemctl", "enable", "--now", "local-azure.socket"]]);
  });
});
