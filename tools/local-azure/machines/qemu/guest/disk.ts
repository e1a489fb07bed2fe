import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { stringify } from "yaml";

import type { VirtualMachine } from "../../machines";
import { keyOf } from "../../../arm/resources/ids";
import { run } from "../command";
import { digest } from "../image/base-image";
import type { Qemu } from "../hypervisor";
import type { Plug } from "../network/network-view";
import { platformAddress } from "../network/ruleset";

/** A disk that others are a layer over. */
export interface Base {
  readonly path: string;
  readonly format: "raw" | "qcow2";
}

/** A machine's own disk: what it changes, over a base that it shares with others. */
export async function createDisk(
  { img, environment }: Qemu,
  base: Base,
  disk: string,
): Promise<void> {
  await run([...img, "create", "-q", "-f", "qcow2", "-F", base.format, "-b", base.path, disk], {
    env: { ...process.env, ...environment },
  });
}

const pathOfCaptured = (folder: string, image: string): string =>
  join(folder, `${digest([keyOf(image)])}.qcow2`);

/** The disk of a gallery image, which was made of a machine here; undefined for Azure's own images. */
export function capturedDisk(folder: string, image: string): Base | undefined {
  if (!image.startsWith("/")) return undefined;
  const path = pathOfCaptured(folder, image);
  if (existsSync(path)) return { path, format: "qcow2" };
  throw new Error(`there is no disk of image ${image}: make it anew`);
}

/** Copies all of a disk that nobody writes to any more, with what lies below it. */
export async function captureDisk(
  { img, environment }: Qemu,
  disk: string,
  folder: string,
  image: string,
): Promise<void> {
  const path = pathOfCaptured(folder, image);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await run([...img, "convert", "-q", "-O", "qcow2", disk, `${path}.new`], {
    env: { ...process.env, ...environment },
  });
  renameSync(`${path}.new`, path);
}

/**
 * What cloud-init finds on a disk named cidata: the customData byte for byte, and what Azure would
 * add, which is the machine's name and its address.
 */
export function seedFiles(
  { name, vmId, customData }: VirtualMachine,
  { mac, address, subnet }: Plug,
): Record<string, Buffer> {
  const text = (value: object): Buffer => Buffer.from(stringify(value));
  return {
    "user-data": Buffer.from(customData ?? "", "base64"),
    // Another id is another machine to cloud-init, so that all of its work is done anew.
    "meta-data": text({ "instance-id": vmId, "local-hostname": name }),
    "network-config": text({
      version: 2,
      ethernets: {
        eth0: {
          match: { macaddress: mac },
          addresses: [`${address}/${subnet.prefix.split("/")[1]}`],
          routes: [{ to: "0.0.0.0/0", via: subnet.gateway }],
          nameservers: { addresses: [platformAddress] },
        },
      },
    }),
  };
}

export function writeSeed(folder: string, files: Record<string, Buffer>): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
}
