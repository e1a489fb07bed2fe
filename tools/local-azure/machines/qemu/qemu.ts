import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

import { parsePayload } from "../../../../components/machine/payload";
import { messageOf } from "../../../shared/user-error";
import type { View } from "../../arm/resources/resource";
import { authorityFile } from "../../arm/rest/listener";
import type { Address } from "../../daemon/attachment";
import type {
  PowerAction,
  RealBackend,
  ScriptResult,
  ServicePorts,
  VirtualMachine,
} from "../machines";
import { administratorOf, SimulatedCloudProvider } from "./simulated-cloud-provider";
import { Fabric } from "./network/fabric";
import { Guest } from "./guest/guest";
import { leadToResourceManager } from "./guest/agent";
import type { Host, HostSettings } from "./host";
import { Namespaces } from "./network/namespaces";
import { type Plug, plugOf } from "./network/network-view";
import { LastingProcess } from "./process";
import { availableMib, checkFits } from "./sizes";
import { Snapshots } from "./guest/snapshots";

const stopWithin = 8_000;

/** Sockets of a state folder, whose own path may be too long for them. */
const socketsOf = (state: string): string =>
  join("/run", `zoned-${createHash("sha256").update(state).digest("hex").slice(0, 8)}`);

const guestsOf = (state: string): string => join(state, "machines", "guests");

/** Memory that a state folder's machines have now, whether or not a local Azure serves them. */
export function takenMib(state: string): number {
  const guests = guestsOf(state);
  return (existsSync(guests) ? readdirSync(guests) : [])
    .map((name) => new LastingProcess(join(guests, name, "qemu")).residentMib)
    .reduce((sum, each) => sum + each, 0);
}

/** What all parts of a state folder's machines share. */
function hostOf(state: string, settings: HostSettings, log: (message: string) => void): Host {
  const sockets = socketsOf(state);
  return {
    ...settings,
    namespaces: new Namespaces(state),
    snapshots: new Snapshots(settings, sockets, log),
    machines: guestsOf(state),
    images: join(state, "machines", "images"),
    sockets,
    cores: availableParallelism(),
    log,
  };
}

/**
 * Real virtual machines: they boot the customData and run the extension, and nothing in them is
 * simulated.
 */
export class QemuMachines implements RealBackend {
  readonly backend = "qemu";
  private readonly state: string;
  private readonly host: Host;
  private readonly fabric: Fabric;
  private readonly cloudProvider: SimulatedCloudProvider;
  private readonly guests = new Map<string, Guest>();
  private view: View | undefined;
  private resourceManagerPort = 0;

  constructor(options: {
    readonly state: string;
    readonly settings: HostSettings;
    readonly log: (message: string) => void;
  }) {
    const { state, settings, log } = options;
    this.state = state;
    this.host = hostOf(state, settings, log);
    mkdirSync(this.host.machines, { recursive: true, mode: 0o700 });
    this.fabric = new Fabric(this.host, join(state, "machines", "networks"));
    this.cloudProvider = new SimulatedCloudProvider({
      folder: join(state, "machines"),
      addressOf: this.apiAddress,
      vmOf: (name) => [...this.guests.values()].find(({ vm }) => vm.name === name)?.vm,
      log,
    });
  }

  apiAddress = (apiName: string): Address | undefined => this.fabric.apiAddress(apiName);

  status = () => this.fabric.apis();

  /** Every machine, where it stands, and what it is at. */
  machines = () =>
    [...this.guests.values()].map(({ vm, power, step, files }) => ({
      name: vm.name,
      power,
      ...step.now,
      serial: files.serial,
      agent: files.agent,
    }));

  async networkChanged(view: View): Promise<void> {
    this.view = view;
    await this.fabric.apply(view);
  }

  async openServices(ports: ServicePorts): Promise<void> {
    this.resourceManagerPort = ports.resourceManager;
    await this.fabric.openServices(ports);
  }

  async create(vm: VirtualMachine): Promise<void> {
    const guest = this.guests.get(vm.id) ?? Guest.of(vm, this.host);
    this.guests.set(vm.id, guest);
    // What runs already has taken a part of its memory, and will want the rest.
    const all = [...this.guests.values()].filter(({ power }) => power !== "deallocated");
    checkFits(
      all.map((one) => one.vm),
      this.host.scale,
      this.host.accelerator,
      availableMib() + takenMib(this.state),
    );
    await guest.boot(this.plug(vm));
    await guest.awaitAgent();
    await leadToResourceManager(guest.agent, this.resourceManagerPort, authorityFile(this.state));
  }

