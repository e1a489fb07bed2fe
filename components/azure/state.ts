import { Settings } from "../settings/settings";
import { ArmClient, AzureConnection } from "./resource-manager";
import { keyOf, networkVersion, rangesOf, type Read, type Ref } from "./existing-network";
import { egressNames, groupId, groupName } from "./resource-names";
import { getShown, Shown, shownAs, ShownResource } from "./shown";
import { isOfThisStack } from "./stack-tag";

/** How the bootstrap step of a machine stands, as Azure reports it. */
export interface BootstrapState {
  /** Azure's provisioning state: Succeeded, Failed, Creating … */
  readonly state: string;
  /** When this run of the step was ordered; see `runOf` in machine.ts. */
  readonly requestedAt?: string;
  /** vmId of the machine that ran, or may run, `kubeadm init`. */
  readonly initialControlPlane?: string;
  /** The snapshot of which its cluster is restored. */
  readonly restoredFrom?: string;
  readonly kubernetesVersion?: string;
  /** Hash over what the step configures. */
  readonly configuration?: string;
  /** Which keys of Secrets the step was given; see encryption.ts. */
  readonly encryptionKeys?: string;
  /** Which CAs it was given; see plan/rotations.ts. */
  readonly cas?: string;
  /** Which keys of service accounts it was given; see plan/rotations.ts. */
  readonly serviceAccountKeys?: string;
  /** Hash over what its cluster keeps for its life; see fixed-settings.ts. */
  readonly fixed?: string;
  /** The drain of its machine after which it ran; see membership.ts. */
  readonly drained?: string;
  /** Hash over what it ran. */
  readonly script?: string;
}

/** A VM as Azure has it. A missing tag proves nothing: it may have been removed. */
export interface MachineState {
  readonly size: string;
  /** Whether it is one of Azure's spare capacity. */
  readonly isSpot?: boolean;
  /** `running`, `stopped`, `deallocated`, or on the way to it; undefined where Azure does not say. */
  readonly power?: string;
  /** Azure's own id of it. */
  readonly vmId?: string;
  /** Version of the image that it was made of. */
  readonly image?: string;
  /** SCSI or NVMe, with which it was made. */
  readonly diskController?: string;
  /** Hash of what a change of would replace the machine. */
  readonly generation?: string;
  /** The initialization of the cluster that it was made for; see initialization.ts. */
  readonly initialization?: string;
  /** When an update ordered it. */
  readonly createdAt?: string;
  /** When it was last drained for a restart. */
  readonly drained?: string;
  readonly bootstrap?: BootstrapState;
  /** Of a control plane: what its cluster says of it; see left-machines.ts. */
  readonly removedFromEtcd?: boolean;
  /** Likewise of a machine that runs, and is a member of etcd if it is a control plane. */
  readonly lacksNode?: boolean;
  /** Likewise of any machine: an update has drained its Node, and did not come to undo that. */
  readonly isDrained?: boolean;
  /** Likewise, and the machine is off. */
  readonly stoppedForResize?: boolean;
}

/** Whether a machine does not run, as far as Azure says. */
export const isOff = ({ power = "" }: Pick<MachineState, "power">): boolean =>
  ["stopping", "stopped", "deallocating", "deallocated"].includes(power);

/** What Azure has when this program starts. */
export interface AzureState {
  /** Provisioning state of the resource group, undefined when there is none. */
  readonly groupState?: string;
  /** Short name of its region. */
  readonly groupLocation?: string;
  /** This stack's, by name of the VM. */
  readonly machines: ReadonlyMap<string, MachineState>;
}

/** The Azure state, and all that Azure shows of the resources that others write on too. */
export interface AzureAnswer extends AzureState {
  /** Whether there is a resource group, and this stack has made it. */
  readonly isOwnGroup: boolean;
  /** Whether a machine of this stack's cluster is there, or what is left of an update that succeeded. */
  readonly isBegun: boolean;
  readonly shown: Shown;
}

