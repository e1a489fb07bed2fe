import { existsSync } from "node:fs";
import { join } from "node:path";

import { readJson, writeWhole } from "../../../shared/files";
import type { BaseImage } from "./image/base-image";
import type { Accelerator, Qemu } from "./hypervisor";
import type { Namespaces } from "./network/namespaces";
import type { Snapshots } from "./guest/snapshots";

/** What a start of the rehearsal has decided, for the process that runs machines. */
export interface HostSettings {
  readonly qemu: Qemu;
  readonly accelerator: Accelerator;
  readonly image: BaseImage;
  /** Folder of packages and images; empty without one. */
  readonly mirror: string;
  /** Whether clusters run Azure's cloud provider; without it, it is simulated. */
  readonly cloudProvider: boolean;
  /** How much of a size's memory its machine gets. */
  readonly scale: number;
  /** Whether not even control planes have two processors here, though kubeadm wants them to. */
  readonly oneVcpuEach: boolean;
}

/** Written by the start that chose real machines; without it they are simulated. */
export const settingsFile = (state: string): string => join(state, "qemu.json");

export const writeHostSettings = (state: string, settings: HostSettings): void =>
  writeWhole(settingsFile(state), JSON.stringify(settings, undefined, 2));

export const hostSettings = (state: string): HostSettings | undefined =>
  existsSync(settingsFile(state)) ? (readJson(settingsFile(state)) as HostSettings) : undefined;

/** What all machines of a state folder share. */
export interface Host extends HostSettings {
  readonly namespaces: Namespaces;
  readonly snapshots: Pick<Snapshots, "of" | "stop">;
  /** Folder of the machines' own folders. */
  readonly machines: string;
  /** Folder of the gallery images' disks. */
  readonly images: string;
  /** Folder of sockets, whose paths may not be long. */
  readonly sockets: string;
  readonly cores: number;
  readonly log: (message: string) => void;
}
