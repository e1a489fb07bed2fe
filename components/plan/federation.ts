import type { Settings } from "../settings/settings";
import type { PreviousOutputs } from "./machine-changes";
import { issuerFlag, serviceAccountIssuer } from "../kubeadm/merged-arguments";
import { hasIssuer } from "../settings/logins";
import { tokenIssuerOf } from "../token-issuer";
import { groupName } from "../azure/resource-names";
import type { AzureAnswer } from "../azure/state";
import { shownAs } from "../azure/shown";
import { withApi } from "../cluster/kubernetes-api";
import { isHealthCheckSkipped } from "../settings/times";
import { isControlPlaneName } from "../settings/topology";

/** How this program's own pods log in to Azure, and what control planes have for it. */
export interface Federation {
  /** Whether they log in by tokens of their service accounts. */
  readonly isUsed: boolean;
  /** Whether control planes carry the cluster's identity. */
  readonly isOnMachines: boolean;
  readonly message?: string;
}

/**
 * Entra takes such tokens once API servers give them with an issuer that it knows; and the identity leaves the
 * machines once nobody there needs it, an update later. A new cluster begins with all of it.
 *
 * @param isKnownToEntra whether API servers give tokens that Entra takes by this update
 * @param previous what the last update of this cluster has left; nothing before there is one
 * @param loginProblem why the machines' identity may still be needed
 */
export function planFederation(
  { machineIdentity }: Pick<Settings, "machineIdentity">,
  isKnownToEntra: boolean,
  previous: Pick<PreviousOutputs, "isFederated"> | undefined,
  loginProblem: string | undefined,
): Federation {
  if (machineIdentity) return { isUsed: false, isOnMachines: true };
  const isUsed = isKnownToEntra;
  const hasToStay = previous?.isFederated !== true || loginProblem !== undefined;
  const isOnMachines = previous !== undefined && hasToStay;
  const message =
    previous?.isFederated === true
      ? "this update leaves the cluster's identity on the control planes, since the cloud provider and the disk driver are not known to log in " +
        `without it: ${loginProblem}. Run pulumi up again when they do`
      : "this update has the cloud provider and the disk driver log in by tokens of their service accounts. " +
        "Run pulumi up again when it has ended: it takes the identity off the control planes";
  return { isUsed, isOnMachines, ...(isUsed && isOnMachines && { message }) };
}

type TokenIssuers = readonly [string, ...string[]];

type IssuerSettings = Pick<
  Settings,
  "clusterName" | "kubeadm" | "machineIdentity" | "resourceManagerEndpoint" | "workloadIdentities"
>;

/** The issuers that an update leaves on every control plane, and what is to be said of their change. */
interface PlannedTokenIssuers {
  /** Nothing where it is kubeadm's alone. */
  readonly tokenIssuers?: TokenIssuers;
  /** Whether API servers give tokens that Entra takes. */
  readonly isKnownToEntra: boolean;
  readonly message?: string;
}

/** At most one of two: an operator's own beside what Entra has to know is refused. */
function wantedIssuer(settings: IssuerSettings, subscriptionId: string): string {
  if (hasIssuer(settings)) return tokenIssuerOf(settings, subscriptionId);
  return settings.kubeadm.apiServerExtraArgs[issuerFlag] ?? serviceAccountIssuer;
}

/**
 * One stage towards the issuer that the settings want: this program's, an operator's, or kubeadm's. While an update
 * is under way some API servers are a stage ahead, so that one has to be admitted by all before one of them gives
 * tokens of it. None is forgotten: tokens of it may be out, and cost nothing.
 *
 * @param previous what the last update of this cluster that ended well has left; nothing before there is one
 */
