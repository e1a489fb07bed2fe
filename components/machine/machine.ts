import * as compute from "@pulumi/azure-native/compute";
import * as network from "@pulumi/azure-native/network";
import * as pulumi from "@pulumi/pulumi";

import type { ClusterGroup } from "../cluster-group";
import { digest } from "../digest";
import { identitiesTag, ignoredAlways } from "../azure/additions";
import { Certificates } from "../certificates";
import type { MemberUpgrade } from "../cluster/leave";
import { knownOutput } from "../azure/shown";
import { type Hardware, osDiskProperties, spotProperties } from "../azure/hardware";
import { imageReferenceOf } from "../azure/image-offers";
import { MachineState, tag } from "../azure/state";
import { fixedTexts, ignoredOnExisting, MachineRecord, replacedOnChange } from "./generation";
import { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import { KubeletCertificate, kubeletCertificate } from "./kubelet-certificate";
import { Drain, Membership } from "./membership";
import { switchPower } from "./power";
import { customScript, osProfileOf, securityProfileOf } from "./vm-profile";

export interface MachineArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly plan: MachinePlan;
  readonly subnetId: pulumi.Input<string>;
  /** Pool of the API balancer; control planes only. */
  readonly poolId?: pulumi.Input<string>;
  /** Managed identities, those that there are. */
  readonly identityIds: readonly (pulumi.Input<string> | undefined)[];
  /** base64; read by a first boot, so that a machine that stays keeps its own. */
  readonly customData: string;
  /** Whether the machine exists and stays. */
  readonly retained: boolean;
  /** The machine as Azure has it. */
  readonly current: MachineState | undefined;
  /** Whether there is a cluster already. */
  readonly exists: boolean;
  /** Whether Azure gives it its size only while it is deallocated. */
  readonly deallocates: boolean;
  /** Whether it is off, or will be, and is to run again. */
  readonly starts: boolean;
  /** Why its bootstrap step must not run, since it is off and stays so. */
  readonly stepRefusal?: string;
  /** Of its size. */
  readonly hardware: Hardware;
  /** The initialization of the cluster that it is made for. */
  readonly initialization: string;
  readonly record: MachineRecord;
  readonly certificates: Pick<Certificates, "cluster">;
  /** Secret, and known before there is an API: not the stack's output. */
  readonly kubeconfig: pulumi.Input<string>;
  /** What its membership goes with, without a drain: only with the whole cluster. */
  readonly endsWith: pulumi.Resource;
  /** What must have ended before the VM may be made, changed or replaced. */
  readonly after: readonly pulumi.Resource[];
}

export interface BootstrapArgs {
  /** vmId of the machine that ran or may run `kubeadm init`; control planes only. */
  readonly initialControlPlane?: pulumi.Input<string>;
  /** The snapshot of which the cluster is restored; control planes only. */
  readonly restoredFrom?: string;
  /** The keys of Secrets that the script brings, as a tag; control planes only. */
  readonly encryptionKeys?: string;
  /** The CAs that it brings, as a tag; control planes only. */
  readonly cas?: string;
  /** The keys of service accounts that it brings, as a tag; control planes only. */
  readonly serviceAccountKeys?: string;
  /** Hash over what its cluster keeps for its life; control planes only. */
  readonly fixed?: string;
  /** What runs as root; it may hold keys. */
  readonly script: pulumi.Output<string>;
  readonly after: readonly pulumi.Resource[];
  /** Memberships that end after this one, when several machines go. */
  readonly outlives?: readonly pulumi.Resource[];
}

interface Bootstrapped {
  readonly step: compute.VirtualMachineExtension;
  readonly membership: Membership;
}

/**
 * One network interface and one VM in one zone: what control plane and workers are made of. The
 * bootstrap step and the membership in the cluster are added by `bootstrap` when what they wait for
 * exists.
 *
 * The interface outlives the VM, so that a replaced machine keeps its address and its place in the
 * balancer.
 */
export class Machine extends pulumi.ComponentResource {
  readonly plan: MachinePlan;
  readonly vm: compute.VirtualMachine;
  readonly kubeletCertificate: KubeletCertificate;
  private readonly args: MachineArgs;
  private readonly drain: Drain;

