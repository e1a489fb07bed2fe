import type { VirtualMachine } from "./machines";

/** A control plane machine in etcd's list of members. Gone from Azure, it stays listed until somebody removes it. */
export interface Member {
  readonly machine: string;
  readonly vmId: string;
  readonly lives: boolean;
}

/** etcd's list of members, as far as it decides whether there is an API. */
export class Members {
  constructor(readonly list: readonly Member[]) {}

  static of = (vm: VirtualMachine): Members => new Members([]).with(vm);

  /** etcd goes on while more than half of those it lists live. */
  get haveQuorum(): boolean {
    return this.living.length * 2 > this.list.length;
  }

  get allGone(): boolean {
    return this.living.length === 0;
  }

  has = ({ vmId }: VirtualMachine): boolean => this.living.some((member) => member.vmId === vmId);

  with = ({ name, vmId }: VirtualMachine): Members =>
    new Members([...this.list, { machine: name, vmId, lives: true }]);

  /** Without whatever a machine of this name has left in the list. */
  without = ({ name }: VirtualMachine): Members =>
    new Members(this.list.filter(({ machine }) => machine !== name));

  /** With this machine listed as before, but dead. */
  losing = ({ vmId }: VirtualMachine): Members =>
    new Members(
      this.list.map((member) => (member.vmId === vmId ? { ...member, lives: false } : member)),
    );

  private get living(): readonly Member[] {
    return this.list.filter(({ lives }) => lives);
  }
}
