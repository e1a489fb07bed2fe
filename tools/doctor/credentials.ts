import { X509Certificate } from "node:crypto";

import { named, nodeProblems } from "../../components/cluster/cluster-health";
import { containerOf, type KubernetesApi } from "../../components/cluster/kubernetes-api";
import { encryptionTexts } from "../../components/kubeadm/encryption";
import {
  accountKeyTexts,
  caTexts,
  isRewriting,
  type RotationState,
} from "../../components/kubeadm/rotations";
import { renewalFailed, renewedBelowDays, validUntil } from "../../components/machine/timers";
import { goDuration } from "../../components/settings/rules/argument-types";
import { type Check, controlPlanesOf, type Expected, type Problem, problemIf } from "./check";
import type { ClusterState, IssuerState } from "./cluster-state";

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
  const isDate = (until: string) => !Number.isNaN(Date.parse(until));
  const said = dates.flatMap(({ until }) => until ?? []);
  const first = said.filter(isDate).sort()[0];
  const log =
    "journalctl --unit zoned-certificates on that machine; it tries again every hour of one day a week";
  return {
    name: "control planes' certificates",
    saw: `renewed by their machines, the first to end is valid until ${first?.slice(0, 10)}`,
    notAsked: said.length === 0 ? "no Node says until when: pulumi up writes it" : undefined,
    problems: dates.flatMap(({ machine, until, failed }): Problem[] => {
      if (failed !== undefined) return [{ machine, saw: `renewal failed: ${failed}`, fix: log }];
      const saw = "its Node does not say until when they are valid";
      if (until === undefined) return [{ machine, saw, fix: "pulumi up" }];
      if (!isDate(until)) {
        return [
          {
            machine,
            saw: `its Node says '${until}' of until when they are valid, expected a date`,
            fix: "on that machine, systemctl start zoned-certificates, which says it anew",
          },
        ];
      }
      const left = validityOf(until, now);
      return problemIf(left.days < renewedDays, { machine, saw: left.text, fix: log });
    }),
  };
}

/**
 * Whether API servers, which verify kubelets' certificates, take them, and for how long yet; and
 * whether kubelets renew those by which they ask the API, at 70 to 90 % of a year.
 */
export function kubeletCertificates({ machines }: Expected, state: ClusterState): Check {
  const { kubelets, now } = state;
  const least = leastSeconds(state);
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
        if (reason !== undefined) {
          return {
            machine,
            saw: `the API server does not take its kubelet's: ${reason}`,
            fix: "pulumi up, which makes another one where it ends and gives it to the machine",
          };
        }
        return problemIf(error !== undefined && nodeProblems(machine, state, now).length === 0, {
          machine,
          saw: `the API server gets nothing from its kubelet, though that is well: ${error}`,
          fix: "kubectl logs, exec and top need it: see if network security groups and policies let control planes to TCP 10250 of that machine",
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

/** What is said of one that is changed stage by stage: of the first of its keys, and of the others. */
interface RotationWords {
  readonly name: string;
  readonly nameOf: (key: number) => string;
  readonly whose: "its" | "their";
  readonly well: (first: string) => string;
  /** Before the new one has taken the place of the old one, and after it. */
  readonly before: (first: string, rest: string) => string;
  readonly after: (first: string, rest: string) => string;
  readonly fix: string;
}

const authorities: RotationWords = {
  name: "certificate authorities",
  nameOf: caTexts.nameOf,
  whose: "their",
  well: (first) => `${first} signs, and no other is trusted`,
  before: (first, rest) => `${first} still signs, and ${rest} is trusted as well`,
  after: (first, rest) => `${first} signs, and ${rest} is still trusted`,
  fix: "restart pods of your own that ask the API, then pulumi up, and again until it says nothing of the CAs",
};

const encryption: RotationWords = {
  name: "key of Secrets",
  nameOf: encryptionTexts.nameOf,
  whose: "its",
  well: (first) => `${first} encrypts all of them`,
  before: (first, rest) => `${first} is still in use, and the API servers read ${rest} as well`,
  after: (first, rest) => `${first} took all of them, and the API servers still read ${rest}`,
  fix: "pulumi up, and again until it says nothing of the key",
};

const accounts: RotationWords = {
  name: "key of service accounts",
  nameOf: accountKeyTexts.nameOf,
  whose: "its",
  well: (first) => `${first} signs tokens, and those of no other are admitted`,
  before: (first, rest) => `${first} still signs, and tokens of ${rest} are admitted as well`,
  after: (first, rest) => `${first} signs, and tokens of ${rest} are still admitted`,
  fix: "pulumi up, which says until when tokens of the key before may be in use, and again until it says nothing of the key",
};

/** Whether a change is under way, by what the last update that ended well left: once it has ended there is one alone. */
function rotation(
  state: RotationState | undefined,
  { name, nameOf, whose, fix, ...says }: RotationWords,
): Check {
  if (state === undefined) {
    return { name, saw: "", problems: [], notAsked: "the outputs name none" };
  }
  const [first = "", ...others] = state.keys.map(nameOf);
  const stage = says[isRewriting(state) ? "after" : "before"](first, others.join(", "));
  return {
    name,
    saw: says.well(first),
    problems: problemIf(others.length > 0, {
      saw: `${whose} change has not finished: ${stage}`,
      fix,
    }),
  };
}

export const certificateAuthorities = ({ cas }: Expected): Check => rotation(cas, authorities);

export const serviceAccountKey = ({ serviceAccountKeys }: Expected): Check =>
  rotation(serviceAccountKeys, accounts);

export function encryptionKeyGeneration({ encryptionKeys }: Expected): Check {
  const check = rotation(encryptionKeys, encryption);
  const isNone = encryptionKeys?.keys[0] === 0;
  return isNone ? { ...check, saw: "none, as encryptionKeyGeneration 0 says" } : check;
}

/** Whether people can log in, by an API server that has their issuer's keys. */
export function login(issuer: string, { keysAt, failedAt = 0, refused }: IssuerState): Check {
  const time = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 19);
  const flaw =
    failedAt > (keysAt ?? 0)
      ? `the API server that answered has asked ${issuer} in vain for its keys, at ${time(failedAt)}Z`
      : keysAt === undefined && refused > 0
        ? `the API server that answered has refused ${refused} tokens, and has never had the keys of ${issuer}`
        : undefined;
  return {
    name: "login of people",
    saw:
      keysAt === undefined ? "" : `the API server has the keys of ${issuer}, of ${time(keysAt)}Z`,
    notAsked:
      flaw === undefined && keysAt === undefined
        ? `nobody has logged in since the API server that answered has started, which asks ${issuer} for its keys then`
        : undefined,
    problems: problemIf(flaw !== undefined, {
      saw: flaw ?? "",
      fix:
        `see if control planes reach ${new URL(issuer).host} (docs/firewall.md), and what the log of kube-apiserver ` +
        "says of oidc; until then the output kubeconfig is the way in",
    }),
  };
}

/** The way in that is left when nobody can. */
export const wayIn = ({ issuer }: Expected): string =>
  issuer === undefined ? "" : `, the way in when ${issuer} does not answer`;
