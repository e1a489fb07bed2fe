import type { RotationState } from "../../components/kubeadm/rotations";

/** What a stack's outputs say that its cluster has. */
export interface Expected {
  readonly machines: readonly {
    readonly name: string;
    readonly role: string;
    /** Such as southeastasia-1. */
    readonly zone: string;
    /** The kubelet's own; missing until a first update of a program that says it. */
    readonly kubeletCertificateUntil?: string;
  }[];
  /** Missing until an update has ended well. */
  readonly kubernetesVersion?: string;
  /** Of a private API, which the cluster's network alone reaches. */
  readonly apiAddress?: string;
  /** How often etcd is to be saved, such as 1h; missing where it is not. */
  readonly etcdBackups?: string;
  /** By whose tokens people log in; missing where by nobody's. */
  readonly issuer?: string;
  /** Missing where the operator sees to the encryption of Secrets. */
  readonly encryptionKeys?: RotationState;
  /** Missing until an update has ended well. */
  readonly cas?: RotationState;
  /** The keys of service accounts that every control plane has; missing until an update has ended well. */
  readonly serviceAccountKeys?: RotationState;
  /** What is to run, such as `DaemonSet kube-system/kube-proxy`; missing until an update of a program that says it has ended well. */
  readonly addOns?: readonly string[];
}

export interface Problem {
  /** The machine that it is about, where it is about one. */
  readonly machine?: string;
  readonly saw: string;
  readonly fix: string;
}

/** The problem, where there is one. */
export const problemIf = (isThere: boolean, problem: Problem): Problem[] =>
  isThere ? [problem] : [];

export interface Check {
  readonly name: string;
  /** What was seen. */
  readonly saw: string;
  /** None when the check has passed. */
  readonly problems: readonly Problem[];
  /** Why it could not be asked; it has neither passed nor failed then. */
  readonly notAsked?: string;
}

export const controlPlanesOf = ({ machines }: Expected): string[] =>
  machines.filter(({ role }) => role === "control-plane").map(({ name }) => name);
