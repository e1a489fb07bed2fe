import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { testFolder } from "../../../../../tests/support/test-folder";
import { seedFiles } from "../../../machines/qemu/guest/hardware";
import { leadToResourceManager } from "../../../machines/qemu/guest/agent";
import { late, waiting } from "../../../machines/qemu/image/debian";
import { Snapshots } from "../../../machines/qemu/guest/snapshots";
import { standIn } from "../../support/qemu/fixture";

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
  expect(files["/etc/systemd/system/local-azure.socket"]).toContain("ListenStream=127.0.0.1:4711");
  expect(files["/etc/systemd/system/local-azure.service"]).toContain(
    "socket-proxyd 198.18.3.1:443",
  );
  expect(ran).toEqual([["/usr/bin/systemctl", "enable", "--now", "local-azure.socket"]]);
});
