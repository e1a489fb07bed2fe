import type { View } from "../arm/resources/resource";
import type { Address } from "../daemon/attachment";
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
  /** The id of a gallery image version, or the name of a platform image. */
  readonly image: string;
  /** The identities for which its processes get tokens. */
  readonly identities: readonly MachineIdentity[];
}

/** Power as a person would use it, by the names of Azure's own requests. */
export type PowerAction = "start" | "restart" | "redeploy" | "powerOff" | "deallocate";

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
  /** Whether it has shut itself down. */
  hasShutDown(vm: VirtualMachine): boolean;
  /** Keeps what is on its disk as the image of this id, of which machines are made that name it. */
  capture(vm: VirtualMachine, image: string): Promise<void>;
  /** Also one that is being created, which ends the creation. */
  remove(vm: VirtualMachine): Promise<void>;
  /** After the daemon was restarted: brings back what these machines ran. */
  resume(vms: readonly VirtualMachine[]): Promise<void>;
  /** Ends every process; what is on disk stays, so that `resume` can bring it back. */
  stop(): Promise<void>;
}

interface ClusterMachines extends Machines {
  /** Where the API of this name can be reached from this host. */
  apiAddress(apiName: string): Address | undefined;
  status(): readonly { readonly apiName: string; readonly api: Address }[];
  /** What Azure's own requests of these names do. */
  power(vm: VirtualMachine, action: PowerAction): Promise<void>;
  /** Leads machines to Azure's services. */
  openServices(ports: ServicePorts): Promise<void>;
}

/** Machines that processes of this host stand for, whose control planes can be made to fail. */
export interface SimulatedBackend extends ClusterMachines {
  readonly backend: "simulated";
  /** Makes a component of a control plane unhealthy. */
  injectFailure(machine: string, component: string): Promise<void>;
  /** Makes all components of a control plane healthy. */
  clearFailures(machine: string): Promise<void>;
  /** Saves a snapshot of etcd from a control plane. */
  snapshot(machine: string): Promise<void>;
}

/** A machine as its host reports it. */
export interface MachineReport {
  readonly name: string;
  readonly power: string;
  readonly step: string;
  readonly seconds: number;
  readonly serial: string;
  /** Socket of the agent in it. */
  readonly agent: string;
}

/** Where Azure's services that machines use listen on this host. */
export interface ServicePorts {
  readonly blob: number;
  /** Entra. */
  readonly login: number;
  readonly registry: number;
  /** By which names that exist only on Azure are reached. */
  readonly proxy: number;
  readonly resourceManager: number;
}

/** Virtual machines of this host, with a network of their own. */
export interface RealBackend extends ClusterMachines {
  readonly backend: "qemu";
  machines(): readonly MachineReport[];
  /** Called after every change, before its request is answered; what may be read there stays current. */
  networkChanged(view: View): Promise<void>;
}
