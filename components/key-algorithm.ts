import type { PrivateKeyArgs } from "@pulumi/tls";

/**
 * All keys are RSA of 2048 bits, which is also kubeadm's default. Entra takes no service account's token
 * that an ECDSA key has signed (AADSTS5002738), and Microsoft says of no other key that the HTTPS probe of a
 * load balancer takes it: neither the API server's nor that of the CA above it. With one algorithm for
 * all of them `kubeadm certs renew` makes the same keys where it finds no configuration of the cluster.
 *
 * Only a kubelet that asks for its next certificate makes an ECDSA key, and cannot be told otherwise.
 */
export const privateKeyArgs: PrivateKeyArgs = { algorithm: "RSA", rsaBits: 2048 };

/** The same in kubeadm's words. */
export const encryptionAlgorithm = "RSA-2048";
