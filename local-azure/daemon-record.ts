import { join } from "node:path";

import type { Ports } from "./attachment";

/** What a daemon says of itself in `daemon.json`, once it answers. */
export interface DaemonRecord {
  readonly pid: number;
  readonly started?: string;
  readonly since: string;
  readonly binaries: string;
  readonly ports: Ports;
}

export interface DaemonArguments {
  readonly state: string;
  readonly binaries: string;
  /** The first of five ports in a row, when they were asked for. */
  readonly port?: number;
}

export const recordFile = (state: string): string => join(state, "daemon.json");
export const lockFile = (state: string): string => join(state, "daemon.lock");
