import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";

import type { Settings } from "../../../components/settings/settings";
import { machinesOf } from "../../../components/settings/topology";
import { versions } from "../../../components/versions";
import type { InstallOptions } from "../../programs/installs";
import { UserError } from "../../shared/user-error";
import { runningDaemon } from "../daemon/attachment";
import type { Values } from "../rehearsal/settings";
import { hostSettings, settingsFile, writeHostSettings } from "./qemu/host";
import type { Accelerator } from "./qemu/hypervisor";
import { prepareMachines } from "./qemu/prepare";
import { takenMib } from "./qemu/qemu";
import { availableMib, checkFits, outnumberHostCores } from "./qemu/sizes";

/**
 * The machines of a stack, as far as its settings say; what they leave out are the program's
 * defaults.
 */
function plannedMachines(given: Values): ReturnType<typeof machinesOf> {
  const size = "Standard_D2s_v5";
  const zones = (given["zones"] as string[] | undefined) ?? ["1", "2", "3"];
  const pools = (given["workerPools"] as Partial<Pool>[] | undefined) ?? [{ count: 2 }];
  return machinesOf({
    clusterName: "",
    zones,
    networkCidr: String(given["networkCidr"] ?? "172.16.0.0/16"),
    controlPlaneCount: Number(given["controlPlaneCount"] ?? 1),
    controlPlaneSize: String(given["controlPlaneSize"] ?? size),
    schedulableControlPlanes: true,
    ...disk,
    workerPools: pools.map((pool) => ({
      ...{ name: "", count: 1, size, zones, labels: {}, taints: [], maxUnavailable: 1, ...disk },
      ...pool,
    })),
  });
}

const disk = { osDiskSku: "Premium_LRS", osDiskSizeGb: 64 } as const;

type Pool = Parameters<typeof machinesOf>[0]["workerPools"][number];

/** Whether a stack's control planes have one processor each, by its settings. */
function needOneVcpuEach(stack: Values, accelerator: Accelerator, hostCores: number): boolean {
  const { ignorePreflightErrors = [] } = (stack["kubeadm"] ?? {}) as Partial<Settings["kubeadm"]>;
  const controlPlanes = plannedMachines(stack).filter(({ role }) => role === "control-plane");
  return (
    accelerator === "tcg" &&
    outnumberHostCores(controlPlanes.length, hostCores, ignorePreflightErrors)
  );
}

/**
 * Decides once what machines of this state folder are, by their stack's settings: real machines
 * cannot become simulated ones, nor the other way round. Where they are real, all that they need is
 * made ready.
 */
export async function chooseBackend(
  state: string,
  stack: Values,
  options: InstallOptions & {
    readonly scale: number | undefined;
    /** Kubernetes versions that real machines can be upgraded to. */
    readonly upgrades?: readonly string[];
    /** Whether real machines pull the images of add-ons. */
    readonly pullsAddOns?: boolean;
  },
): Promise<void> {
  const { scale, upgrades = [] } = options;
  const existing = hostSettings(state);
  const runs = runningDaemon(state) !== undefined;
  if (runs && (existing === undefined) !== (scale === undefined)) {
    throw new UserError(
      `the machines of ${state} are ${existing ? "real" : "simulated"}, and cannot become ${existing ? "simulated" : "real"}: ` +
        `run npm stop first, ${existing ? "or add --machines qemu" : "or leave --machines out"}`,
    );
  }
  if (scale === undefined) return rmSync(settingsFile(state), { force: true });
  const machines = plannedMachines(stack);
  // Machines that run have their memory already, and outlive a local Azure that was killed.
  const available = (): number => availableMib() + takenMib(state);
  // What they need with KVM they need in any case.
  if (!runs) checkFits(machines, scale, "kvm", available());
  const version = String(stack["kubernetesVersion"] ?? versions.kubernetes);
  const settings = await prepareMachines({
    ...{ ...options, scale, kubernetes: [version, ...upgrades] },
    cloudProvider: stack["cloudProvider"] !== false,
  });
  if (runs) return;
  checkFits(machines, scale, settings.accelerator, available());
  const oneVcpuEach = needOneVcpuEach(stack, settings.accelerator, availableParallelism());
  writeHostSettings(state, { ...settings, oneVcpuEach });
}
