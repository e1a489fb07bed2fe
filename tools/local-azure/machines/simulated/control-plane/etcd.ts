import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { promisify } from "node:util";

import { jsonRequest } from "../../../json-request";

const run = promisify(execFile);

interface Alarms {
  readonly alarms?: readonly { readonly memberID: string; readonly alarm: string }[];
}

interface SnapshotStatus {
  readonly revision: number;
}

const noSpace = "NOSPACE";

/** What is done to one cluster's etcd: snapshots by its own command lines, as cloud-init's scripts call them. */
export class Etcd {
  /** @param root folder of the machine's files, with etcd's certificates below it */
  constructor(
    private readonly root: string,
    private readonly port: number,
    private readonly binaries: { readonly etcdctl: string; readonly etcdutl: string },
  ) {}

  /** Saves a snapshot; returns what it is. */
  async save(file: string): Promise<SnapshotStatus> {
    await call(this.binaries.etcdctl, [
      `--endpoints=https://127.0.0.1:${this.port}`,
      `--cacert=${this.certificate("ca.crt")}`,
      `--cert=${this.certificate("healthcheck-client.crt")}`,
      `--key=${this.certificate("healthcheck-client.key")}`,
      ...["snapshot", "save", file],
    ]);
    return snapshotStatus(this.binaries.etcdutl, file);
  }

  /** Makes the data of an etcd that begins with it, by that etcd's own flags. */
  async restore(file: string, command: readonly string[]): Promise<void> {
    const flag = (name: string): string => {
      const found = command.find((arg) => arg.startsWith(`--${name}=`));
      if (found === undefined) throw new Error(`etcd is started without --${name}`);
      return found;
    };
    const folder = flag("data-dir").slice("--data-dir=".length);
    fs.rmSync(folder, { recursive: true, force: true });
    const { revision } = await snapshotStatus(this.binaries.etcdutl, file);
    await call(this.binaries.etcdutl, [
      ...["snapshot", "restore", file],
      ...["data-dir", "name", "initial-cluster", "initial-advertise-peer-urls"].map(flag),
      `--bump-revision=${Date.now() * 1000 - revision}`,
      "--mark-compacted",
    ]);
  }

  /** Raises its alarm for want of space, while which it is read but takes no writes, or ends it. */
  async limitSpace(isFull: boolean): Promise<void> {
    const { alarms = [] } = await this.ask<Alarms>("alarm", { action: "GET" });
    const raised = alarms.filter(({ alarm }) => alarm === noSpace);
    const change = (action: string, memberID: string): Promise<unknown> =>
      this.ask("alarm", { action, memberID, alarm: noSpace });
    if (isFull && raised.length === 0) {
      const { header } = await this.ask<{ header: { member_id: string } }>("status", {});
      await change("ACTIVATE", header.member_id);
    }
    if (!isFull) for (const { memberID } of raised) await change("DEACTIVATE", memberID);
  }

  /** Over its HTTP interface. */
  private async ask<T>(about: "alarm" | "status", body: object): Promise<T> {
    const read = (name: string): Buffer => fs.readFileSync(this.certificate(name));
    const { status, body: said } = await jsonRequest(
      {
        ...{ host: "127.0.0.1", port: this.port, path: `/v3/maintenance/${about}` },
        ...{ method: "POST", timeout: 10_000, ca: read("ca.crt") },
        ...{ cert: read("healthcheck-client.crt"), key: read("healthcheck-client.key") },
      },
      body,
    );
    if (status === 200) return said as T;
    throw new Error(`etcd: ${said["message"] ?? status}`);
  }

  private certificate = (name: string): string =>
    path.join(this.root, "etc/kubernetes/pki/etcd", name);
}

/** What `etcdutl snapshot status` says of a file; fails where that is no whole snapshot. */
export async function snapshotStatus(etcdutl: string, file: string): Promise<SnapshotStatus> {
  const said = await call(etcdutl, ["--write-out=json", "snapshot", "status", file]);
  return JSON.parse(said) as SnapshotStatus;
}

async function call(binary: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await run(binary, [...args], { maxBuffer: 16 << 20 });
    return stdout;
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    throw new Error(`${path.basename(binary)}: ${stderr.trim() || message}`, { cause: error });
  }
}
