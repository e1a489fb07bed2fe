import { existsSync, mkdirSync, writeFileSync } from "node:fs";

import type { Progress } from "../shared/progress";
import { run } from "../shared/run";
import { Interrupted, messageOf, UserError } from "../shared/user-error";
import { onPath } from "./engine";

/** Commands, and Debian's packages of them. */
type Wanted = Readonly<Record<string, string>>;

/** What a lab of kube-proxy runs besides the tools of a rehearsal. */
export const forLab: Wanted = { ip: "iproute2", iptables: "iptables", nft: "nftables" };

/** What real machines are made with, besides what their mirror is. */
export const forMachines: Wanted = {
  ...{ ip: "iproute2", mke2fs: "e2fsprogs", mmdebstrap: "mmdebstrap", nft: "nftables" },
  ...{ sysctl: "procps", unshare: "util-linux" },
};

/** What fills a mirror. */
export const forMirror: Wanted = {
  "apt-get": "apt",
  "dpkg-deb": "dpkg",
  gpg: "gnupg",
  gpgconf: "gpgconf",
  tar: "tar",
};

/** What the tests run besides them. */
const forTests: Wanted = {
  shellcheck: "shellcheck",
  "cloud-init": "cloud-init",
  containerd: "containerd",
  "systemd-analyze": "systemd",
  ...forLab,
};

/** Administrators' commands lie where a user's PATH often does not lead. */
const missingOf = (wanted: Wanted): [command: string, name: string][] =>
  Object.entries(wanted).filter(
    ([command]) => onPath(command, `${process.env.PATH ?? ""}:/usr/sbin:/sbin`) === undefined,
  );

/** @throws UserError that names every command that is missing */
export function requireCommands(wanted: Wanted): void {
  const missing = missingOf(wanted);
  if (missing.length === 0) return;
  throw new UserError(
    `this needs ${missing.map(([command]) => command).join(", ")}, which ${missing.length === 1 ? "is" : "are"} not installed: ` +
      `sudo apt-get install --no-install-recommends ${missing.map(([, name]) => name).join(" ")}`,
  );
}

/**
 * Makes sure of the system's own programs: installs them where that is ours to do, else names them
 * all.
 */
export async function debianPackages(
  progress: Progress,
  signal: AbortSignal,
  wanted = forTests,
): Promise<void> {
  const packages = missingOf(wanted).map(([, name]) => name);
  if (packages.length === 0) return;
  const isOurs = process.getuid?.() === 0 && onPath("apt-get") !== undefined;
  if (!isOurs) requireCommands(wanted);
  if (packages.includes("cloud-init")) keepCloudInitAsleep();
  await progress.during(
    `installing ${packages.join(", ")} with apt-get`,
    async () => {
      const options = { env: { DEBIAN_FRONTEND: "noninteractive" }, signal };
      try {
        await run(["apt-get", "update", "--quiet"], options);
        const flags = ["install", "--yes", "--quiet", "--no-install-recommends"];
        await run(["apt-get", ...flags, ...packages], options);
      } catch (error) {
        if (signal.aborted) throw new Interrupted();
        throw new UserError(
          `apt-get could not install ${packages.join(", ")}: ${messageOf(error)}`,
        );
      }
    },
    "20 s to 1 min",
  );
}

/** Its schema check is wanted, and by no means what it would do at this machine's next boot. */
function keepCloudInitAsleep(): void {
  const off = "/etc/cloud/cloud-init.disabled";
  if (existsSync(off)) return;
  mkdirSync("/etc/cloud", { recursive: true });
  writeFileSync(off, "");
}
