import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The release of Debian that base image and QEMU are taken from. */
export const release = "trixie";

const official = "http://deb.debian.org/debian";

/** Where this host takes Debian's packages from, which may be a mirror near it. */
export async function debianArchive(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)("apt-get", [
      ...["indextargets", "--format", "$(REPO_URI)"],
      ...["Created-By: Packages", "Origin: Debian", "Label: Debian"],
    ]);
    return stdout.split("\n")[0]?.trim().replace(/\/+$/, "") || official;
  } catch {
    return official;
  }
}
