import { readFileSync } from "node:fs";
import { join } from "node:path";

import { holderOf } from "../../shared/lock";
import { isAlive, type ProcessIdentity } from "../../shared/pids";
import type { Ports } from "./attachment";

/** `daemon.json`, which a daemon writes once it answers. */
export interface DaemonRecord extends ProcessIdentity {
  readonly since: string;
  readonly binaries: string;
  readonly ports: Ports;
}

export const recordFile = (state: string): string => join(state, "daemon.json");
export const lockFile = (state: string): string => join(state, "daemon.lock");

/** The daemon that serves this state folder now, if one does. */
export function runningDaemon(state: string): DaemonRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile(state), "utf8")) as DaemonRecord;
    return isAlive(record) && holderOf(lockFile(state))?.pid === record.pid ? record : undefined;
  } catch {
    return undefined;
  }
}
