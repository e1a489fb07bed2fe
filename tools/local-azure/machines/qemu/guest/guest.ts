import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { writeWhole } from "../../../../shared/files";
import type { ScriptResult, VirtualMachine } from "../../machines";
import { Agent, qmpCommand, runCustomScript } from "./agent";
import {
  argumentsOf,
  capturedDisk,
  captureDisk,
  createDisk,
  filesOf,
  type MachineFiles,
  ownBackends,
  ownDevices,
  seedFiles,
  writeSeed,
} from "./hardware";
import type { Host } from "../host";
import type { Plug } from "../network/network-view";
import { atNiceness, LastingProcess } from "../process";
import { mostCores, niceness, shapeOf } from "../sizes";
import { bootWithin, incomingArguments, wake } from "./snapshots";

const powerDownWithin = 90_000;

/** Where a machine stands. */
type Power = "running" | "stopped" | "died" | "deallocated";

interface SavedGuest {
  readonly vm: VirtualMachine;
  readonly isDeallocated: boolean;
}

/** The step that a machine is at, and for how long; every change is logged. */
class CurrentStep {
  private step = "";
  private since = Date.now();

  constructor(
    private readonly name: string,
    private readonly log: (message: string) => void,
  ) {}

  get now(): { readonly step: string; readonly seconds: number } {
    return { step: this.step, seconds: Math.round((Date.now() - this.since) / 1000) };
  }

  /** @param step empty when there is none */
  set(step: string): void {
    if (step === this.step) return;
    if (this.step !== "") this.log(`${this.name}: ${this.step}: ${this.now.seconds} s`);
    this.step = step;
    this.since = Date.now();
    if (step !== "") this.log(`${this.name}: ${step} begins`);
  }
}

/** One virtual machine, its disk and its process. */
export class Guest {
  readonly files: MachineFiles;
  readonly agent: Agent;
  readonly step: CurrentStep;
  private readonly process: LastingProcess;
  private isDeallocated = false;
  private niceness = 0;

