import { join } from "node:path";

import { authorityFile } from "../arm/rest/listener";
import type { RealBackend, SimulatedBackend } from "./machines";
import { ownProgramsIn } from "./own-programs";
import { hostSettings } from "./qemu/host";
import { QemuMachines } from "./qemu/qemu";
import { SimulatedMachines } from "./simulated/simulated";

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
