/** Where the API answers. */
export interface ApiServer {
  readonly name: string;
  readonly port: number;
}

/**
 * Sends a pod on the host's network to the API by its name, as the kubelet goes.
 *
 * The usual way is the Service's address, which kube-proxy has to program first; and kube-proxy may
 * wait for the very addresses that the cloud provider is about to give the node.
 */
export const apiServerEnv = ({ name, port }: ApiServer) => [
  { name: "KUBERNETES_SERVICE_HOST", value: name },
  { name: "KUBERNETES_SERVICE_PORT", value: String(port) },
];