  constructor(args: MachineArgs, opts?: pulumi.ComponentResourceOptions) {
    const { plan, resourceGroup, settings } = args;
    super("zoned:index:Machine", plan.name, {}, opts);
    this.plan = plan;
    this.args = args;
    const { name, zone } = plan;
    const resourceGroupName = resourceGroup.name;
    const child = { parent: this, deletedWith: resourceGroup.own };

    const nic = new network.NetworkInterface(
      `${name}-nic`,
      {
        resourceGroupName,
        networkInterfaceName: `${name}-nic`,
        // Without it, Azure drops packets of other addresses than the machine's, such as those of pods that routes lead
        // to. VXLAN wraps these, and what else pods send is masqueraded.
        enableIPForwarding: settings.cni === "none",
        enableAcceleratedNetworking: args.hardware.hasAcceleratedNetworking,
        ipConfigurations: [
          {
            name: "node",
            primary: true,
            subnet: { id: args.subnetId },
            privateIPAllocationMethod: "Static",
            privateIPAddress: plan.address,
            loadBalancerBackendAddressPools: args.poolId === undefined ? [] : [{ id: args.poolId }],
          },
        ],
      },
      // Azure changes it on no running machine, and the interface outlives its machines.
      { ...child, ignoreChanges: ["enableAcceleratedNetworking"] },
    );

    this.drain = new Drain(this.member, args.current, args.exists, upgradeOf(args), {
      ...child,
      deletedWith: args.endsWith,
      dependsOn: [...args.after],
    });

    const identityId = plan.role === "control-plane" ? settings.identityId : "";
    const given = identitiesTag([identityId, settings.kubeletIdentityId].filter((id) => id !== ""));
    // No list of data disks: the disk driver attaches them, and a list sent after a refresh would
    // be stale.
    this.vm = new compute.VirtualMachine(
      `${name}-vm`,
      {
        resourceGroupName,
        vmName: name,
        zones: [zone],
        hardwareProfile: { vmSize: this.sizeOnceFree },
        ...spotProperties(plan),
        identity: identityOf(args),
        networkProfile: {
          networkInterfaces: [{ id: nic.id, primary: true, deleteOption: "Detach" }],
        },
        osProfile: osProfileOf(settings, name, args.customData),
        storageProfile: {
          imageReference: imageReferenceOf(settings, args.hardware.architecture),
          // Left out, Azure takes SCSI, also of a size that has none.
          ...(args.hardware.isNvmeOnly && { diskControllerType: "NVMe" }),
          osDisk: osDiskProperties(plan, settings),
        },
        securityProfile: securityProfileOf(settings),
        diagnosticsProfile: { bootDiagnostics: { enabled: true } },
        // Azure tells the machine before it deletes it, and waits so long for its word. It does not have that for spot
        // machines (virtual-machine-scale-sets-terminate-notification), and tells these half a minute before.
        ...(plan.spot === undefined && {
          scheduledEventsProfile: {
            terminateNotificationProfile: { enable: true, notBeforeTimeout: "PT5M" },
          },
        }),
        tags: this.drain.lastDrained.apply((drained) => ({
          [tag.generation]: args.record.generation,
          [tag.initialization]: args.initialization,
          [tag.createdAt]: args.record.createdAt,
          // Also where Azure has another size than Pulumi's state, which alone would be no change.
          ...(drained ? { [tag.drained]: drained } : {}),
          ...(given === "" ? {} : { [tag.identities]: given }),
        })),
      },
      {
        ...child,
        dependsOn: [...args.after, this.drain],
        ignoreChanges: [...ignoredAlways, ...(args.retained ? ignoredOnExisting : [])],
        replaceOnChanges: [...replacedOnChange],
        // Kept in Pulumi's state and not in a tag, which anyone with access may remove.
        replacementTrigger: [args.initialization, args.record.createdAt, ...fixedTexts(plan)],
        // Its interface and its name can belong to one VM only.
        deleteBeforeReplace: true,
      },
    );
    const { certificates, record } = args;
    this.kubeletCertificate = kubeletCertificate(
      plan,
      { made: record.createdAt, certificates },
      { parent: this },
    );
    this.registerOutputs();
  }

