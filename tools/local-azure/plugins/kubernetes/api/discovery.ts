import { Client, Refused } from "./client";
import { groupOf, items, text } from "../objects";

export interface Kind {
  readonly plural: string;
  readonly namespaced: boolean;
}

/**
 * The server has no such kind: most often its CustomResourceDefinition is not there yet, or not any
 * more.
 */
export class UnknownKind extends Error {
  constructor(apiVersion: string, kind: string) {
    super(
      `the Kubernetes API has no kind ${kind} in ${apiVersion}; if a CustomResourceDefinition ` +
        `makes it, let this object depend on that one`,
    );
  }
}

const pathOf = (apiVersion: string): string =>
  apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;

/** Which kinds the server knows, asked once for each API version and again where one is missing. */
export class Discovery {
  private readonly known = new Map<string, Promise<ReadonlyMap<string, Kind>>>();

  constructor(private readonly client: Client) {}

  async find(apiVersion: string, kind: string): Promise<Kind> {
    const cached = this.known.get(apiVersion);
    const found = (await (cached ?? this.ask(apiVersion))).get(kind);
    if (found) {
      return found;
    }
    // An answer from before the definition was created is out of date.
    const fresh = cached ? (await this.ask(apiVersion)).get(kind) : undefined;
    if (!fresh) {
      this.known.delete(apiVersion);
      throw new UnknownKind(apiVersion, kind);
    }
    return fresh;
  }

  async path(apiVersion: string, kind: string, namespace: string, name = ""): Promise<string> {
    const { plural, namespaced } = await this.find(apiVersion, kind);
    const within =
      namespaced && namespace !== "" ? [`namespaces/${encodeURIComponent(namespace)}`] : [];
    const which = name === "" ? [] : [encodeURIComponent(name)];
    return [pathOf(apiVersion), ...within, plural, ...which].join("/");
  }

  private ask(apiVersion: string): Promise<ReadonlyMap<string, Kind>> {
    const answer = this.list(apiVersion);
    this.known.set(apiVersion, answer);
    answer.catch(() => this.known.delete(apiVersion));
    return answer;
  }

  private async list(apiVersion: string): Promise<ReadonlyMap<string, Kind>> {
    try {
      const { resources } = await this.client.get(pathOf(apiVersion));
      // A name with a slash is a part of an object, such as its status.
      const whole = items(resources ?? []).filter(({ name }) => !text(name).includes("/"));
      return new Map(
        whole.map(({ kind, name, namespaced }) => [
          text(kind),
          { plural: text(name), namespaced: namespaced === true },
        ]),
      );
    } catch (error) {
      if (error instanceof Refused && error.code === 404) {
        return new Map();
      }
      throw error;
    }
  }
}

/** API groups that every cluster has, so that their kinds need not be asked for. */
const builtIn: ReadonlySet<string> = new Set([
  "",
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "apps",
  "autoscaling",
  "batch",
  "certificates.k8s.io",
  "coordination.k8s.io",
  "discovery.k8s.io",
  "events.k8s.io",
  "flowcontrol.apiserver.k8s.io",
  "networking.k8s.io",
  "node.k8s.io",
  "policy",
  "rbac.authorization.k8s.io",
  "resource.k8s.io",
  "scheduling.k8s.io",
  "storage.k8s.io",
]);

const clusterScoped: ReadonlySet<string> = new Set([
  "APIService",
  "CertificateSigningRequest",
  "ClusterRole",
  "ClusterRoleBinding",
  "ClusterTrustBundle",
  "CSIDriver",
  "CSINode",
  "CustomResourceDefinition",
  "DeviceClass",
  "FlowSchema",
  "IngressClass",
  "IPAddress",
  "MutatingAdmissionPolicy",
  "MutatingAdmissionPolicyBinding",
  "MutatingWebhookConfiguration",
  "Namespace",
  "Node",
  "PersistentVolume",
  "PriorityClass",
  "PriorityLevelConfiguration",
  "ResourceSlice",
  "RuntimeClass",
  "ServiceCIDR",
  "StorageClass",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
  "ValidatingWebhookConfiguration",
  "VolumeAttachment",
  "VolumeAttributesClass",
]);

/** Whether objects of a kind live in namespaces; undefined where only the cluster can tell. */
export const isNamespaced = (apiVersion: string, kind: string): boolean | undefined =>
  builtIn.has(groupOf(apiVersion)) ? !clusterScoped.has(kind) : undefined;