  async runScript(vm: VirtualMachine, script: string): Promise<ScriptResult> {
    try {
      const guest = this.guests.get(vm.id);
      if (guest === undefined) throw new Error(`there is no machine ${vm.name} to run a script on`);
      await this.learn(script);
      const result = await guest.runScript(script);
      const note = `machine ${vm.name}; its serial log: ${guest.files.serial}`;
      return result.exitCode === 0 ? result : { ...result, stderr: `${result.stderr}${note}\n` };
    } catch (error) {
      this.host.log(`${vm.name}: ${messageOf(error)}`);
      return { exitCode: 1, stdout: "", stderr: messageOf(error) };
    }
  }

  /** As after a change of size: it comes back with other hardware. */
  async restart(vm: VirtualMachine): Promise<void> {
    const guest = this.guests.get(vm.id);
    if (guest === undefined) return;
    guest.update(vm);
    await guest.powerDown();
    await guest.boot(this.plug(vm));
    await guest.awaitAgent();
  }

  async power(vm: VirtualMachine, action: PowerAction): Promise<void> {
    const guest = this.guests.get(vm.id);
    if (guest === undefined) throw new Error(`there is no machine ${vm.id}`);
    if (action === "restart") return await this.restart(vm);
    if (action === "deallocate") return await guest.deallocate();
    if (action === "powerOff") return await guest.cutPower();
    // To another host, with its disk.
    if (action === "redeploy") await guest.deallocate();
    guest.update(vm);
    await guest.boot(this.plug(guest.vm));
    await guest.awaitAgent();
  }

  hasShutDown = ({ id }: VirtualMachine): boolean => this.guests.get(id)?.hasShutDown === true;

  async capture({ id, name }: VirtualMachine, image: string): Promise<void> {
    const guest = this.guests.get(id);
    if (guest === undefined) throw new Error(`there is no machine ${name} to make an image of`);
    await guest.capture(image);
  }

  async remove(vm: VirtualMachine): Promise<void> {
    const guest = this.guests.get(vm.id);
    this.guests.delete(vm.id);
    await guest?.remove();
    const plug = this.view && plugOf(vm.id, this.view);
    if (plug) await this.host.namespaces.unplug(plug);
  }

  /**
   * Machines outlive the process before this one: those that still run are taken over as they are.
   */
  async resume(vms: readonly VirtualMachine[]): Promise<void> {
    const folders = new Set(vms.map(({ name, vmId }) => `${name}-${vmId.slice(0, 8)}`));
    for (const vm of vms) this.guests.set(vm.id, Guest.of(vm, this.host));
    for (const left of readdirSync(this.host.machines)) {
      if (!folders.has(left))
        rmSync(join(this.host.machines, left), { recursive: true, force: true });
    }
    for (const guest of this.guests.values()) {
      if (guest.power !== "deallocated") await guest.boot(this.plug(guest.vm));
    }
    this.cloudProvider.begin();
  }

  /** Machines are powered down as their button does, as far as they make it in time. */
  async stop(): Promise<void> {
    this.cloudProvider.end();
    await this.host.snapshots.stop();
    await Promise.all([...this.guests.values()].map((guest) => guest.powerDown(stopWithin)));
    this.guests.clear();
    await this.fabric.stop({ remove: true });
  }

  private async learn(script: string): Promise<void> {
    if (this.host.cloudProvider || !script.includes("\n#--- payload ---\n")) return;
    const administrator = await administratorOf(parsePayload(script));
    if (administrator) this.cloudProvider.serve(administrator);
  }

  private plug(vm: VirtualMachine): Plug {
    const plug = this.view && plugOf(vm.id, this.view);
    if (plug === undefined) throw new Error(`machine ${vm.name} has no network interface`);
    return plug;
  }
}

/** Takes away what a local Azure that was killed has left outside of its state folder. */
export async function clearMachines(state: string): Promise<void> {
  const sockets = socketsOf(state);
  if (!existsSync(sockets)) return;
  const namespaces = new Namespaces(state);
  await namespaces.remove(await namespaces.existing());
  rmSync(sockets, { recursive: true, force: true });
}
