import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { argumentsOf, type Base, createDisk, filesOf, type Hardware } from "./hardware";
import type { Accelerator, Qemu } from "../hypervisor";
import { type BaseImage, digest } from "../image/base-image";
import { run } from "../../../../shared/run";
import { waiting, waitsForItsOwn } from "../image/debian";
import { type Exchange, qmpSession } from "./agent";
import type { Shape } from "../sizes";

/** An emulated processor takes two minutes when the host has other work. */
export const bootWithin = 15 * 60_000;
const moveWithin = 2 * 60_000;

/** A machine of no name that has booted to where cloud-init looks for its seed. */
interface Snapshot {
  readonly disk: Base;
  readonly memory: string;
  readonly serial: string;
}

const snapshotIn = (folder: string): Snapshot => ({
  disk: { path: join(folder, "disk.qcow2"), format: "qcow2" },
  memory: join(folder, "memory"),
  serial: join(folder, "serial.log"),
});

/** systemd takes a machine's identity from it, and does not take one of zeros alone. */
const noMachine = "00000000-0000-4000-8000-000000000000";

/** Asks until a migration, which is how QEMU writes and reads memory, has come to its end. */
async function awaitMigration({ ask }: Exchange): Promise<void> {
  for (;;) {
    const { status, "error-desc": why } = await ask({ execute: "query-migrate" });
    if (status === "completed") return;
    if (status === "failed") throw new Error(`QEMU could not move the memory: ${why}`);
    await wait(100);
  }
}

/**
 * What emulated processors need not do for each machine: a boot is the same for all of a shape until
 * cloud-init asks who the machine is. It is made when the first of them is to boot, and kept beside
 * the base image.
 */
export class Snapshots {
  private readonly made = new Map<string, Promise<Snapshot>>();
  private readonly stopped = new AbortController();

  /** @param sockets folder whose path is short */
  constructor(
    private readonly settings: {
      readonly qemu: Qemu;
      readonly accelerator: Accelerator;
      readonly image: BaseImage;
    },
    private readonly sockets: string,
    private readonly log: (message: string) => void,
  ) {}

  /** That of a shape; undefined where a boot takes seconds anyway. */
  async of(shape: Shape): Promise<Snapshot | undefined> {
    if (this.settings.accelerator === "kvm") return undefined;
    const key = this.key(shape);
    const made = this.made.get(key) ?? this.findOrMake(key, shape);
    this.made.set(key, made);
    made.catch(() => this.made.delete(key));
    return await made;
  }

  /** Ends what is being made, which leaves nothing then. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await Promise.allSettled(this.made.values());
  }

  private async findOrMake(key: string, shape: Shape): Promise<Snapshot> {
    const folder = join(dirname(this.settings.image.disk), key);
    if (!existsSync(folder)) await this.make(folder, key, shape);
    return snapshotIn(folder);
  }

  private async make(folder: string, key: string, shape: Shape): Promise<void> {
    const { qemu, image } = this.settings;
    const draft = `${folder}.draft`;
    const sockets = join(this.sockets, key);
    const begun = Date.now();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.stopped.signal]);
    this.log(`booting a machine with ${cores(shape)} to where all of them go on from (once)`);
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft, { recursive: true });
    mkdirSync(sockets, { recursive: true, mode: 0o700 });
    const { disk, memory, serial } = snapshotIn(draft);
    const files = { ...filesOf(draft, sockets), disk: disk.path, serial };
    const hardware = this.hardware(shape, files);
    try {
      await createDisk(qemu, { path: image.disk, format: "raw" }, disk.path);
      // No VM uses it yet; it ends with the process that makes it.
      const command = ["setpriv", "--pdeathsig", "KILL", ...qemu.command];
      const running = run([...command, ...argumentsOf(hardware)], {
        signal,
        env: qemu.environment,
      });
      await Promise.all([this.save(hardware, memory, signal), running]);
      if (!existsSync(folder)) renameSync(draft, folder);
      this.log(`booted one with ${cores(shape)} in ${Math.round((Date.now() - begun) / 1000)} s`);
    } finally {
      over.abort();
      for (const left of [draft, sockets]) rmSync(left, { recursive: true, force: true });
    }
  }

  private async save({ files }: Hardware, memory: string, signal: AbortSignal): Promise<void> {
    for (const until = Date.now() + bootWithin; ; await wait(250, undefined, { signal })) {
      if (existsSync(files.serial) && readFileSync(files.serial, "utf8").includes(waiting)) break;
      if (Date.now() > until) {
        throw new Error(`no machine has booted within ${bootWithin / 60_000} min`);
      }
    }
    await qmpSession(files.qmp, moveWithin, async (exchange) => {
      const { ask } = exchange;
      await ask({ execute: "stop" });
      const unhindered = { "max-bandwidth": 2 ** 40 };
      await ask({ execute: "migrate-set-parameters", arguments: unhindered });
      await ask({ execute: "migrate", arguments: { uri: `file:${memory}` } });
      await awaitMigration(exchange);
      await ask({ execute: "quit" });
    });
  }

  private hardware = (shape: Shape, files: Hardware["files"]): Hardware => {
    const { image, accelerator } = this.settings;
    const kernelArguments = waitsForItsOwn;
    return { name: "snapshot", uuid: noMachine, shape, files, image, accelerator, kernelArguments };
  };

  /** Other hardware, or another QEMU, has another snapshot. */
  private key(shape: Shape): string {
    const hardware = this.hardware(shape, filesOf("", ""));
    return `booted-${digest([this.settings.qemu.version, ...argumentsOf(hardware)])}`;
  }
}

const cores = ({ cores: count, memoryMib }: Shape): string =>
  `${count} ${count === 1 ? "processor" : "processors"} and ${memoryMib} MiB`;

/**
 * What a machine is started with that goes on from a snapshot: it stands still until it is woken.
 */
export const incomingArguments = ({ memory }: Snapshot): string[] => [
  "-S",
  "-incoming",
  `file:${memory}`,
];

/** Plugs in what is its own, and lets it go on. */
export async function wake(qmp: string, devices: readonly Record<string, string>[]): Promise<void> {
  for (const until = Date.now() + moveWithin; ; await wait(50)) {
    try {
      return await qmpSession(qmp, moveWithin, async (exchange) => {
        await awaitMigration(exchange);
        for (const device of devices) {
          await exchange.ask({ execute: "device_add", arguments: device });
        }
        await exchange.ask({ execute: "cont" });
      });
    } catch (error) {
      const isThereYet = !["ENOENT", "ECONNREFUSED"].includes(
        String((error as NodeJS.ErrnoException).code),
      );
      if (isThereYet || Date.now() > until) throw error;
    }
  }
}
