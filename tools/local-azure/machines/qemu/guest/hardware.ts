import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";

import { keyOf } from "../../../arm/resources/resource";
import type { VirtualMachine } from "../../machines";
import { run } from "../../../../shared/run";
import type { Accelerator, Qemu } from "../hypervisor";
import { type BaseImage, digest } from "../image/base-image";
import type { Plug } from "../network/network-view";
import { platformAddress } from "../network/ruleset";
import { type Shape, translatedMib } from "../sizes";

/** Where things of one machine are. */
export interface MachineFiles {
  readonly disk: string;
  readonly seed: string;
  readonly serial: string;
  /** Sockets' paths are short, whatever the state folder's is. */
  readonly qmp: string;
  readonly agent: string;
  readonly console: string;
}

export const filesOf = (folder: string, sockets: string): MachineFiles => ({
  disk: join(folder, "disk.qcow2"),
  seed: join(folder, "seed"),
  serial: join(folder, "serial.log"),
  qmp: join(sockets, "qmp"),
  agent: join(sockets, "agent"),
  console: join(sockets, "console"),
});

export interface Hardware {
  readonly name: string;
  /** As the machine's firmware reports it; the kubelet reports it as its node's system UUID. */
  readonly uuid: string;
  readonly shape: Shape;
  readonly files: MachineFiles;
  readonly image: BaseImage;
  readonly accelerator: Accelerator;
  /** Besides the arguments that all kernels get. */
  readonly kernelArguments?: string;
}

const always = "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet";

/**
 * What an emulated processor needs: no clock that is asked all the time, no work for safety's
 * sake, and time. Where there is IPv6, kube-proxy writes all its sets and rules a second time, also
 * in a cluster of IPv4 alone.
 */
const tcgKernelArgs =
  "mitigations=off audit=0 lsm=capability tsc=reliable clocksource=tsc no5lvl nowatchdog highres=off " +
  "init_on_alloc=0 transparent_hugepage=never preempt=none ipv6.disable=1 " +
  "systemd.default_device_timeout_sec=900 systemd.default_timeout_start_sec=900 " +
  "systemd.mask=serial-getty@ttyS0.service";

/** Without what has kernels fill and copy memory byte by byte, which is fast on silicon only. */
const tcgCpu = "max,-erms,-fsrm";

/** Where devices can be plugged into a machine that runs. */
const ports = { seed: "seed-port", nic: "nic-port" };

const quoted = (path: string): string => path.replaceAll(",", ",,");

/**
 * QEMU's arguments for a machine without what makes it one of its kind. Nothing of them is secret.
 */
export function argumentsOf(hardware: Hardware): string[] {
  const { name, uuid, shape, files, image, accelerator, kernelArguments } = hardware;
  const socket = (id: string, path: string): string[] => [
    "-chardev",
    `socket,id=${id},path=${quoted(path)},server=on,wait=off`,
  ];
  const isTcg = accelerator === "tcg";
  const toKernel = [always, ...(isTcg ? [tcgKernelArgs] : []), kernelArguments].filter(Boolean);
  return [
    ...["-name", name, "-uuid", uuid, "-nodefaults", "-no-user-config", "-display", "none"],
    ...["-machine", "q35", "-accel", isTcg ? `tcg,thread=multi,tb-size=${translatedMib}` : "kvm"],
    ...["-cpu", isTcg ? tcgCpu : "host"],
    ...["-smp", String(shape.cores), "-m", String(shape.memoryMib), "-rtc", "base=utc"],
    ...["-kernel", image.kernel, "-initrd", image.initrd, "-append", toKernel.join(" ")],
    ...[
      "-drive",
      `file=${quoted(files.disk)},if=none,id=os,format=qcow2,cache=unsafe,discard=unmap`,
    ],
    ...["-device", "virtio-blk-pci,drive=os"],
    ...["-device", `pcie-root-port,id=${ports.seed},chassis=1`],
    ...["-device", `pcie-root-port,id=${ports.nic},chassis=2`],
    ...["-device", "virtio-rng-pci"],
    // Two machines that go on from one snapshot would draw the same random numbers.
    ...["-device", "vmgenid,guid=auto"],
    ...[
      "-chardev",
      `file,id=serial,path=${quoted(files.serial)},append=on`,
      "-serial",
      "chardev:serial",
    ],
    ...["-device", "virtio-serial-pci"],
    ...socket("agent", files.agent),
    ...["-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"],
    ...socket("console", files.console),
    ...["-device", "virtconsole,chardev=console"],
    ...socket("qmp", files.qmp),
    ...["-mon", "chardev=qmp,mode=control"],
  ];
}

/** What is behind the devices of its own. */
export const ownBackends = ({ tap }: Plug, { seed }: MachineFiles): string[] => [
  "-drive",
  `file.driver=vvfat,file.dir=${quoted(seed)},file.label=cidata,if=none,id=seed,format=raw,readonly=on`,
  ...["-netdev", `tap,id=nic,ifname=${tap},script=no,downscript=no`],
];

/**
 * The devices that make a machine one of its kind, there from the start or plugged in while it
 * waits for them.
 */
export const ownDevices = ({ mac }: Plug): Record<string, string>[] => [
  { driver: "virtio-blk-pci", drive: "seed", bus: ports.seed },
  { driver: "virtio-net-pci", netdev: "nic", mac, bus: ports.nic },
];

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
    env: environment,
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
    env: environment,
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
