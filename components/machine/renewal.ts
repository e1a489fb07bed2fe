import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { PayloadFile } from "../kubeadm/payload-file";

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

const script = "/opt/zoned/renew-certificates.sh";

const days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const service = `[Unit]
Description=Renewal of the control plane's certificates
After=kubelet.service

[Service]
Type=oneshot
ExecStart=/bin/bash ${script}
TimeoutStartSec=1h
`;

/**
 * Every hour of a day, since a cluster may be off for a part of every day; less the last one, whose
 * turn would end on the day of another control plane. Not persistent: after a time without machines
 * all of them would catch up at once.
 */
const timer = (position: number): string => `[Unit]
Description=Renewal of the control plane's certificates, each control plane's on another day

[Timer]
OnCalendar=${days[position % days.length]} *-*-* 00..22:00:00 UTC

[Install]
WantedBy=timers.target
`;

/**
 * What renews a control plane's certificates on the machine, without an operator.
 *
 * @param position of the control plane among all of them, from 0
 */
export const renewalFiles = (position: number): PayloadFile[] => [
  {
    path: script,
    mode: "0700",
    content: readFileSync(join(__dirname, "../../cloud-init/renew-certificates.sh"), "utf8"),
  },
  { path: "/etc/systemd/system/zoned-certificates.service", mode: "0644", content: service },
  {
    path: "/etc/systemd/system/zoned-certificates.timer",
    mode: "0644",
    content: timer(position),
  },
];
