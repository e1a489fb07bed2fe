import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { onPath } from "../../../../programs/engine";
import type { InstallOptions } from "../../../../programs/installs";
import { cacheFolder } from "../../../../programs/tools";
import { Interrupted, messageOf, UserError } from "../../../../shared/user-error";
import { debianArchive, release } from "./debian";
import { run } from "../command";
import type { Qemu } from "../hypervisor";

/** From this version on, machines without KVM start processes three times as fast as on 7.2. */
const newEnough = 9;

const versionOf = async (command: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> => {
  const text = await run([...command, "--version"], { env });
  return /version (\d+\.\d+(\.\d+)?)/.exec(text)?.[1] ?? "0";
};

/** The host's own QEMU when it is new enough, else Debian's from a folder of the cache. */
export async function prepareQemu(options: InstallOptions): Promise<Qemu> {
  const own = onPath("qemu-system-x86_64");
  const img = onPath("qemu-img");
  if (own !== undefined && img !== undefined) {
    const version = await versionOf([own]);
    if (Number.parseInt(version, 10) >= newEnough) {
      return { version, command: [own], environment: {}, img: [img] };
    }
  }
  const folder = join(options.cache ?? cacheFolder(), `qemu-${release}`);
  if (!existsSync(folder)) await unpack(folder, options);
  return packaged(folder);
}

async function unpack(folder: string, { progress, signal }: InstallOptions): Promise<void> {
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  const archive = await debianArchive();
  try {
    await progress.during(
      `fetching QEMU from Debian ${release}`,
      (step) =>
        run(
          [
            ...["mmdebstrap", "--variant=extract", "--include=qemu-system-x86,qemu-utils"],
            ...["--format=directory", release, draft, archive],
          ],
          { signal, onLine: step.update },
        ),
      "30 s",
    );
    renameSync(draft, folder);
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    throw new UserError(
      `there is no QEMU ${newEnough} or later here, and Debian's could not be fetched: ${messageOf(error)}\n` +
        "  Install it (`apt-get install qemu-system-x86 qemu-utils`, Debian 13 or Ubuntu 24.10 and later), or mmdebstrap and a way to Debian's packages.",
    );
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Programs of another release run through their own loader, over their own libraries. */
async function packaged(folder: string): Promise<Qemu> {
  const libraries = join(folder, "usr/lib/x86_64-linux-gnu");
  const loader = [
    join(libraries, "ld-linux-x86-64.so.2"),
    ...["--library-path", [libraries, ...subfolders(libraries)].join(":")],
  ];
  const command = [
    ...[...loader, join(folder, "usr/bin/qemu-system-x86_64")],
    ...["-L", join(folder, "usr/share/qemu"), "-L", join(folder, "usr/share/seabios")],
    ...["-L", join(folder, "usr/lib/ipxe/qemu")],
  ];
  const environment = { QEMU_MODULE_DIR: join(libraries, "qemu") };
  return {
    version: await versionOf(command, { ...process.env, ...environment }),
    command,
    environment,
    img: [...loader, join(folder, "usr/bin/qemu-img")],
  };
}

/** Some libraries lie one folder deeper. */
const subfolders = (libraries: string): string[] =>
  readdirSync(libraries, { withFileTypes: true })
    .filter(
      (entry) => entry.isDirectory() && /^(pulseaudio|samba|ceph|libfakeroot)$/.test(entry.name),
    )
    .map(({ name }) => join(libraries, name));
