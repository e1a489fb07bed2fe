/** A file that the bootstrap step writes on its machine before it calls kubeadm. */
export interface PayloadFile {
  readonly path: string;
  /** Octal, as `chmod` takes it. Whatever holds a key or a token is "0600". */
  readonly mode: string;
  readonly content: string;
}

/** The kubelet's serving certificate and key on every machine. */
export const kubeletCertificatePath = "/var/lib/kubelet/pki/serving.crt";
export const kubeletKeyPath = "/var/lib/kubelet/pki/serving.key";
