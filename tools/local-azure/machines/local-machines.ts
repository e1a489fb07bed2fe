import { existsSync } from "node:fs";
import { join } from "node:path";

import { readJson, writeWhole } from "../../shared/files";
import { authorityFile } from "../arm/rest/certificate";
import type { Address } from "../daemon/attachment";
import type { Machines, PowerAction, VirtualMachine } from "./machines";
import { ownPrograms } from "./own-programs";
import type { HostSettings } from "./qemu/host";
import { QemuMachines } from "./qemu/qemu";
import { SimulatedMachines } from "./simulated/simulated";

/** A machine as its host reports it. */
export interface MachineReport {
  readonly name: string;
  readonly power: string;
  readonly step: string;
  readonly seconds: number;
  readonly serial: string;
  /** Socket of the agent in it. */
  readonly agent: string;
}

/** Machines with the APIs that came to life on them. */
export interface LocalMachines extends Machines {
  apiAddress(apiName: string): Address | undefined;
  status(): readonly { readonly apiName: string; readonly api: Address }[];
  /** Where machines are simulated: makes a component of a control plane unhealthy, and all of them healthy. */
  injectFailure?(machine: string, component: string): Promise<void>;
  clearFailures?(machine: string): Promise<void>;
  /** Where machines are simulated: saves a snapshot of etcd from a control plane. */
  snapshot?(machine: string): Promise<void>;
  /** Where machines are real: each, and what it is at. */
  machines?(): readonly MachineReport[];
  /** Where machines are real: leads them to the Blob service, on this port of the host. */
  openStorage?(port: number): Promise<void>;
  /** What Azure's own requests of these names do. */
  power(vm: VirtualMachine, action: PowerAction): Promise<void>;
}

/** Written by the start that chose real machines; without it they are simulated. */
export const settingsFile = (state: string): string => join(state, "qemu.json");

export const writeHostSettings = (state: string, settings: HostSettings): void =>
  writeWhole(settingsFile(state), JSON.stringify(settings, undefined, 2));

export const hostSettings = (state: string): HostSettings | undefined =>
  existsSync(settingsFile(state)) ? (readJson(settingsFile(state)) as HostSettings) : undefined;

/** The machines of a state folder, real or simulated. */
export function machinesIn(
  state: string,
  binaries: string,
  log: (message: string) => void,
): LocalMachines {
  const settings = hostSettings(state);
  if (settings !== undefined) return new QemuMachines({ state, settings, log });
  const at = (name: string): string => join(binaries, name);
  return new SimulatedMachines({
    stateDir: join(state, "machines"),
    binaries: {
      etcd: at("etcd"),
      etcdctl: at("etcdctl"),
      etcdutl: at("etcdutl"),
      "kube-apiserver": at("kube-apiserver"),
      "kube-controller-manager": at("kube-controller-manager"),
      "kube-scheduler": at("kube-scheduler"),
      kubeadm: at("kubeadm"),
      kwok: at("kwok"),
    },
    programs: ownPrograms(state),
    authority: authorityFile(state),
    log,
  });
}