  /**
   * The step that initializes or joins, and ends when that is done. Azure runs it again when its
   * settings, the script or the tag below change; a machine that is a healthy member it makes what
   * the settings say, and else only verifies.
   */
  bootstrap({
    initialControlPlane,
    restoredFrom,
    encryptionKeys,
    cas,
    serviceAccountKeys,
    fixed,
    script,
    after,
    outlives = [],
  }: BootstrapArgs): Bootstrapped {
    const { resourceGroup, settings, record, endsWith } = this.args;
    const { bootstrapRequestedAt } = record;
    // It tells nothing of the keys that are in the script.
    const scriptDigest = pulumi.unsecret(script).apply(digest);
    const step = new compute.VirtualMachineExtension(
      `${this.plan.name}-bootstrap`,
      {
        resourceGroupName: resourceGroup.name,
        vmName: this.runningName,
        vmExtensionName: "bootstrap",
        ...customScript,
        // An equal PUT returns the old result, also an old failure. A resize reboots the machine:
        // then the next machine has to wait until this one was seen healthy again.
        forceUpdateTag: pulumi.interpolate`${bootstrapRequestedAt}/${this.drain.lastDrained}`,
        protectedSettings: pulumi.secret({
          script: script.apply((text) => {
            this.refuseWhileOff(text);
            return Buffer.from(text).toString("base64");
          }),
        }),
        tags: this.drain.lastDrained.apply((drained) => ({
          [tag.bootstrapRequestedAt]: bootstrapRequestedAt,
          [tag.script]: scriptDigest,
          [tag.kubernetes]: settings.kubernetesVersion,
          [tag.configuration]: record.configuration,
          // Without the machine's own, the restart has not ended; see stopped-machines.ts.
          ...(drained ? { [tag.drained]: drained } : {}),
          ...(initialControlPlane === undefined
            ? {}
            : { [tag.initialControlPlane]: initialControlPlane }),
          ...(restoredFrom === undefined ? {} : { [tag.restoredFrom]: restoredFrom }),
          ...(encryptionKeys === undefined ? {} : { [tag.encryptionKeys]: encryptionKeys }),
          ...(cas === undefined ? {} : { [tag.cas]: cas }),
          ...(serviceAccountKeys === undefined
            ? {}
            : { [tag.serviceAccountKeys]: serviceAccountKeys }),
          ...(fixed === undefined ? {} : { [tag.fixed]: fixed }),
        })),
      },
      {
        parent: this,
        // It goes with its VM. By `deletedWith` the engine would forget it before the membership has left, which may fail.
        retainOnDelete: true,
        dependsOn: [...after],
        // Azure changes nothing of the step of a machine that is off; what differs follows once it runs.
        ignoreChanges:
          this.args.stepRefusal === undefined ? [] : ["tags", "enableAutomaticUpgrade"],
        // The agent gives a script 90 minutes.
        customTimeouts: { create: "95m", update: "95m" },
      },
    );
    const { retained, current } = this.args;
    const vmId = knownOutput(this.vm.vmId, this.vm, retained ? current?.vmId : undefined);
    const membership = new Membership(
      { ...this.member, vmId },
      { parent: this, deletedWith: endsWith, dependsOn: [step, ...outlives] },
    );
    return { step, membership };
  }

  /**
   * Whether all else goes on without it: Azure may have no capacity for a new spot machine, and leaves one that
   * it could not make.
   */
  get isSpare(): boolean {
    const { plan, current } = this.args;
    return plan.spot !== undefined && current?.bootstrap === undefined;
  }

  /** Known when Azure would take it. Where `--target` leaves the drain out, it is the size before. */
  private get sizeOnceFree(): pulumi.Output<string> {
    const { plan, settings, deallocates } = this.args;
    const { size } = this.drain;
    if (!deallocates) return size;
    return size.apply(async (drainedFor) => {
      if (drainedFor === plan.size) await switchPower("deallocate", plan, settings);
      return drainedFor;
    });
  }

  /** Known when the machine runs: Azure takes no extension before that. */
  private get runningName(): pulumi.Output<string> {
    const { plan, settings, starts } = this.args;
    if (!starts) return this.vm.name;
    return this.vm.name.apply(async (name) => {
      await switchPower("start", plan, settings);
      return name;
    });
  }

  /** Azure refuses any change of a step then, and Pulumi would try each that is not as before. */
  private refuseWhileOff(script: string): void {
    const { stepRefusal, current } = this.args;
    if (stepRefusal === undefined || digest(script) === current?.bootstrap?.script) return;
    throw new pulumi.RunError(stepRefusal);
  }

  private get member() {
    const { plan, initialization, kubeconfig } = this.args;
    return { machine: plan.name, role: plan.role, size: plan.size, initialization, kubeconfig };
  }
}

/** What the bootstrap step makes of a machine that stays, where it has another version or may be half of each. */
function upgradeOf({ retained, current, settings }: MachineArgs): MemberUpgrade | undefined {
  const { kubernetesVersion } = settings;
  const isHalfDone = current?.bootstrap?.state !== "Succeeded";
  const isSame = !isHalfDone && current?.bootstrap?.kubernetesVersion === kubernetesVersion;
  if (!retained || isSame) return undefined;
  return { kubernetesVersion, ...(isHalfDone && { isHalfDone }) };
}

/** A PUT that names no identity leaves those that a machine has, so that it must be said to have none. */
function identityOf({ identityIds }: MachineArgs): compute.VirtualMachineArgs["identity"] {
  const ids = identityIds.filter((id) => id !== undefined);
  return ids.length > 0 ? { type: "UserAssigned", userAssignedIdentities: ids } : { type: "None" };
}