/** Tags in which an update records what it did, for the next. */
export const tag = {
  generation: "zoned-generation",
  initialization: "zoned-initialization",
  createdAt: "zoned-created-at",
  drained: "zoned-drained",
  identities: "zoned-identities",
  bootstrapRequestedAt: "zoned-bootstrap-requested-at",
  script: "zoned-script",
  kubernetes: "zoned-kubernetes",
  configuration: "zoned-configuration",
  encryptionKeys: "zoned-encryption-keys",
  cas: "zoned-cas",
  serviceAccountKeys: "zoned-service-account-keys",
  initialControlPlane: "zoned-initial-control-plane",
  restoredFrom: "zoned-restored-from",
  fixed: "zoned-fixed",
} as const;

export const computeVersion = { "api-version": "2024-11-01" };

interface VirtualMachine extends ShownResource {
  readonly tags?: Readonly<Record<string, string>>;
  readonly properties: {
    readonly vmId?: string;
    readonly hardwareProfile: { readonly vmSize: string };
    readonly storageProfile?: {
      readonly imageReference?: { readonly version?: string };
      readonly diskControllerType?: string;
    };
    readonly provisioningState?: string;
    readonly priority?: string;
  };
}

interface InstanceView {
  readonly statuses?: readonly { readonly code: string }[];
}

interface ResourceGroup extends ShownResource {
  readonly location: string;
  readonly properties: { readonly provisioningState: string };
}

interface Extension extends ShownResource {
  readonly tags?: Readonly<Record<string, string>>;
  readonly properties: { readonly provisioningState: string };
}

/**
 * Asks Azure Resource Manager what azure-native has no function for: which machines and bootstrap
 * steps of this cluster exist.
 *
 * Compute itself is asked for machines and steps: Resource Manager's own index of a group's
 * resources follows with a delay, and an old failure in it would run a step again for nothing.
 *
 * @param isKnown whether an update of this stack has succeeded; an older release gave its group no tag
 */
export async function getAzureState(
  settings: Settings,
  isKnown: boolean,
  { arm, subscriptionId }: AzureConnection,
): Promise<AzureAnswer> {
  const group = groupId(settings, subscriptionId);
  const asked = arm.get<ResourceGroup>(
    group,
    { "api-version": "2024-03-01" },
    { location: "", properties: { provisioningState: "" } },
  );
  const questions = [
    asked,
    machinesIn(arm, group),
    // Without a group there is nothing to ask for, and perhaps no provider that is registered.
    asked.then(async (one) =>
      one === undefined
        ? []
        : withAddedRanges(await getShown(arm, group, settings), arm, group, settings),
    ),
  ] as const;
  // Promise.all rejects with the first refusal, and leaves the others asking.
  await Promise.allSettled(questions);
  const [found, machines, others] = await Promise.all(questions);
  const shown: Shown = new Map([
    ...(found === undefined
      ? []
      : [[shownAs("azure-native:resources:ResourceGroup", groupName(settings)), found] as const]),
    ...machines.flatMap(({ vm, step }) => [
      [shownAs("azure-native:compute:VirtualMachine", vm.name), vm] as const,
      ...(step === undefined
        ? []
        : [[shownAs("azure-native:compute:VirtualMachineExtension", vm.name), step] as const]),
    ]),
    ...others,
  ]);
  const isOwnGroup =
    settings.resourceGroup === "" && found !== undefined && (isKnown || isOfThisStack(found));
  const own = machines.filter(({ vm }) => isOwnGroup || isOfThisStack(vm));
  return {
    groupState: found?.properties.provisioningState,
    groupLocation: found?.location,
    isOwnGroup,
    isBegun: own.length > 0 || (isKnown && found !== undefined),
    machines: new Map(own.map(({ vm, state }) => [vm.name, state])),
    shown,
  };
}

