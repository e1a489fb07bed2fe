import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { writeWhole } from "../../files";
import type { ScriptResult, VirtualMachine } from "../machines";
import { Agent } from "./agent";
import { argumentsOf, filesOf, type MachineFiles } from "./arguments";
import { runCustomScript } from "./custom-script";
import { createDisk, seedFiles, writeSeed } from "./disk";
import type { Host } from "./host";
import { tellQemu } from "./lines";
import type { Plug } from "./network-view";
import { givingWay, LastingProcess } from "./process";
import { mostCores, shapeOf } from "./sizes";

/** A played processor takes two minutes when the host has other work. */
const bootWithin = 15 * 60_000;
const powerDownWithin = 90_000;

/** Where a machine stands. */
export type Power = "running" | "stopped" | "died" | "deallocated";

interface Record {
  readonly vm: VirtualMachine;
  readonly isDeallocated: boolean;
}

/** One virtual machine, its disk and its process. */
export class Guest {
  readonly files: MachineFiles;
  readonly agent: Agent;
  private readonly process: LastingProcess;
  private isDeallocated = false;
  private step = "";
  private since = Date.now();

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
    this.process = new LastingProcess(join(folder, "qemu"));
  }

  /** A machine as it was left, or one that is new. */
  static of(vm: VirtualMachine, host: Host): Guest {
    const place = `${vm.name}-${vm.vmId.slice(0, 8)}`;
    const sockets = join(host.sockets, vm.vmId.slice(0, 8));
    const guest = new Guest(vm, host, join(host.machines, place), sockets);
    if (existsSync(guest.record)) {
      const { isDeallocated } = JSON.parse(readFileSync(guest.record, "utf8")) as Record;
      guest.isDeallocated = isDeallocated;
    }
    guest.save();
    return guest;
  }

  get power(): Power {
    if (this.process.isAlive) return "running";
    if (this.isDeallocated) return "deallocated";
    return this.process.ending === "exit code 0" ? "stopped" : "died";
  }

  get residentMib(): number {
    return this.process.residentMib;
  }

  /** What it is at, and for how long. */
  get doing(): { readonly step: string; readonly seconds: number } {
    return { step: this.step, seconds: Math.round((Date.now() - this.since) / 1000) };
  }

  /** Switches it on; one that runs is left as it is. */
  async boot(plug: Plug): Promise<void> {
    this.isDeallocated = false;
    this.save();
    await this.host.namespaces.plug(plug);
    if (this.process.isAlive) return;
    const { vm, files, host } = this;
    const { qemu, image, accelerator, scale, cores, isCrowded } = host;
    const isNew = !existsSync(files.disk);
    if (isNew) await createDisk(qemu, image.disk, files.disk);
    writeSeed(files.seed, seedFiles(vm, plug));
    const isWaitedFor = accelerator === "kvm" || plug.isBalanced;
    const shape = shapeOf(vm.size, scale, mostCores(cores, isWaitedFor, isCrowded));
    const words = argumentsOf({
      ...{ name: vm.name, uuid: vm.vmId, shape, plug, files },
      ...{ kernel: image.kernel, initrd: image.initrd, accelerator },
    });
    const namespace = host.namespaces.of(plug.network);
    this.process.start(
      host.namespaces.within(namespace, [
        // Everybody waits for the API, which answers too late when all new machines have the same share.
        ...(isNew && accelerator === "tcg" && !plug.isFirst ? givingWay : []),
        ...[...qemu.command, ...words],
      ]),
      qemu.environment,
    );
    this.at("booting");
  }

  /** Until the agent in it answers, which is when Azure says that it was provisioned. */
  async awaitAgent(): Promise<void> {
    for (const until = Date.now() + bootWithin; !(await this.agent.answers()); await wait(500)) {
      if (this.power !== "running") throw new Error(this.epitaph());
      if (Date.now() > until) {
        throw new Error(
          `machine ${this.vm.name} runs, but its agent did not answer within ${bootWithin / 60_000} min; ` +
            `its serial log: ${this.files.serial}`,
        );
      }
    }
    if (this.step === "booting") this.at("first boot");
  }

  /** @param isWaitedFor whether it gives way no longer from now on; else that ends when the script ends well */
  async runScript(script: string, isWaitedFor: boolean): Promise<ScriptResult> {
    await this.awaitAgent();
    if (isWaitedFor) this.process.endGivingWay();
    this.at("script");
    const given = new AbortController();
    try {
      const running = runCustomScript(this.agent, script, (step) => this.at(step));
      const result = await Promise.race([running, this.death(given.signal)]);
      if (result.exitCode === 0) this.process.endGivingWay();
      return result;
    } finally {
      given.abort();
      this.at("");
    }
  }

  /** Rejects when it is no longer running, unless nobody cares any more by then. */
  private async death(signal: AbortSignal): Promise<never> {
    while (this.power === "running") await wait(1000, undefined, { signal });
    throw new Error(this.epitaph());
  }

  /** As by its power button; one that does not obey loses its power. */
  async powerDown(within = powerDownWithin): Promise<void> {
    if (this.process.isAlive) {
      await tellQemu(this.files.qmp, "system_powerdown").catch(() => undefined);
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

  private at(step: string): void {
    if (step === this.step) return;
    const { name } = this.vm;
    if (this.step !== "") this.host.log(`${name}: ${this.step}: ${this.doing.seconds} s`);
    this.step = step;
    this.since = Date.now();
    if (step !== "") this.host.log(`${name}: ${step} begins`);
  }

  private epitaph = (): string =>
    `machine ${this.vm.name} is no longer running (${this.power}: ${this.process.ending}); ` +
    `its serial log: ${this.files.serial}\n${this.process.words}`.trimEnd();

  private get record(): string {
    return join(this.folder, "machine.json");
  }

  private save(): void {
    const { vm, isDeallocated } = this;
    writeWhole(this.record, JSON.stringify({ vm, isDeallocated } satisfies Record));
  }
}
