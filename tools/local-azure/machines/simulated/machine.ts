import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";

import {
  kubeletCertificatePath,
  kubeletKeyPath,
  type PayloadFile,
} from "../../../../components/kubeadm/payload-file";
import type { Payload } from "../../../../components/machine/payload";
import { writeWhole } from "../../../shared/files";
import type { VirtualMachine } from "../machines";
import type { ApiUser } from "./api";
import type { KeyPair } from "./control-plane/kubelet";

/** What a machine has once it is a member of a cluster. */
export interface Joined {
  readonly as: "initialized" | "joined";
  readonly apiName: string;
  readonly node: string;
  readonly caCert: string;
  readonly kubelet: ApiUser;
}

interface MachineRecord {
  readonly vm: VirtualMachine;
  readonly joined?: Joined;
  readonly hasShutDown?: boolean;
  readonly hasBegunToJoin?: boolean;
  readonly needsPeerCheck?: boolean;
  readonly configuration?: string;
  readonly room?: string;
}

/** What a run of its script configures a member with. */
type Configured = Pick<Payload, "configuration" | "room">;

const recordFile = "machine.json";

/** One simulated machine and what is on its disk, a folder that goes when the machine does. */
export class SimulatedMachine {
  private ended: string | undefined;

  private constructor(
    readonly folder: string,
    private record: MachineRecord,
  ) {}

  static create(machines: string, vm: VirtualMachine): SimulatedMachine {
    const generation = createHash("sha256")
      .update(`${vm.id}/${vm.vmId}`)
      .digest("hex")
      .slice(0, 12);
    const machine = new SimulatedMachine(path.join(machines, `${vm.name}-${generation}`), { vm });
    machine.save();
    return machine;
  }

  static load(folder: string): SimulatedMachine | undefined {
    const file = path.join(folder, recordFile);
    return fs.existsSync(file)
      ? new SimulatedMachine(folder, JSON.parse(fs.readFileSync(file, "utf8")) as MachineRecord)
      : undefined;
  }

  get vm(): VirtualMachine {
    return this.record.vm;
  }

  get root(): string {
    return path.join(this.folder, "root");
  }

  get joined(): Joined | undefined {
    return this.record.joined;
  }

  /** Takes what Azure now says of the machine: a resize keeps its disk. */
  update(vm: VirtualMachine): void {
    this.record = { ...this.record, vm };
    this.save();
  }

  join(joined: Joined, { configuration, room }: Configured): void {
    this.record = { ...this.record, joined, configuration, room, hasBegunToJoin: false };
    this.save();
  }

  /** Takes other CAs for the cluster's, and perhaps another certificate for its kubelet. */
  trust(caCert: string, kubelet = this.record.joined!.kubelet): void {
    this.record = { ...this.record, joined: { ...this.record.joined!, caCert, kubelet } };
    this.save();
  }

  /** Whether its script has had it switch itself off. */
  get hasShutDown(): boolean {
    return this.record.hasShutDown ?? false;
  }

  shutDown(): void {
    this.record = { ...this.record, hasShutDown: true };
    this.save();
  }

  /** Whether kubeadm has begun to join here, and neither succeeded nor was undone. */
  get hasBegunToJoin(): boolean {
    return this.record.hasBegunToJoin ?? false;
  }

  beginJoin(hasBegunToJoin = true): void {
    this.record = { ...this.record, hasBegunToJoin };
    this.save();
  }

  /**
   * Whether it has joined or was rebooted, and no run of its script has seen the cluster whole
   * since.
   */
  get needsPeerCheck(): boolean {
    return this.record.needsPeerCheck ?? false;
  }

  /** What the last successful run of its script has configured the member with. */
  get configuration(): string | undefined {
    return this.record.configuration;
  }

  /** The room for pods that its kubelet has. */
  get room(): string | undefined {
    return this.record.room;
  }

  /** A run of its script has succeeded. */
  bootstrapped({ configuration, room }: Configured): void {
    this.record = { ...this.record, configuration, room, needsPeerCheck: false };
    this.save();
  }

  requirePeerCheck(): void {
    this.record = { ...this.record, needsPeerCheck: true };
    this.save();
  }

  /** What it is configured with is half of each until a run succeeds. */
  beginUpgrade(): void {
    const { configuration: _, ...record } = this.record;
    this.record = record;
    this.save();
  }

  /** Writes a file of the payload, below the machine's root. */
  writeFile({ path: name, mode, content }: PayloadFile): void {
    const file = path.join(this.root, path.normalize(`/${name}`));
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    fs.writeFileSync(file, content, { mode: parseInt(mode, 8) });
  }

  /** What its kubelet proves itself by, if the payload brought it. */
  kubeletCertificate(): KeyPair | undefined {
    const [cert, key] = [kubeletCertificatePath, kubeletKeyPath].map((name) => {
      const file = path.join(this.root, name);
      return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined;
    });
    return cert !== undefined && key !== undefined ? { cert, key } : undefined;
  }

  /** Takes away what a machine needs only until it is a member. */
  forgetSecrets(): void {
    fs.rmSync(path.join(this.root, "etc/zoned"), { recursive: true, force: true });
  }

  /** A script that waits ends with its machine. */
  failIfEnded(): void {
    if (this.ended) {
      throw new Error(`${this.vm.name} was ${this.ended} while its script ran`);
    }
  }

  stop(): void {
    this.ended = "stopped";
  }

  remove(): void {
    this.ended = "deleted";
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  private save(): void {
    if (this.ended) {
      return;
    }
    fs.mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    writeWhole(path.join(this.folder, recordFile), JSON.stringify(this.record));
  }
}
