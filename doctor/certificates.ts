import { X509Certificate } from "node:crypto";

import type { KubernetesApi } from "../components/kubernetes-api";
import type { Check } from "./check";

const leastCertificateDays = 60;

/** What dates are known: the server's only after it has answered. */
export function certificates(api: KubernetesApi): Check[] {
  const { validTo } = new X509Certificate(api.clientCertificate);
  const { servingCertificate } = api;
  return [
    certificateCheck("admin certificate", validTo, api.now, {
      fix: "pulumi up --replace with the URN of pki-admin (pulumi stack --show-urns), then get the kubeconfig anew",
    }),
    ...(servingCertificate === undefined
      ? []
      : [
          certificateCheck("API server's certificate", servingCertificate.valid_to, api.now, {
            saw: ", of the one that answered",
            fix: "on each control plane, kubeadm certs renew all, then restart its static pods; or replace the machines by pulumi up: the other certificates that kubeadm made are as old",
          }),
        ]),
  ];
}

/** The date of a certificate, at the API server's time. */
export function certificateCheck(
  name: string,
  validTo: string,
  now: number,
  { saw = "", fix }: { readonly saw?: string; readonly fix: string },
): Check {
  const days = Math.floor((Date.parse(validTo) - now) / 86_400_000);
  const until = new Date(validTo).toISOString().slice(0, 10);
  const said = `${days < 0 ? "expired on" : "valid until"} ${until}${days < 0 ? "" : `, ${days} days`}${saw}`;
  return { name, saw: said, problems: days < leastCertificateDays ? [{ saw: said, fix }] : [] };
}
