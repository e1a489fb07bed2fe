import type { Properties } from "../protocol/values";
import { nameOf, namespaceOf, text } from "./objects";

interface Kind {
  /** Its name in the paths of the API. */
  readonly plural: string;
  readonly isNamespaced: boolean;
  /**
   * What takes a new object: what the server refuses to change, and the data that the official plugin
   * replaces so that whatever reads it can be rolled out with it.
   */
  readonly fixed: readonly string[];
}

const namespaced = (plural: string, ...fixed: readonly string[]): Kind => ({
  plural,
  isNamespaced: true,
  fixed,
});
const ofCluster = (plural: string, ...fixed: readonly string[]): Kind => ({
  plural,
  isNamespaced: false,
  fixed,
});

/** All kinds of which the program makes or patches objects. */
const kinds: Readonly<Record<string, Kind>> = {
  "apiextensions.k8s.io/v1/CustomResourceDefinition": ofCluster("customresourcedefinitions"),
  "apiregistration.k8s.io/v1/APIService": ofCluster("apiservices"),
  "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy": ofCluster("mutatingadmissionpolicies"),
  "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding": ofCluster(
    "mutatingadmissionpolicybindings",
  ),
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": ofCluster(
    "validatingadmissionpolicies",
  ),
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": ofCluster(
    "validatingadmissionpolicybindings",
  ),
  "apps/v1/DaemonSet": namespaced("daemonsets", "spec.selector"),
  "apps/v1/Deployment": namespaced("deployments", "spec.selector"),
  "policy/v1/PodDisruptionBudget": namespaced("poddisruptionbudgets"),
  "rbac.authorization.k8s.io/v1/ClusterRole": ofCluster("clusterroles"),
  "rbac.authorization.k8s.io/v1/ClusterRoleBinding": ofCluster("clusterrolebindings", "roleRef"),
  "rbac.authorization.k8s.io/v1/Role": namespaced("roles"),
  "rbac.authorization.k8s.io/v1/RoleBinding": namespaced("rolebindings", "roleRef"),
  "snapshot.storage.k8s.io/v1/VolumeSnapshotClass": ofCluster("volumesnapshotclasses"),
  "storage.k8s.io/v1/CSIDriver": ofCluster("csidrivers"),
  "storage.k8s.io/v1/StorageClass": ofCluster("storageclasses", "parameters", "provisioner"),
  "v1/ConfigMap": namespaced("configmaps", "data", "binaryData"),
  "v1/Namespace": ofCluster("namespaces"),
  "v1/Node": ofCluster("nodes"),
  "v1/Secret": namespaced("secrets", "data", "type"),
  "v1/Service": namespaced("services"),
  "v1/ServiceAccount": namespaced("serviceaccounts"),
};

/** @throws what is to be done for a kind that the program did not have before */
export function kindOf({ apiVersion, kind }: Properties): Kind {
  const known = kinds[`${text(apiVersion)}/${text(kind)}`];
  if (known !== undefined) return known;
  throw new Error(
    `only the official plugin knows the kind ${text(kind)} of ${text(apiVersion)}: ` +
      "add it to tools/local-azure/plugins/kubernetes/kinds.ts",
  );
}

/** Where the API has an object. */
export function pathOf(object: Properties): string {
  const apiVersion = text(object.apiVersion);
  const { plural, isNamespaced } = kindOf(object);
  return [
    apiVersion.includes("/") ? "/apis" : "/api",
    apiVersion,
    ...(isNamespaced ? ["namespaces", namespaceOf(object)] : []),
    plural,
    encodeURIComponent(nameOf(object)),
  ].join("/");
}