export function planTokenIssuers(
  settings: IssuerSettings,
  subscriptionId: string,
  previous: Pick<PreviousOutputs, "tokenIssuers"> | undefined,
): PlannedTokenIssuers {
  const isForEntra = hasIssuer(settings);
  const wanted = wantedIssuer(settings, subscriptionId);
  const both: TokenIssuers = [wanted, serviceAccountIssuer];
  if (previous === undefined) {
    const isOther = wanted !== serviceAccountIssuer;
    return { ...(isOther && { tokenIssuers: both }), isKnownToEntra: isForEntra };
  }
  const current: TokenIssuers = previous.tokenIssuers ?? [serviceAccountIssuer];
  if (current[0] === wanted) {
    return { tokenIssuers: previous.tokenIssuers, isKnownToEntra: isForEntra };
  }
  if (!current.includes(wanted)) {
    return {
      tokenIssuers: [...current, wanted],
      isKnownToEntra: false,
      message:
        `this update has every API server admit tokens of ${wanted}. ` +
        "Run pulumi up again when it has ended: it has them give such tokens",
    };
  }
  return {
    tokenIssuers: [wanted, ...current.filter((issuer) => issuer !== wanted)],
    isKnownToEntra: isForEntra,
    message: `this update has every API server give tokens of ${wanted}; those of before stay valid`,
  };
}

interface LoginArgs {
  readonly settings: Pick<
    Settings,
    | "cloudProvider"
    | "clusterName"
    | "diskDriver"
    | "identityId"
    | "machineIdentity"
    | "resourceGroup"
    | "skipHealthCheckUntil"
  >;
  readonly previous: PreviousOutputs | undefined;
  readonly azure: Pick<AzureAnswer, "machines" | "shown">;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/**
 * Why the cluster's identity has to stay on control planes; nothing where none carries it, or where the cloud
 * provider and the disk driver run without it.
 *
 * The outputs do not say that: they are those of an update whose steps ended well, also where these pods did not
 * become ready after that.
 */
export async function getLoginProblem(args: LoginArgs): Promise<string | undefined> {
  const { settings, previous, kubeconfig, now } = args;
  if (settings.machineIdentity || previous?.isFederated !== true || !isCarried(args)) {
    return undefined;
  }
  if (isHealthCheckSkipped(settings, now)) return "skipHealthCheckUntil has nobody asked";
  if (kubeconfig === undefined) return "this stack has no output kubeconfig";
  const deployments = [
    ...(settings.cloudProvider ? ["cloud-controller-manager"] : []),
    ...(settings.diskDriver ? ["csi-azuredisk-controller"] : []),
  ];
  return withApi(kubeconfig, async (api) => {
    for (const name of deployments) {
      const text = await api.get(`/apis/apps/v1/namespaces/kube-system/deployments/${name}`);
      if (!isRolledOut(JSON.parse(text))) return `Deployment kube-system/${name} is not rolled out`;
    }
    return undefined;
  }).catch((error: Error) => error.message);
}

/** Of an update that stopped, some control planes may carry it and others not. */
function isCarried({ settings, previous, azure }: LoginArgs): boolean {
  const own = `/resourceGroups/${groupName(settings)}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${settings.clusterName}`;
  const ids = [own, settings.identityId, previous?.identityId ?? ""].filter((id) => id !== "");
  return [...azure.machines.keys()]
    .filter((name) => isControlPlaneName(settings, name))
    .flatMap((name) => {
      const vm = azure.shown.get(shownAs("azure-native:compute:VirtualMachine", name));
      const identity = vm?.["identity"] as { userAssignedIdentities?: object } | undefined;
      return Object.keys(identity?.userAssignedIdentities ?? {});
    })
    .some((id) => ids.some((one) => id.toLowerCase().endsWith(one.toLowerCase())));
}

interface Deployment {
  readonly metadata: { readonly generation: number };
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly spec: {
        readonly containers: readonly { readonly env?: readonly { readonly name: string }[] }[];
      };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

/** Whether all of its pods log in by tokens and are ready, and none of before is left. */
function isRolledOut({ metadata, spec, status = {} }: Deployment): boolean {
  const { observedGeneration = 0, replicas, updatedReplicas, availableReplicas } = status;
  return (
    spec.template.spec.containers.some(({ env = [] }) =>
      env.some(({ name }) => name === "AZURE_FEDERATED_TOKEN_FILE"),
    ) &&
    observedGeneration >= metadata.generation &&
    [replicas, updatedReplicas, availableReplicas].every((count) => count === spec.replicas)
  );
}
