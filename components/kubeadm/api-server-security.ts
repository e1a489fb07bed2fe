import { createHash } from "node:crypto";

import { stringify } from "yaml";

import type { Settings } from "../settings/settings";
import type { PayloadFile } from "./payload-file";
import { jwtAuthenticators, type PeopleSettings } from "./people";

export type SecuritySettings = PeopleSettings & Pick<Settings, "kubeadm">;

/**
 * Who is admitted besides certificates and service accounts: people by their tokens, and of anonymous
 * requests only the probes of the balancer and of kubeadm's static pods, which have no credential.
 *
 * @see https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests
 */
const authentication = (settings: PeopleSettings) => ({
  apiVersion: "apiserver.config.k8s.io/v1",
  kind: "AuthenticationConfiguration",
  ...jwtAuthenticators(settings),
  anonymous: {
    enabled: true,
    conditions: ["/livez", "/readyz", "/healthz"].map((path) => ({ path })),
  },
});

/**
 * Pod Security Standards for namespaces that say nothing by their own labels. The add-ons in
 * kube-system need the host.
 *
 * @see https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-admission-controller/
 */
const admission = {
  apiVersion: "apiserver.config.k8s.io/v1",
  kind: "AdmissionConfiguration",
  plugins: [
    {
      name: "PodSecurity",
      configuration: {
        apiVersion: "pod-security.admission.config.k8s.io/v1",
        kind: "PodSecurityConfiguration",
        defaults: {
          enforce: "baseline",
          "enforce-version": "latest",
          audit: "restricted",
          "audit-version": "latest",
          warn: "restricted",
          "warn-version": "latest",
        },
        exemptions: { namespaces: ["kube-system"] },
      },
    },
  ],
};

/** No bodies at all: those of Secrets would stand in the log in clear. */
const metadata = (rule: object) => ({ level: "Metadata", ...rule });

/**
 * Who changed what, who touched a Secret or a token, and who went into a pod or through the API to
 * something behind it. The first rule that fits is applied.
 */
const audit = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  omitManagedFields: true,
  rules: [
    // Renewed every ten seconds by every node and every controller that has a leader.
    { level: "None", resources: [{ group: "coordination.k8s.io", resources: ["leases"] }] },
    { level: "None", resources: [{ group: "", resources: ["events"] }] },
    { level: "None", resources: [{ group: "events.k8s.io", resources: ["events"] }] },
    metadata({
      resources: [
        { group: "", resources: ["secrets", "configmaps", "serviceaccounts/token"] },
        { group: "authentication.k8s.io", resources: ["tokenreviews"] },
      ],
    }),
    // kubectl begins them with a GET, for a WebSocket.
    metadata({
      resources: [
        {
          group: "",
          resources: [
            ...["pods/exec", "pods/attach", "pods/portforward"],
            ...["pods/proxy", "services/proxy", "nodes/proxy"],
          ],
        },
      ],
    }),
    metadata({ verbs: ["create", "update", "patch", "delete", "deletecollection"] }),
    { level: "None" },
  ],
};

const auditDirectory = "/var/log/kubernetes/audit";

/** An API server does not start with both. */
const contradictsAuthentication = (flag: string): boolean => flag.startsWith("oidc-");

/**
 * Those with forward secrecy and authenticated encryption. TLS 1.3 has no others; TLS 1.2 has to
 * stay, since Azure's probe speaks nothing newer.
 *
 * @see https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview
 */
export const cipherSuites: readonly string[] = [
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/**
 * Flags of the API server, the files that they name for the bootstrap step of a control plane, and what of its machine
 * the API server sees for them. The operator's own flags take their place by name; with OIDC among them, who may
 * ask is the operator's alone.
 */
export function apiServerSecurity(settings: SecuritySettings) {
  const isTheirs = Object.keys(settings.kubeadm.apiServerExtraArgs).some(contradictsAuthentication);
  const contents = (
    [
      ["authentication-config", "authentication.yaml", authentication(settings)],
      ["admission-control-config-file", "admission.yaml", admission],
      ["audit-policy-file", "audit.yaml", audit],
    ] as const
  ).map(([flag, name, content]) => [flag, name, stringify(content)] as const);
  // By what is in it: an API server reads most of these files at its start only, and kubeadm starts it anew
  // when its manifest changes.
  const hash = createHash("sha256").update(JSON.stringify(contents)).digest("hex").slice(0, 8);
  const directory = `/etc/zoned/api-server-${hash}`;
  const flags: Record<string, string> = {
    ...Object.fromEntries(
      contents
        .filter(([flag]) => flag !== "authentication-config" || !isTheirs)
        .map(([flag, name]) => [flag, `${directory}/${name}`]),
    ),
    // A month, and 1.1 GB at most on each control plane.
    "audit-log-path": `${auditDirectory}/audit.log`,
    "audit-log-maxage": "30",
    "audit-log-maxbackup": "10",
    "audit-log-maxsize": "100",
    "tls-cipher-suites": cipherSuites.join(","),
  };
  const volumes = [
    {
      name: "zoned-security",
      hostPath: directory,
      mountPath: directory,
      readOnly: true,
      pathType: "Directory",
    },
    {
      name: "zoned-audit",
      hostPath: auditDirectory,
      mountPath: auditDirectory,
      pathType: "DirectoryOrCreate",
    },
  ];
  const files = contents.map(([, name, content]): PayloadFile => ({
    path: `${directory}/${name}`,
    mode: "0600",
    content,
  }));
  return { flags, volumes, files };
}
