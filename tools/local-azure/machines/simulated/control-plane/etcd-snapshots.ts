import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What `etcdutl snapshot status` says of a file. */
interface SnapshotStatus {
  readonly revision: number;
}

interface EtcdBinaries {
  readonly etcdctl: string;
  readonly etcdutl: string;
}

/** Snapshots of one cluster's etcd, by its own command lines, as cloud-init's scripts call them. */
export class EtcdSnapshots {
  constructor(
    private readonly root: string,
    private readonly port: number,
    private readonly binaries: EtcdBinaries,
  ) {}

  async save(file: string): Promise<void> {
    const certificates = path.join(this.root, "etc/kubernetes/pki/etcd");
    await call(this.binaries.etcdctl, [
      `--endpoints=https://127.0.0.1:${this.port}`,
      `--cacert=${certificates}/ca.crt`,
      `--cert=${certificates}/healthcheck-client.crt`,
      `--key=${certificates}/healthcheck-client.key`,
      "snapshot",
      "save",
      file,
    ]);
  }

  /** Fails where the file is no whole snapshot. */
  async status(file: string): Promise<SnapshotStatus> {
    const said = await call(this.binaries.etcdutl, [
      "--write-out=json",
      "snapshot",
      "status",
      file,
    ]);
    return JSON.parse(said) as SnapshotStatus;
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
    await call(this.binaries.etcdutl, [
      "snapshot",
      "restore",
      file,
      ...["data-dir", "name", "initial-cluster", "initial-advertise-peer-urls"].map(flag),
      "--bump-revision=1000000000",
      "--mark-compacted",
    ]);
  }
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
