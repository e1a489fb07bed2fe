import { existsSync } from "node:fs";
import { join } from "node:path";

import { readJson, writeWhole } from "../../shared/files";
import { authorityFile } from "../arm/rest/listener";
import type { RealBackend, SimulatedBackend } from "./machines";
import { ownProgramsIn } from "./own-programs";
import type { HostSettings } from "./qemu/host";
import { QemuMachines } from "./qemu/qemu";
import { SimulatedMachines } from "./simulated/simulated";

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
): SimulatedBackend | RealBackend {
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
    programs: ownProgramsIn(state),
    authority: authorityFile(state),
    log,
  });
}