  private constructor(
    public vm: VirtualMachine,
    private readonly host: Host,
    private readonly folder: string,
    private readonly sockets: string,
  ) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    mkdirSync(sockets, { recursive: true, mode: 0o700 });
    this.files = filesOf(folder, sockets);
    this.agent = new Agent(this.files.agent);
    this.step = new CurrentStep(vm.name, host.log);
    this.process = new LastingProcess(join(folder, "qemu"));
  }

  /** A machine as it was left, or one that is new. */
  static of(vm: VirtualMachine, host: Host): Guest {
    const place = `${vm.name}-${vm.vmId.slice(0, 8)}`;
    const sockets = join(host.sockets, vm.vmId.slice(0, 8));
    const guest = new Guest(vm, host, join(host.machines, place), sockets);
    if (existsSync(guest.record)) {
      const { isDeallocated } = JSON.parse(readFileSync(guest.record, "utf8")) as SavedGuest;
      guest.isDeallocated = isDeallocated;
    }
    guest.save();
    return guest;
  }

  get power(): Power {
    if (this.process.isAlive) return "running";
    if (this.isDeallocated) return "deallocated";
    const isStopped = !this.process.hasBegun || this.process.ending === "exit code 0";
    return isStopped ? "stopped" : "died";
  }

  /** Whether it has come to its end by itself, as after a poweroff in it. */
  get hasShutDown(): boolean {
    return this.process.hasBegun && this.power === "stopped";
  }

  /** Switches it on; one that runs is left as it is. */
  async boot(plug: Plug): Promise<void> {
    this.isDeallocated = false;
    this.save();
    await this.host.namespaces.plug(plug);
    const { vm, files, host } = this;
    const { qemu, image, accelerator, cores, oneVcpuEach } = host;
    const isWaitedFor = accelerator === "kvm" || plug.isBalanced;
    const shape = shapeOf(vm.size, host.scale, mostCores(cores, isWaitedFor, oneVcpuEach));
    this.niceness = niceness.of(shape, accelerator);
    const isNew = !existsSync(files.disk);
    if (this.process.isAlive) {
      if (!isNew) return;
      // The process that started it was killed before it was woken.
      await this.cutPower();
    }
    this.step.set("booting");
    // Everybody waits for the API, which answers too late when all new machines have their share.
    const givesWay = isNew && accelerator === "tcg" && !plug.isFirst;
    const captured = isNew ? capturedDisk(host.images, vm.image) : undefined;
    const snapshot = isNew && !captured ? await host.snapshots.of(shape) : undefined;
    const fresh = `${files.disk}.new`;
    const base = captured ?? snapshot?.disk ?? ({ path: image.disk, format: "raw" } as const);
    if (isNew) await createDisk(qemu, base, fresh);
    // What is cut off before it has woken begins anew, with a new disk.
    if (isNew && !snapshot) renameSync(fresh, files.disk);
    const disk = snapshot ? fresh : files.disk;
    if (snapshot) copyFileSync(snapshot.serial, files.serial);
    writeSeed(files.seed, seedFiles(vm, plug));
    const hardware = { name: vm.name, uuid: vm.vmId, shape, image, accelerator };
    const own = ownDevices(plug);
    this.process.start(
      host.namespaces.within(host.namespaces.of(plug.network), [
        ...atNiceness(givesWay ? niceness.givingWay : this.niceness),
        ...[...qemu.command, ...argumentsOf({ ...hardware, files: { ...files, disk } })],
        ...ownBackends(plug, files),
        ...(snapshot
          ? incomingArguments(snapshot)
          : own.flatMap((device) => ["-device", JSON.stringify(device)])),
      ]),
      qemu.environment,
    );
    if (snapshot) {
      await this.whileItRuns(wake(files.qmp, own));
      renameSync(fresh, files.disk);
    }
  }

  /** Until the agent in it answers, which is when Azure says that it was provisioned. */
  async awaitAgent(): Promise<void> {
    for (const until = Date.now() + bootWithin; !(await this.agent.answers()); await wait(500)) {
      if (this.power !== "running") throw new Error(this.endMessage());
      if (Date.now() > until) {
        throw new Error(
          `machine ${this.vm.name} runs, but its agent did not answer within ${bootWithin / 60_000} min; ` +
            `its serial log: ${this.files.serial}`,
        );
      }
    }
    if (this.step.now.step === "booting") this.step.set("first boot");
  }

  /** From now on it is waited for, so it gives way no longer. */
  async runScript(script: string): Promise<ScriptResult> {
    await this.awaitAgent();
    this.process.setNiceness(this.niceness);
    this.step.set("script");
    try {
      const running = runCustomScript(this.agent, script, (step) => this.step.set(step));
      return await this.whileItRuns(running);
    } finally {
      this.step.set("");
    }
  }

  private async whileItRuns<T>(work: Promise<T>): Promise<T> {
    const given = new AbortController();
    try {
      return await Promise.race([work, this.death(given.signal)]);
    } finally {
      given.abort();
    }
  }

  /** Rejects when it is no longer running, unless it is no longer wanted by then. */
  private async death(signal: AbortSignal): Promise<never> {
    while (this.power === "running") await wait(1000, undefined, { signal });
    throw new Error(this.endMessage());
  }

  /** As by its power button; one that does not react loses its power. */
  async powerDown(within = powerDownWithin): Promise<void> {
    if (this.process.isAlive) {
      await qmpCommand(this.files.qmp, "system_powerdown").catch(() => undefined);
      if (!(await this.process.hasEndedWithin(within))) await this.cutPower();
    }
    this.process.forget();
  }

  cutPower = (): Promise<void> => this.process.kill();

  async deallocate(): Promise<void> {
    this.isDeallocated = true;
    this.save();
    await this.powerDown();
  }

  /** Keeps what is on its disk, without what others have written below it. */
  capture = (image: string): Promise<void> =>
    captureDisk(this.host.qemu, this.files.disk, this.host.images, image);

  /** It is gone, and everything of it. */
  async remove(): Promise<void> {
    await this.cutPower();
    for (const folder of [this.folder, this.sockets])
      rmSync(folder, { recursive: true, force: true });
  }

  update(vm: VirtualMachine): void {
    this.vm = vm;
    this.save();
  }

  private endMessage = (): string =>
    `machine ${this.vm.name} is no longer running (${this.power}: ${this.process.ending}); ` +
    `its serial log: ${this.files.serial}\n${this.process.words}`.trimEnd();

  private get record(): string {
    return join(this.folder, "machine.json");
  }

  private save(): void {
    const { vm, isDeallocated } = this;
    writeWhole(this.record, JSON.stringify({ vm, isDeallocated } satisfies SavedGuest));
  }
}
