import type { Component } from "../settings";

const kubeadm = "kubeadm sets it, from this program's configuration";

/** Arguments that the cluster's parts agree on: what sets each of them in the operator's place. */
export const ownedArguments: Readonly<Record<Component, Readonly<Record<string, string>>>> = {
  apiServerExtraArgs: {
    ...by(
      kubeadm,
      "advertise-address allow-privileged bind-address client-ca-file enable-bootstrap-token-auth etcd-cafile " +
        "etcd-certfile etcd-keyfile etcd-servers kubelet-client-certificate kubelet-client-key proxy-client-cert-file " +
        "proxy-client-key-file requestheader-client-ca-file secure-port service-account-key-file " +
        "service-account-signing-key-file tls-cert-file tls-private-key-file",
    ),
    "kubelet-certificate-authority": "kubelets have certificates of the cluster's CA",
    "service-cluster-ip-range": "set serviceCidr",
  },
  controllerManagerExtraArgs: {
    ...by(
      kubeadm,
      "allocate-node-cidrs authentication-kubeconfig authorization-kubeconfig client-ca-file cloud-provider " +
        "cluster-signing-cert-file cluster-signing-key-file kubeconfig leader-elect node-cidr-mask-size " +
        "node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6 requestheader-client-ca-file root-ca-file " +
        "service-account-private-key-file use-service-account-credentials",
    ),
    "cluster-cidr": "set podCidr",
    "cluster-name": "set clusterName",
    "service-cluster-ip-range": "set serviceCidr",
  },
  schedulerExtraArgs: by(
    kubeadm,
    "authentication-kubeconfig authorization-kubeconfig kubeconfig leader-elect",
  ),
  etcdExtraArgs: by(
    kubeadm,
    "advertise-client-urls cert-file client-cert-auth data-dir force-new-cluster initial-advertise-peer-urls " +
      "initial-cluster initial-cluster-state initial-cluster-token key-file listen-client-urls listen-peer-urls name " +
      "peer-cert-file peer-client-cert-auth peer-key-file peer-trusted-ca-file trusted-ca-file",
  ),
  kubeletExtraArgs: {
    ...by(
      kubeadm,
      "anonymous-auth authentication-token-webhook authorization-mode bootstrap-kubeconfig cert-dir cgroup-driver " +
        "client-ca-file cloud-provider cluster-domain config container-runtime-endpoint healthz-bind-address " +
        "healthz-port hostname-override kubeconfig node-ip pod-manifest-path rotate-certificates tls-cert-file " +
        "tls-private-key-file",
    ),
    "provider-id": "Azure's cloud provider gives each node its own",
    "register-with-taints": "set taints of a pool in workerPools, or schedulableControlPlanes",
  },
};

function by(owner: string, names: string): Record<string, string> {
  return Object.fromEntries(names.split(" ").map((name) => [name, owner]));
}
