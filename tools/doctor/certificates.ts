import { X509Certificate } from "node:crypto";

import { containerOf, type KubernetesApi } from "../../components/cluster/kubernetes-api";
import { renewalFailed, renewedBelowDays, validUntil } from "../../components/machine/timers";
import { named } from "../../components/cluster/cluster-health";
import { goDuration } from "../../components/settings/rules/argument-types";
import { type Check, controlPlanesOf, type Expected, type Problem, problemIf } from "./check";
import type { ClusterState } from "./cluster-state";
import { wayIn } from "./login";

/** `pulumi up` renews the administrator's when it has fewer days left. */
const adminDays = 30;

/** What control planes renew by themselves: two of their weeks went by without. */
const renewedDays = renewedBelowDays - 15;

/** A kubelet's is renewed with a tenth of its year left at the latest. */
const kubeletDays = 30;

/** The same of one that the controller manager signs for less than a year. */
function leastSeconds({ pods }: Pick<ClusterState, "pods">): number {
  const flag = /^--cluster-signing-duration=(.*)$/;
  const signed = pods
    .flatMap((pod) => containerOf(pod, "kube-controller-manager")?.command ?? [])
    .flatMap((word) => goDuration(flag.exec(word)?.[1] ?? "") ?? []);
  const year = 365 * 86_400;
  const seconds = Math.min(year, ...signed.map((nanoseconds) => nanoseconds / 1e9));
  return (seconds / year) * kubeletDays * 86_400;
}

/** What dates are known: the server's only after it has answered. */
export function certificates(expected: Expected, api: KubernetesApi): Check[] {
  const { validTo } = new X509Certificate(api.clientCertificate);
  const { servingCertificate } = api;
  return [
    certificateCheck("admin certificate", validTo, api.now, {
      saw: wayIn(expected),
      least: adminDays,
      fix: "pulumi up, which renews it, then get the kubeconfig anew",
    }),
    ...(servingCertificate === undefined
      ? []
      : [
          certificateCheck("API server's certificate", servingCertificate.valid_to, api.now, {
            saw: ", of the one that answered",
            least: renewedDays,
            fix: "see the control planes' certificates below, and on them journalctl --unit zoned-certificates: they renew them by themselves",
          }),
        ]),
  ];
}

/** What the control planes' own timers have said on their Nodes. */
export function renewals(expected: Expected, { nodes, now }: ClusterState): Check {
  const dates = controlPlanesOf(expected).map((machine) => {
    const { annotations = {} } = named(nodes, machine)?.metadata ?? {};
    return { machine, until: annotations[validUntil], failed: annotations[renewalFailed] };
  });
  const known = dates.flatMap(({ until }) => until ?? []).sort();
  const log =
    "journalctl --unit zoned-certificates on that machine; it tries again every hour of one day a week";
  return {
    name: "control planes' certificates",
    saw: `renewed by their machines, the first to end is valid until ${known[0]?.slice(0, 10)}`,
    notAsked: known.length === 0 ? "no Node says until when: pulumi up writes it" : undefined,
    problems: dates.flatMap(({ machine, until, failed }): Problem[] => {
      if (failed !== undefined) return [{ machine, saw: `renewal failed: ${failed}`, fix: log }];
      const saw = "its Node does not say until when they are valid";
      if (until === undefined) return [{ machine, saw, fix: "pulumi up" }];
      const left = validityOf(until, now);
      return problemIf(left.days < renewedDays, { machine, saw: left.text, fix: log });
    }),
  };
}

/**
 * Whether API servers, which verify kubelets' certificates, take them, and for how long yet; and
 * whether kubelets renew those by which they ask the API, at 70 to 90 % of a year.
 */
export function kubeletCertificates(
  { machines }: Expected,
  { kubelets, now, pods }: ClusterState,
): Check {
  const least = leastSeconds({ pods });
  const own = machines.flatMap(({ name, kubeletCertificateUntil }) =>
    kubeletCertificateUntil === undefined
      ? []
      : { name, until: validityOf(kubeletCertificateUntil, now) },
  );
  const [firstOwn] = [...own].sort((a, b) => a.until.days - b.until.days);
  const ends = kubelets.flatMap(({ machine, clientSeconds }) =>
    clientSeconds === undefined ? [] : { machine, seconds: clientSeconds },
  );
  const first = Math.min(...ends.map(({ seconds }) => seconds));
  const until = (seconds: number) => validityOf(new Date(now + seconds * 1000).toISOString(), now);
  return {
    name: "kubelets' certificates",
    saw:
      `the API server takes those of ${kubelets.filter(({ error }) => error === undefined).length} kubelets` +
      (firstOwn === undefined ? "" : `, the first to end is ${firstOwn.until.text}`) +
      (ends.length === 0
        ? ""
        : `; of those that they show it, the first to end is ${until(first).text}`),
    problems: [
      ...kubelets.flatMap(({ machine, error }) => {
        const [reason] = /x509: [^"\\]*/.exec(error ?? "") ?? [];
        return problemIf(reason !== undefined, {
          machine,
          saw: `the API server does not take its kubelet's: ${reason}`,
          fix: "pulumi up, which makes another one where it ends and gives it to the machine",
        });
      }),
      ...own.flatMap(({ name, until }) =>
        problemIf(until.days < kubeletDays, {
          machine: name,
          saw: `its kubelet's own is ${until.text}`,
          fix: "pulumi up, which makes another one in its second year and gives it to the machine",
        }),
      ),
      ...ends.flatMap(({ machine, seconds }) =>
        problemIf(seconds < least, {
          machine,
          saw: `its kubelet's for the API is ${until(seconds).text}, and should have been renewed by it`,
          fix: "on that machine, journalctl --unit kubelet says why; kubectl get csr shows its request",
        }),
      ),
    ],
  };
}

function validityOf(
  validTo: string,
  now: number,
): { readonly days: number; readonly text: string } {
  const days = Math.floor((Date.parse(validTo) - now) / 86_400_000);
  const until = new Date(validTo).toISOString().slice(0, 10);
  const text = `${days < 0 ? "expired on" : "valid until"} ${until}${days < 0 ? "" : `, ${days} days`}`;
  return { days, text };
}

/** The date of a certificate, at the API server's time. */
export function certificateCheck(
  name: string,
  validTo: string,
  now: number,
  { saw = "", least, fix }: { readonly saw?: string; readonly least: number; readonly fix: string },
): Check {
  const { days, text } = validityOf(validTo, now);
  const observed = `${text}${saw}`;
  return { name, saw: observed, problems: problemIf(days < least, { saw: observed, fix }) };
}