/** A public API admits its machines by all that their gateways send from, which may be in another group. */
function withAddedRanges(
  shown: readonly [string, ShownResource][],
  arm: ArmClient,
  group: string,
  settings: Settings,
): Promise<[string, ShownResource][]> {
  const names = settings.apiAccess === "public" ? egressNames(settings) : [];
  const gateways = names.map((name) => shownAs("azure-native:network:NatGateway", name));
  const read: Read = async (id, example) => {
    const answer = await arm.getIfReadable(id, networkVersion, example);
    return answer === "unreadable" ? undefined : answer;
  };
  return Promise.all(
    shown.map(async ([key, one]): Promise<[string, ShownResource]> => {
      if (!gateways.includes(key)) return [key, one];
      const own = keyOf(`${group}/providers/Microsoft.Network/publicIPAddresses/${one.name}`);
      const added = ["publicIpAddresses", "publicIpPrefixes"]
        .flatMap((name) => (one.properties?.[name] as Ref[] | undefined) ?? [])
        .filter(({ id }) => keyOf(id) !== own);
      return [key, { ...one, addedRanges: await rangesOf(read, added) }];
    }),
  );
}

/** A machine and its bootstrap step, and what both say of it. */
export interface MachineAnswer {
  readonly vm: VirtualMachine;
  readonly step: Extension | undefined;
  readonly state: MachineState;
}

/** @param group the id of a resource group */
export async function machinesIn(arm: ArmClient, group: string): Promise<MachineAnswer[]> {
  const path = `${group}/providers/Microsoft.Compute/virtualMachines`;
  const vms = await arm.list<VirtualMachine>(path, computeVersion, {
    name: "",
    properties: { hardwareProfile: { vmSize: "" } },
  });
  return Promise.all(
    vms.map(async (vm): Promise<MachineAnswer> => {
      const [step, view] = await Promise.all([
        arm.get<Extension>(`${path}/${vm.name}/extensions/bootstrap`, computeVersion, {
          properties: { provisioningState: "" },
        }),
        arm.get<InstanceView>(`${path}/${vm.name}/instanceView`, computeVersion, {}),
      ]);
      return { vm, step, state: stateOf(vm, step, view) };
    }),
  );
}

function stateOf(
  { tags, properties }: VirtualMachine,
  step: Extension | undefined,
  view: InstanceView | undefined,
): MachineState {
  // What could not be made is made, and started, by its next PUT.
  const isUnmade = step === undefined && properties.provisioningState === "Failed";
  return {
    vmId: properties.vmId,
    size: properties.hardwareProfile.vmSize,
    ...(properties.priority === "Spot" && { isSpot: true }),
    power: isUnmade ? undefined : powerIn(view),
    image: properties.storageProfile?.imageReference?.version,
    ...(properties.storageProfile?.diskControllerType !== undefined && {
      diskController: properties.storageProfile.diskControllerType,
    }),
    generation: tags?.[tag.generation],
    initialization: tags?.[tag.initialization],
    createdAt: tags?.[tag.createdAt],
    drained: tags?.[tag.drained],
    bootstrap: step && {
      state: step.properties.provisioningState,
      requestedAt: step.tags?.[tag.bootstrapRequestedAt],
      initialControlPlane: step.tags?.[tag.initialControlPlane],
      restoredFrom: step.tags?.[tag.restoredFrom],
      kubernetesVersion: step.tags?.[tag.kubernetes],
      configuration: step.tags?.[tag.configuration],
      encryptionKeys: step.tags?.[tag.encryptionKeys],
      cas: step.tags?.[tag.cas],
      serviceAccountKeys: step.tags?.[tag.serviceAccountKeys],
      fixed: step.tags?.[tag.fixed],
      drained: step.tags?.[tag.drained],
      script: step.tags?.[tag.script],
    },
  };
}

/** `running`, `stopped`, `deallocated`, or on the way to it; undefined where Azure does not say. */
export const powerIn = (view: InstanceView | undefined): string | undefined =>
  view?.statuses?.flatMap(({ code }) => /^PowerState\/(.+)$/.exec(code)?.[1] ?? [])[0];
