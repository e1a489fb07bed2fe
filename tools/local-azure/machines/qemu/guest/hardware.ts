import { join } from "node:path";

import type { BaseImage } from "../image/base-image";
import type { Accelerator } from "../hypervisor";
import type { Plug } from "../network/network-view";
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
