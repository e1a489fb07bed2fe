import { groupName } from "../azure/resource-names";
import type { AzureAnswer } from "../azure/state";
import { shownAs } from "../azure/shown";
import { withApi } from "../cluster/kubernetes-api";
import { isHealthCheckSkipped } from "../settings/times";
import type { Settings } from "../settings/settings";
import { isControlPlaneName } from "../settings/topology";
import type { PreviousOutputs } from "./machine-changes";

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
