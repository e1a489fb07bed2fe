import { parse } from "yaml";

import {
  apiServerSecurity,
  cipherSuites,
  type SecuritySettings,
} from "../../../components/kubeadm/api-server-security";
import { validSettings } from "../../support/sample";
import { application, people, tenant } from "../../support/settings-cases/entra";

const securityFlags = (settings: SecuritySettings) => apiServerSecurity(settings).flags;
const securityVolumes = (settings: SecuritySettings) => apiServerSecurity(settings).volumes;
const securityFiles = (settings: SecuritySettings) => apiServerSecurity(settings).files;

const flags = Object.keys;
const file = (name: string, settings = validSettings) =>
  parse(securityFiles(settings).find(({ path }) => path.endsWith(`/${name}`))!.content);

const withPeople = { ...validSettings, entra: people };

it.each([
  ["nobody's tokens", validSettings],
  ["people's tokens", withPeople],
])(
  "with %s, gives the API server only files that its machine gets and its container sees",
  (_, settings) => {
    const named = Object.entries(securityFlags(settings))
      .filter(([flag]) => /(config|config-file|policy-file)$/.test(flag))
      .map(([, path]) => path);

    expect(named).toEqual(securityFiles(settings).map(({ path }) => path));
    for (const path of [...named, securityFlags(settings)["audit-log-path"]!]) {
      const volumes = securityVolumes(settings);
      expect(volumes.some(({ mountPath }) => path.startsWith(`${mountPath}/`))).toBe(true);
    }
  },
);

it("believes no tokens but those of service accounts where nothing is said", () => {
  expect(Object.keys(file("authentication.yaml"))).toEqual(["apiVersion", "kind", "anonymous"]);
});

it("puts other contents into another folder, since a running API server does not read them again", () => {
  const folders = [
    validSettings,
    withPeople,
    { ...validSettings, entra: { ...people, ca: "x" } },
  ].map((settings) => securityVolumes(settings)[0]!.hostPath);

  expect(new Set(folders).size).toBe(3);
});

it.each([
  ["https://management.azure.com", "login.microsoftonline.com"],
  ["https://management.usgovcloudapi.net/", "login.microsoftonline.us"],
  ["https://management.chinacloudapi.cn", "login.partner.microsoftonline.cn"],
])("believes the tenant of Azure's cloud at %s", (resourceManagerEndpoint, host) => {
  const { jwt } = file("authentication.yaml", { ...withPeople, resourceManagerEndpoint });

  expect(jwt[0].issuer).toEqual({
    url: `https://${host}/${tenant}/v2.0`,
    audiences: [application],
  });
});

it("keeps the audit log out of a volume that the API server cannot write to", () => {
  const of = (path: string) =>
    securityVolumes(validSettings).find((one) => path.startsWith(`${one.mountPath}/`));

  expect(of(securityFlags(validSettings)["audit-log-path"]!)).not.toHaveProperty("readOnly");
});

it("leaves it to an operator with OIDC who may ask, as an API server would not start with both", () => {
  const apiServerExtraArgs = { "oidc-issuer-url": "a value" };
  const withExtra = { ...validSettings, kubeadm: { ...validSettings.kubeadm, apiServerExtraArgs } };
  const withOidc = flags(securityFlags(withExtra));

  expect(flags(securityFlags(validSettings))).toContain("authentication-config");
  expect(withOidc).not.toContain("authentication-config");
  expect(withOidc).toContain("audit-policy-file");
});

it("answers nobody without a credential but probes", () => {
  const { anonymous } = file("authentication.yaml");

  expect(anonymous.enabled).toBe(true);
  expect(anonymous.conditions.map(({ path }: { path: string }) => path).sort()).toEqual([
    "/healthz",
    "/livez",
    "/readyz",
  ]);
});

it("enforces baseline and speaks of restricted, but for kube-system", () => {
  const [{ configuration }] = file("admission.yaml").plugins;

  expect(configuration).toMatchObject({
    defaults: { enforce: "baseline", audit: "restricted", warn: "restricted" },
    exemptions: { namespaces: ["kube-system"] },
  });
});

interface AuditRule {
  readonly level: string;
  readonly verbs?: readonly string[];
  readonly resources?: readonly { readonly group: string; readonly resources: readonly string[] }[];
}

/** The level of the first rule that fits a request, such as `get secrets` or `update leases.coordination.k8s.io`. */
function auditLevel(request: string): string | undefined {
  const [verb = "", resource = ""] = request.split(" ");
  const [name = "", ...group] = resource.split(".");
  const { rules } = file("audit.yaml") as { rules: readonly AuditRule[] };
  return rules.find(
    ({ verbs = [verb], resources }) =>
      verbs.includes(verb) &&
      (resources === undefined ||
        resources.some((one) => one.group === group.join(".") && one.resources.includes(name))),
  )?.level;
}

it.each([
  ...["get secrets", "list configmaps", "create serviceaccounts/token", "create pods"],
  ...["create tokenreviews.authentication.k8s.io", "patch deployments.apps", "update nodes"],
  ...["delete pods", "deletecollection pods"],
  ...["get pods/exec", "get pods/attach", "get pods/portforward", "create pods/exec"],
  ...["get pods/proxy", "get services/proxy", "get nodes/proxy"],
])("writes to the audit log that somebody did %s, and nothing of what is in it", (request) => {
  expect(auditLevel(request)).toBe("Metadata");
});

it.each([
  ...[
    "get pods",
    "get pods/log",
    "watch nodes",
    "update leases.coordination.k8s.io",
    "create events",
  ],
  "patch events.events.k8s.io",
])("writes nothing of %s", (request) => {
  expect(auditLevel(request)).toBe("None");
});

it("keeps the audit log for a month, and in 1.1 GB, with each request once", () => {
  expect(file("audit.yaml").omitStages).toEqual(["RequestReceived"]);
  expect(securityFlags(validSettings)).toMatchObject({
    "audit-log-maxage": "30",
    "audit-log-maxbackup": "10",
    "audit-log-maxsize": "100",
  });
});

it("agrees with TLS 1.2 on suites with forward secrecy and authenticated encryption only", () => {
  const listed = securityFlags(validSettings)["tls-cipher-suites"]!.split(",");

  expect(listed).toEqual(cipherSuites);
  expect(listed).toHaveLength(6);
  for (const suite of listed) expect(suite).toMatch(/^TLS_ECDHE_.*_(GCM|CHACHA20_POLY1305)_/);
});

it("lets the API server write its log alone, in a folder that it makes itself", () => {
  expect(
    Object.fromEntries(securityVolumes(validSettings).map((one) => [one.name, one])),
  ).toMatchObject({
    "zoned-security": { readOnly: true, pathType: "Directory" },
    "zoned-audit": { pathType: "DirectoryOrCreate" },
  });
});
