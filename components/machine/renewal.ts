import type { PayloadFile } from "../kubeadm/payload-file";
import { scriptFile, unitFile } from "./payload";

/** On the Node of a control plane: until when all certificates are valid that kubeadm made there. */
export const validUntil = "zoned/certificates-valid-until";

/** Beside it, after a renewal that did not end well: when, and why. */
export const renewalFailed = "zoned/certificates-renewal-failed";

/**
 * Certificates with fewer days left are renewed by their machine.
 *
 * kubeadm signs them for a year, and renews by itself only those of what it upgrades.
 *
 * @see https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-certs/
 */
export const renewedBelowDays = 60;

const days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/**
 * What renews a control plane's certificates on the machine, without an operator.
 *
 * @param position of the control plane among all of them, from 0
 */
export const renewalFiles = (position: number): PayloadFile[] => [
  scriptFile("renew-certificates.sh"),
  unitFile("zoned-certificates.service"),
  unitFile("zoned-certificates.timer", { DAY: days[position % days.length]! }),
];
