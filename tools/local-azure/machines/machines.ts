import type { View } from "../arm/resources/resource";
import type { MachineIdentity } from "./identity-token";

/** What the resource manager gives about a virtual machine to what simulates or boots it. */
export interface VirtualMachine {
  readonly id: string;
  readonly name: string;
  /** Azure's own id of this generation of the machine: a replaced machine has another. */
  readonly vmId: string;
  readonly zone?: string;
  readonly location: string;
  readonly size: string;
  /** Whether Azure has stopped or deallocated it. */
  readonly isOff: boolean;
  readonly resourceGroup: string;
  readonly subscriptionId: string;
  /** base64, as the program sent it. */
  readonly customData?: string;
  readonly privateAddress: string;
  readonly image: string;
  /** The identities for which its processes get tokens. */
  readonly identities: readonly MachineIdentity[];
}

/** Power as a person would use it, by the names of Azure's own requests. */
export type PowerAction = "start" | "restart" | "powerOff" | "deallocate";

export interface ScriptResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * What a VM does. The resource manager decides whether it may exist; this decides what happens in
 * it.
 */
export interface Machines {
  create(vm: VirtualMachine): Promise<void>;
  /** Runs a custom script as Azure's agent does; resolves when the script has ended. */
  runScript(vm: VirtualMachine, script: string): Promise<ScriptResult>;
  restart(vm: VirtualMachine): Promise<void>;
  remove(vm: VirtualMachine): Promise<void>;
  /** Called after every change, before its request is answered; what may be read there stays current. */
  networkChanged?(view: View): Promise<void>;
  /** After the daemon was restarted: brings back what these machines ran. */
  resume(vms: readonly VirtualMachine[]): Promise<void>;
  /** Ends every process; what is on disk stays, so that `resume` can bring it back. */
  stop(): Promise<void>;
}
