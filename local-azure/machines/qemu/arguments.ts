import { join } from "node:path";

import type { Accelerator } from "./hypervisor";
import type { Plug } from "./network-view";
import { type Shape, translatedMib } from "./sizes";

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
  /** As the machine's firmware tells it; the kubelet reports it as its node's system UUID. */
  readonly uuid: string;
  readonly shape: Shape;
  readonly plug: Plug;
  readonly files: MachineFiles;
  readonly kernel: string;
  readonly initrd: string;
  readonly accelerator: Accelerator;
}

const always = "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet";

/** What a processor that is played needs: no clock that is asked all the time, no work for safety's sake, and time. */
const unhurried =
  "mitigations=off audit=0 lsm=capability tsc=reliable clocksource=tsc no5lvl nowatchdog highres=off " +
  "init_on_alloc=0 transparent_hugepage=never preempt=none " +
  "systemd.default_device_timeout_sec=900 systemd.default_timeout_start_sec=900 " +
  "systemd.mask=serial-getty@ttyS0.service";

/** Without what has kernels fill and copy memory byte by byte, which is fast on silicon only. */
const playedProcessor = "max,-erms,-fsrm";

const quoted = (path: string): string => path.replaceAll(",", ",,");

/** QEMU's arguments for a machine. Nothing of them is secret. */
export function argumentsOf(hardware: Hardware): string[] {
  const { name, uuid, shape, plug, files, kernel, initrd, accelerator } = hardware;
  const socket = (id: string, path: string): string[] => [
    "-chardev",
    `socket,id=${id},path=${quoted(path)},server=on,wait=off`,
  ];
  const isPlayed = accelerator === "tcg";
  return [
    ...["-name", name, "-uuid", uuid, "-nodefaults", "-no-user-config", "-display", "none"],
    ...[
      "-machine",
      "q35",
      "-accel",
      isPlayed ? `tcg,thread=multi,tb-size=${translatedMib}` : "kvm",
    ],
    ...["-cpu", isPlayed ? playedProcessor : "host"],
    ...["-smp", String(shape.cores), "-m", String(shape.memoryMib), "-rtc", "base=utc"],
    ...["-kernel", kernel, "-initrd", initrd],
    ...["-append", isPlayed ? `${always} ${unhurried}` : always],
    ...[
      "-drive",
      `file=${quoted(files.disk)},if=none,id=os,format=qcow2,cache=unsafe,discard=unmap`,
    ],
    ...["-device", "virtio-blk-pci,drive=os"],
    ...[
      "-drive",
      `file.driver=vvfat,file.dir=${quoted(files.seed)},file.label=cidata,if=none,id=seed,format=raw,readonly=on`,
    ],
    ...["-device", "virtio-blk-pci,drive=seed"],
    ...["-netdev", `tap,id=nic,ifname=${plug.tap},script=no,downscript=no`],
    ...["-device", `virtio-net-pci,netdev=nic,mac=${plug.mac}`],
    ...["-device", "virtio-rng-pci"],
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
