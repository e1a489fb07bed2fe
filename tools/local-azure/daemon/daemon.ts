import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../shared/files";
import { holderOf, tryLock } from "../../shared/lock";
import { identityOf } from "../../shared/pids";
import { UserError } from "../../shared/user-error";
import { type DaemonRecord, lockFile, type Ports, recordFile } from "./attachment";
import type { DaemonArguments } from "./daemon-client";
import { startLocalAzure } from "./local-azure";

/** Ports stay the same after a restart, since a stack's settings contain the endpoint. */
const portsFile = (state: string): string => join(state, "ports.json");

function wantedPorts(state: string, first?: number): Partial<Ports> {
  if (first !== undefined) {
    return {
      resourceManager: first,
      azureNative: first + 1,
      tls: first + 2,
      kubernetes: first + 3,
      proxy: first + 4,
      blob: first + 5,
      login: first + 6,
    };
  }
  try {
    return JSON.parse(readFileSync(portsFile(state), "utf8")) as Ports;
  } catch {
    return {};
  }
}

/** Runs the local Azure until a signal ends it. A lock prevents a second one on the same state. */
async function daemon({ state, binaries, port }: DaemonArguments): Promise<void> {
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const release = tryLock(lockFile(state));
  if (!release) {
    const holder = holderOf(lockFile(state))?.pid ?? "unknown";
    throw new UserError(`a local Azure already runs on ${state} (process ${holder})`);
  }
  const log = (message: string): void => {
    // The state folder may be removed before the last message.
    if (existsSync(state)) {
      appendFileSync(join(state, "daemon.log"), `${new Date().toISOString()} ${message}\n`, {
        mode: 0o600,
      });
    }
  };
  try {
    const ports = wantedPorts(state, port);
    const exactPorts = port !== undefined;
    const azure = await startLocalAzure({ state, binaries, ports, exactPorts, log });
    writeWhole(portsFile(state), JSON.stringify(azure.ports));
    const record: DaemonRecord = {
      ...identityOf(process.pid),
      since: new Date().toISOString(),
      binaries,
      ports: azure.ports,
    };
    writeWhole(recordFile(state), JSON.stringify(record, undefined, 2));
    log(`process ${process.pid} serves ${JSON.stringify(azure.ports)}`);
    await new Promise<void>((end) => {
      for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => end());
    });
    log("ending");
    await azure.stop();
    rmSync(recordFile(state), { force: true });
  } finally {
    release();
  }
}

if (require.main === module) {
  const [state = "", binaries = "", port] = process.argv.slice(2);
  daemon({ state, binaries, ...(port !== undefined && { port: Number(port) }) }).then(
    () => process.exit(0),
    (error: Error) => {
      process.stderr.write(`${error instanceof UserError ? error.message : error.stack}\n`);
      process.exit(1);
    },
  );
}
