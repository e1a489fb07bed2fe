import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { late } from "../../../../machines/qemu/image/debian";
import { seedFiles } from "../../../../machines/qemu/guest/disk";

const vmId = "e1685c58-e582-44bb-a8bc-a50e4fdb7db5";

/** Stand for what only root may do: mounting the seed's disk is copying what lies beside them. */
const programs = {
  mount: 'case $1 in -o) cp "$root/seed/meta-data" "$4" ;; --bind) cp -f "$2" "$3" ;; esac',
  umount: 'rm "$1/meta-data"',
  date: 'echo "date $*" >>"$root/commands"',
  systemctl: 'echo "systemctl $*" >>"$root/commands"',
};

test("what goes on from a snapshot takes the clock, and the identity that Azure gave its machine", () => {
  const root = mkdtempSync(join(tmpdir(), "zoned-itself-"));
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
  rmSync(root, { recursive: true });
});
