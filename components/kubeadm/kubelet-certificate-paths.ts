/** The kubelet's serving certificate and key on every machine. */
export const kubeletCertificatePath = "/var/lib/kubelet/pki/serving.crt";
export const kubeletKeyPath = "/var/lib/kubelet/pki/serving.key";
